"""MkDocs hooks: the README as home page, pages that live outside `docs/`, the generated reference.

A link from `docs/` such as `../datasets/README.md` works in the repository, and becomes
`datasets/README.md` in the site.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))
import example  # noqa: E402
import reference  # noqa: E402

HOME = "README.md"

INCLUDED_PAGES = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "bench/bittoken/checkpoints/small/README.md",
    "datasets/README.md",
    "results/certificate-study/README.md",
    "results/forensics/README.md",
    "results/comparability/README.md",
    "results/encodings/README.md",
    "results/horizon-study/README.md",
    "results/measured/README.md",
    "results/multitask/README.md",
    "results/products/README.md",
    "results/representations/README.md",
    "results/rescored-study/README.md",
    "results/trained/README.md",
)

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
_EXTERNAL = re.compile(r"[a-z]+:|#")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the home page and the included pages, and the local files that they refer to."""
    files.append(File.generated(config, "index.md", abs_src_path=str(ROOT / HOME)))
    for name in INCLUDED_PAGES:
        _add(files, config, name)
        for target in _local_targets(ROOT / name):
            if target.suffix != ".md":
                _add(files, config, target.relative_to(ROOT).as_posix())
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adjust links to the layout of the site; keep the text of links to files that it lacks."""
    source = page.file.src_uri
    if source == "index.md":
        markdown = re.sub(r"\n## ", lambda heading: f"\n{example.LINKS}\n{heading[0]}", markdown, count=1)
    if source == "reference.md":
        markdown = reference.complete(markdown)
    is_included = source in (*INCLUDED_PAGES, "index.md")
    folder = (ROOT if is_included else ROOT / "docs") / source

    def adjust(match: re.Match[str]) -> str:
        mark, text, link = match.groups()
        if _EXTERNAL.match(link):
            return match[0]
        path, _, fragment = link.partition("#")
        target = (folder.parent / path).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return match[0]  # MkDocs reports it as broken.
        name = target.relative_to(ROOT).as_posix()
        uri = name.removeprefix("docs/")
        if files.get_file_from_path(uri) is None:
            return text
        up = "../" * source.count("/")
        return f"{mark}[{text}]({up}{uri}{'#' + fragment if fragment else ''})"

    return _LINK.sub(adjust, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Add an example report and a leaderboard."""
    example.write_example(Path(config.site_dir))


def _add(files: Files, config: MkDocsConfig, name: str) -> None:
    if files.get_file_from_path(name) is None:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))


def _local_targets(page: Path) -> list[Path]:
    links = [match[2] for match in _LINK.findall(page.read_text(encoding="utf-8"))]
    paths = (page.parent / link.partition("#")[0] for link in links if not _EXTERNAL.match(link))
    return [path for path in dict.fromkeys(path.resolve() for path in paths) if path.is_file()]
