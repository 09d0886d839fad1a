"""The screenshot of the README shows the example report of the site as it is now.

NUMBENCH_SCREENSHOT=1 takes a new one.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from docs._build.example import write_example
from tests.report.browser import BrowserPage

pytestmark = pytest.mark.slow
PICTURE = Path("docs/assets/report.png")


def test_the_readme_shows_the_example_report(browser: Any, tmp_path: Path) -> None:
    picture = PICTURE.resolve()
    write_example(tmp_path, with_leaderboard=False)
    size = {"viewport": {"width": 1280, "height": 800}}
    page = BrowserPage(browser, tmp_path / "example" / "report.html", **size)
    # Words depend neither on the fonts of this machine nor on its speed.
    parts = ("h1", "nav", "#filters", ".answer:not([hidden])", "#table-summary thead")
    words = " ".join("\n".join(map(page.text, parts)).split())
    if os.environ.get("NUMBENCH_SCREENSHOT"):
        page.page.screenshot(path=tmp_path / "page.png")
        known = PngInfo()
        known.add_text("words", words)
        colors = Image.open(tmp_path / "page.png").convert("RGB").quantize(64)
        colors.save(picture, optimize=True, pnginfo=known)
    page.context.close()
    with Image.open(picture) as image:
        assert image.size == (1280, 800)
        assert image.info["words"] == words, "take it anew: NUMBENCH_SCREENSHOT=1"
