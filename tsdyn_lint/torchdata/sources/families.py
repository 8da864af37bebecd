"""Packages whose functions Dynamo does not trace, whichever of them is called: `package` -> verdict, the nearest
package wins."""

from __future__ import annotations

# what calling several functions of each gave on 2.13
_RUN = {
    "PIL": "skip GB0007", "cv2": "skip GB0007", "loguru": "skip GB0007", "scipy": "skip GB0007", "tqdm": "skip GB0007",
    "einops": "trace", "logging.Logger": "refuse GB0291",
}  # fmt: skip
# extension modules and packages that do I/O, not run: a C function is always marked as skipped
_READ = (
    "av cupy decord faiss h5py lmdb lxml numba orjson pycocotools regex requests sentencepiece shutil "
    "socket soundfile sqlite3 "
    "subprocess tokenizers ujson urllib yaml"
).split(" ")


def collect(skiplist: tuple[str, ...]) -> dict[str, str]:
    """`skiplist`: the third-party packages that `trace_rules` names."""
    return {**dict.fromkeys((*_READ, *skiplist), "skip GB0007"), "numpy": "trace", **_RUN}
