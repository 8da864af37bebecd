"""Looks at a page in headless Chromium, at a width of its own, and tells what is there."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

PROBE = """
onload = () => document.body.textContent = JSON.stringify([...document.querySelectorAll("iframe")].map(frame => {
  const page = frame.contentDocument, root = page.documentElement;
  const boxes = [...page.body.querySelectorAll("*")].filter(e => !e.closest("thead, svg, .wide"));
  const style = e => frame.contentWindow.getComputedStyle(e);
  return {
    width: root.clientWidth, scroll: root.scrollWidth,
    outside: boxes.filter(e => e.getBoundingClientRect().right > root.clientWidth + 1).map(e => e.outerHTML),
    paper: style(page.body).backgroundColor, ink: style(page.body).color, text: page.body.innerText,
    rows: [...page.querySelectorAll(".code tr:not(.told)")].map(r => [+r.cells[0].innerText, style(r).backgroundColor]),
    smallest: Math.min(...boxes.filter(e => e.innerText).map(e => parseFloat(style(e).fontSize))),
    scripts: page.scripts.length, ran: String(frame.contentWindow.hacked),
  };
}));
"""


def look(pages: Sequence[tuple[str, int]], folder: Path, dark: bool = False) -> list[dict[str, Any]]:
    """For each page at its width: overflow, colours, the text that is seen, and the background of each line of code."""
    assert CHROMIUM is not None
    frames = [
        f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{html.escape(page)}"></iframe>'
        for page, width in pages
    ]
    outer = folder / "outer.html"
    scheme = '<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark"><body>'
    outer.write_text(f"{scheme}{''.join(frames)}<script>{PROBE}</script>", encoding="utf-8")
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *(f"--user-data-dir={folder / 'profile'}", f"--blink-settings=preferredColorScheme={int(not dark)}"),
        *("--window-size=1600,1000", "--dump-dom", outer.as_uri()),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120)
    found = re.search(r"<body>(\[.*\])</body>", ran.stdout, re.DOTALL)
    assert found, ran.stdout[-500:] + ran.stderr[-500:]
    told: list[dict[str, Any]] = json.loads(html.unescape(found[1]))
    return told
