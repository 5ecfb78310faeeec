"""Pieces of pages, taken apart by Python's own HTML parser."""

from __future__ import annotations

from html.parser import HTMLParser

#: What a view may consist of: nothing that runs, and nothing that is loaded.
HARMLESS = {
    "style", "div", "table", "tr", "th", "td", "code", "b", "i", "span",
    "svg", "title", "path", "polygon", "circle", "text",
}  # fmt: skip


class Piece(HTMLParser):
    """The elements of a piece, its rows of cells (texts), and whether every element is closed in its place."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.rows: list[list[str]] = []
        self.codes: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(content)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "code":
            self.codes.append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "style" in self._open:
            return
        self.text += data
        if "td" in self._open or "th" in self._open:
            self.rows[-1][-1] += data
        if "code" in self._open:
            self.codes[-1] += data


def piece_of(view) -> Piece:
    """A view's piece of a page, checked: well formed, and of harmless elements only."""
    piece = Piece(view._repr_html_())
    assert set(piece.tags) <= HARMLESS
    assert not [name for name, _ in piece.attributes if name.startswith("on") or name in ("href", "src")]
    assert "\n" not in repr(view)
    assert len(repr(view)) < 300
    return piece
