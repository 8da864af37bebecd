"""Looks at a page in headless Chromium, at a width of its own, and tells what is there."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

PROBE = """
const page = frame.contentDocument, root = page.documentElement;
const boxes = [...page.body.querySelectorAll("*")].filter(e => !e.closest("thead, svg, .wide"));
const style = e => frame.contentWindow.getComputedStyle(e);
const told = {
  width: root.clientWidth, scroll: root.scrollWidth,
  outside: boxes.filter(e => e.getBoundingClientRect().right > root.clientWidth + 1).map(e => e.outerHTML),
  paper: style(page.body).backgroundColor, ink: style(page.body).color, text: page.body.innerText,
  rows: [...page.querySelectorAll(".code tr:not(.told)")].map(r => [+r.cells[0].innerText, style(r).backgroundColor]),
  marks: [...page.querySelectorAll(".mark")].map(e => e.innerText),
  smallest: Math.min(...boxes.filter(e => e.innerText).map(e => parseFloat(style(e).fontSize))),
  scripts: page.scripts.length, ran: String(frame.contentWindow.hacked),
};
document.body.textContent = JSON.stringify(told);
"""


def look(page: str, folder: Path, width: int = 1280, dark: bool = False) -> dict[str, Any]:
    """Width and overflow, colours, the text that is seen, and the background of each line of code."""
    assert CHROMIUM is not None
    frame = f'<iframe id="frame" style="border:0;width:{width}px;height:900px" srcdoc="{html.escape(page)}"></iframe>'
    outer = folder / "outer.html"
    outer.write_text(
        '<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark"><body>'
        f"{frame}<script>onload = () => {{{PROBE}}}</script>",
        encoding="utf-8",
    )
    command = [
        *(
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder / 'profile'}",
        ),
        *(f"--blink-settings=preferredColorScheme={int(not dark)}", f"--window-size={width + 200},1000"),
        *("--dump-dom", outer.as_uri()),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120)
    found = re.search(r"<body>(\{.*\})", ran.stdout, re.DOTALL)
    assert found, ran.stdout[-500:] + ran.stderr[-500:]
    told: dict[str, Any] = json.loads(html.unescape(found[1]).partition("</body>")[0])
    return told
