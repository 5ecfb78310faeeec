"""What `mkdocs build` needs beyond `docs/`: the pages of `papers/`, and links that leave both folders.

The repository's pages link to each other and to code by relative paths, which work where the repository is browsed. On
the site `papers/` lies below `docs/`; a link to a file of code becomes the file's name.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent))  # mkdocs runs this file by itself

import page_state  # noqa: E402

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add `papers/` with its pictures and tables."""
    for path in sorted((ROOT / "papers").rglob("*")):
        if path.suffix in (".md", ".png", ".csv", ".bib"):
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Links to pages of the site as the site has them; of others, their text."""
    in_papers = page.file.src_uri.startswith("papers/")
    here = (ROOT if in_papers else ROOT / "docs") / page.file.src_uri

    def resolved(match: re.Match[str]) -> str:
        kind, text, link = match.groups()
        target, _, anchor = link.partition("#")
        if not target or "://" in link:
            return match.group()
        path = (here.parent / target).resolve()
        place = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
        source = place.removeprefix("docs/")
        if files.get_file_from_path(source) is None:
            return match.group() if kind else text
        upwards = "../" * page.file.src_uri.count("/")
        return f"{kind}[{text}]({upwards}{source}{'#' + anchor if anchor else ''})"

    markdown = _LINK.sub(resolved, markdown)
    age = page_state.first_line(markdown) if page.file.src_uri.startswith("papers/reports/") else ""
    return f"{age}\n\n{markdown}" if age else markdown
