"""The pages in docs/ are followed literally: their files are made, their lines added, their code and commands run.

A page is a list of blocks. A line ``**`FILE`**`` before a block says that it is the content of that file: a module of
tokdfa if it begins with ``tokdfa/``, else a file of the reader's folder. A line ``**`FILE`, `NAME`**`` says that the
block is an entry of the dictionary NAME in that module. Other blocks in ``python`` are run and print what their
comments say; the commands of ``tokdfa`` in ``sh`` blocks end well. Nothing of it changes the checkout: new modules lie
in a folder that is added to the path of their package while the page is followed.
"""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.test_plugins import PLUGIN
from tokdfa.backends import registry
from tokdfa.cli import app as cli
from tokdfa.lab import kinds

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("add_*.md"))
GUIDES = sorted(set(DOCS.glob("*.md")) - set(PAGES))
BLOCK = re.compile(
    r"(?:^\*\*`(?P<file>[^`]+)`(?:, `(?P<name>\w+)`)?\*\*\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)


class Block(NamedTuple):
    file: str | None
    name: str | None
    kind: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(**match.groupdict()) for match in BLOCK.finditer(page.read_text())]


class Reader:
    """Follows a page in a folder of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.monkeypatch, self.capsys = folder / "reader", monkeypatch, capsys
        self.overlay = folder / "overlay"
        self.folder.mkdir()
        monkeypatch.chdir(self.folder)
        monkeypatch.setenv("COLUMNS", "200")
        self.added: list[str] = []

    def follow(self, block: Block) -> None:
        if block.file and block.name:
            self.add_entry(block.file, block.name, block.text)
        elif block.file and block.file.startswith("tokdfa/"):
            self.add_module(block.file, block.text)
        elif block.file:
            (self.folder / block.file).write_text(block.text)
        elif block.kind == "sh":
            for line in block.text.splitlines():
                self.run(line)
        elif block.kind == "python":
            self.execute(block.text)

    def add_module(self, file: str, text: str) -> None:
        """As if the file lay in the package: the package's path gets a folder more."""
        assert not (ROOT / file).exists(), f"{file} is there already"
        path = self.overlay / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        package = importlib.import_module(".".join(Path(file).parts[:-1]))
        self.monkeypatch.setattr(package, "__path__", [*package.__path__, str(path.parent)])
        self.monkeypatch.syspath_prepend(path.parent)  # new processes get this path, and not that of the package
        self.added.append(".".join(Path(file).with_suffix("").parts))
        if path.parent.name == "kinds":  # where a new process finds it
            self.monkeypatch.setitem(kinds.ADDED, path.stem, f"{path.stem}:KIND")

    def add_entry(self, file: str, name: str, line: str) -> None:
        """As if the line stood in the dictionary `name` of that module."""
        module = importlib.import_module(".".join(Path(file).with_suffix("").parts))
        (added,) = eval(f"{{{line}}}", dict(vars(module))).items()
        assert added[0] not in vars(module)[name]
        self.monkeypatch.setitem(vars(module)[name], *added)

    def run(self, line: str) -> None:
        if line.startswith("pip install -e ."):
            self.install()
            return
        self.monkeypatch.setattr("sys.argv", shlex.split(line))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code, f"{line}: {self.capsys.readouterr()}"
        self.capsys.readouterr()

    def install(self) -> None:
        """What an editable install does: the reader's folder on the path, with the entry points of its project."""
        import tomllib

        project = tomllib.loads((self.folder / "pyproject.toml").read_text())["project"]
        about = self.folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )
        groups = project["entry-points"].items()
        lines = [
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in points.items()) for group, points in groups
        ]
        (about / "entry_points.txt").write_text("".join(lines))
        self.monkeypatch.syspath_prepend(self.folder)
        self.added.append("cut_texts")
        registry.backend_targets.cache_clear()

    def execute(self, code: str) -> None:
        self.capsys.readouterr()
        space: dict[str, Any] = {}
        exec(compile(code, "page", "exec"), space)
        said = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
        assert said
        assert self.capsys.readouterr().out.splitlines() == said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_can_be_followed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = Reader(tmp_path, monkeypatch, capsys)
    try:
        for block in blocks(page):
            reader.follow(block)
    finally:
        for name in reader.added:
            sys.modules.pop(name, None)
        registry.backend_targets.cache_clear()


def test_there_is_a_page_for_each_part() -> None:
    assert [page.stem for page in PAGES] == [
        "add_backend",
        "add_experiment",
        "add_measure",
        "add_model",
        "add_tokenizer",
    ]
    for page in PAGES:
        kinds = {block.kind for block in blocks(page)}
        assert {"python", "sh"} <= kinds
        assert len(re.findall("^```", page.read_text(), re.M)) == 2 * len(blocks(page)), "a block was not found"


def test_the_backend_of_the_page_is_the_one_that_is_installed_by_pip() -> None:
    files = {block.file: block.text for block in blocks(DOCS / "add_backend.md") if block.file}
    assert files == {name: (PLUGIN / name).read_text() for name in ("cut_texts.py", "pyproject.toml")}


@pytest.mark.parametrize(
    "page",
    [*PAGES, *GUIDES, ROOT / "CONTRIBUTING.md", ROOT / "papers" / "README.md", ROOT / "papers" / "claims.md"],
    ids=lambda page: page.stem,
)
def test_links_and_files_of_a_page_are_there(page: Path) -> None:
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert "://" in link or (page.parent / link).exists(), link
    made = {block.file for block in blocks(page)}
    for name in re.findall(r"`((?:tokdfa|tests|experiments|docs)/[\w./]+)`", text):
        assert name in made or (ROOT / name).exists(), name


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_code_of_a_guide_prints_what_it_says(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks(page):
        if block.kind == "python":
            exec(compile(block.text, page.name, "exec"), {})
            said = [line.removeprefix("# ") for line in block.text.splitlines() if line.startswith("# ")]
            assert said
            assert capsys.readouterr().out.splitlines() == said


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_commands_of_a_guide_print_what_it_says(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "130")
    for block in blocks(page):
        if block.kind == "text" and block.text.startswith("$ tokdfa "):
            command, said = block.text.split("\n", 1)
            monkeypatch.setattr("sys.argv", shlex.split(command.removeprefix("$ ")))
            with pytest.raises(SystemExit):
                cli.main()
            printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
            assert [line for line in printed if not re.search(r" in [\d.]+ s$", line)] == said.splitlines(), command


def test_the_site_has_every_page() -> None:
    nav = (ROOT / "mkdocs.yml").read_text()
    assert [page.name for page in (*PAGES, *GUIDES) if f" {page.name}\n" not in nav] == []
    assert " papers/claims.md\n" in nav


def test_the_map_names_every_package() -> None:
    readme = (ROOT / "README.md").read_text()
    for package in ROOT.glob("tokdfa/*/__init__.py"):
        assert f"(tokdfa/{package.parent.name})" in readme, package.parent.name
    for page in PAGES:
        assert f"(docs/{page.name})" in readme
        assert f"(docs/{page.name})" in (ROOT / "CONTRIBUTING.md").read_text()


def test_papers_name_every_note_and_every_report() -> None:
    text = (ROOT / "papers" / "README.md").read_text()
    for folder in ("notes", "reports"):
        for page in (ROOT / "papers" / folder).glob("*.md"):
            assert f"({folder}/{page.name})" in text, page.name
    for name in re.findall(r"`(\w+)\.yaml`", text):
        assert (ROOT / "experiments" / f"{name}.yaml").exists(), name
