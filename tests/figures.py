"""Figures of `papers/claims.md`, the README and the notes, and the pages that they cite: which are not found there.

A *place* is a row of the claims, a line of the README's results or a paragraph of a note that cites a page: by the name
of its experiment (`X.yaml`), by a link, or by the command that makes it. Its figures are the numbers in its text: not
those in code, in names (Llama 3, version 1.9.1, p99, issue 669), or of the published side. A figure is *found* if the
page, or one of the tables beside it, has a number that is the same to the digits printed; with a unit also one of
another prefix (0.66 ms and 664 µs), and one of a table in seconds, bytes or shares.

``python -m tests.figures`` prints those that are not found; `papers/unread_figures.txt` lists the known ones, which
`test_figures` holds it to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
REPORTS = ROOT / "papers" / "reports"
UNREAD = ROOT / "papers" / "unread_figures.txt"

#: What looks like a figure and is a name.
_NAMES = re.compile(
    r"`[^`]*`|\]\([^)]*\)|"
    r"\b(?:Llama|Tekken|Mistral|Unicode|draft|issue|pull request|PR|version|Python|EPYC|claim|figure|"
    r"challenge|notebook|step|Algorithm|seed|arXiv|SmolLM|Qwen)s?\s+v?\d[\w.\-]*|\bv\d+\b|\bp\d+(?:\.\d+)?\b|"
    r"\b\d+\.\d+\.\d+(?:\.\w+)?\b|\b[A-Za-z_]\w*\d[\w.]*|\b(?:19|20)\d\d\b(?!\s*(?:ms|µs|ns|s)\b)|\(\d{3}\)|\bLALR\(1\)|"
    r"(?<![\d,])0[0-4]{2}\b|\bL[123]\b|"
    r"\b\d+-wide\b"
)
#: A unit -> what it measures, and its size in base units.
UNITS = {
    **{"ns": ("time", 1e-9), "µs": ("time", 1e-6), "us": ("time", 1e-6), "ms": ("time", 1e-3), "s": ("time", 1.0)},
    **{"B": ("bytes", 1.0), "kB": ("bytes", 1e3), "MB": ("bytes", 1e6), "GB": ("bytes", 1e9), "%": ("share", 1e-2)},
}
_NUMBER = re.compile(
    r"(?<![\w.])((?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e-?\d+)?)(?![\w]*\d)(?: ?(ns|µs|us|ms|s|B|kB|MB|GB|%)(?!\w))?"
)
_CITED = re.compile(r"(?:experiments/)?(\w+)\.yaml|reports/([\w-]+)\.md")
#: A program of ours that makes a page.
_COMMAND = re.compile(r"python -m (tests\.[\w.]*\w)")


@dataclass(frozen=True)
class Place:
    """Where figures stand: a name for messages, their text, and the pages that it cites."""

    name: str
    text: str
    pages: tuple[str, ...]

    def unread(self) -> list[str]:
        """The figures that none of the pages has, as they are printed."""
        return [shown for shown, figure in figures(self.text) if not any(_has(page, figure) for page in self.pages)]


class Figure(NamedTuple):
    """A number as it is printed, without separators, and its unit, "" for none."""

    printed: str
    unit: str

    @property
    def digits(self) -> range:
        """How many significant digits are printed; of a whole number, zeros at its end may be or not."""
        mantissa = self.printed.partition("e")[0]
        most = len(mantissa.replace(".", "").lstrip("0"))
        fewest = most if "." in mantissa else max(2, len(mantissa.rstrip("0")))
        return range(min(fewest, most), most + 1)


#: Between two numbers of a list, whose last one has the unit: "0.64 to 0.73 µs".
_BETWEEN = re.compile(r",? (?:to|and|or|against|in place of) |, ")


def _numbers(text: str) -> list[tuple[str, Figure]]:
    found: list[tuple[str, Figure]] = []
    unit, follows = "", len(text)
    for match in reversed(list(_NUMBER.finditer(text))):
        listed = _BETWEEN.fullmatch(text[match.end() : follows])
        unit = match[2] or (unit if listed else "")
        found.append((match[1], Figure(match[1].replace(",", ""), unit)))
        follows = match.start()
    return found[::-1]


def figures(text: str) -> list[tuple[str, Figure]]:
    """The numbers of a text, without those that are part of a name: as they are printed, and read."""
    return list(dict.fromkeys(_numbers(_NAMES.sub(" ", text))))


@cache
def _on_page(page: str) -> frozenset[Figure]:
    """The numbers of a page and of the tables beside it."""
    text = (REPORTS / f"{page}.md").read_text(encoding="utf-8")
    for table in sorted((REPORTS / "figures" / page.replace("-", "_") / "tables").glob("*.csv")):
        text += table.read_text(encoding="utf-8").replace(",", " , ")
    return frozenset(figure for _, figure in _numbers(text))


def _has(page: str, figure: Figure) -> bool:
    return any(figure.printed in _rounded(page, digits, figure.unit) for digits in figure.digits)


@cache
def _rounded(page: str, digits: int, unit: str) -> frozenset[str]:
    """The numbers of a page to so many digits, as they stand there and in this unit."""
    found = {figure.printed for figure in _on_page(page)}
    for figure in _on_page(page):
        value = float(figure.printed)
        found |= _printed(value, digits)
        if unit:
            what, size = UNITS[unit]
            measured, theirs = UNITS.get(figure.unit, (what, 1.0))  # tables are in base units
            if measured == what:
                found |= _printed(value * theirs / size, digits)
    return frozenset(found)


def _printed(value: float, digits: int) -> set[str]:
    """A value to so many significant digits, as one prints it."""
    if digits < 1 or not 1e-9 < value < 1e12:
        return set()
    rounded = f"{value:.{digits - 1}e}"
    return {f"{float(rounded):.{max(0, digits - 1 - int(rounded.partition('e')[2]))}f}"}


def pages_cited(text: str) -> tuple[str, ...]:
    """The pages that a text cites, of those that there are."""
    names = [(one or other).replace("_", "-") for one, other in _CITED.findall(text)]
    names += [page for command in _COMMAND.findall(text) for page in _pages_of(command)]
    return tuple(dict.fromkeys(name for name in names if (REPORTS / f"{name}.md").exists()))


@cache
def _pages_of(command: str) -> tuple[str, ...]:
    """The pages that name a command as theirs."""
    found = (page for page in sorted(REPORTS.glob("*.md")) if command in page.read_text(encoding="utf-8"))
    return tuple(page.stem for page in found)


def places() -> Iterator[Place]:
    """All places that cite a page."""
    for line in (ROOT / "papers" / "claims.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 5 and cells[0].isdigit():
            yield Place(f"claim {cells[0]}", cells[2], pages_cited(f"{cells[2]} {cells[3]}"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    results = readme.partition("## Results")[2].partition("\n## ")[0]
    for line in re.split(r"\n- ", results)[1:]:
        yield Place(f"README, {line.partition('*')[2].partition('*')[0]}", line, pages_cited(line))
    for note in sorted((ROOT / "papers" / "notes").glob("*.md")):
        for paragraph in re.split(r"\n\s*\n", note.read_text(encoding="utf-8")):
            yield Place(f"note {note.stem}", paragraph, pages_cited(paragraph))


def unread() -> list[str]:
    """``PLACE: FIGURE ...`` of every place that has figures which are not on the pages that it cites."""
    found = []
    for place in places():
        if place.pages and (missing := place.unread()):
            found.append(f"{place.name} ({', '.join(place.pages)}): {'  '.join(missing)}")
    return found


if __name__ == "__main__":
    print("\n".join(unread()))
