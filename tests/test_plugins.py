"""A package of its own adds a backend by an entry point: it is built, installed, listed and judged by the laws."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tokdfa
from tests.walks import mask_of
from tokdfa.backends import registry
from tokdfa.backends.base import StateMatcher
from tokdfa.backends.laws.cases import Case
from tokdfa.backends.laws.contract import LAWS, check_backend, toy_cases
from tokdfa.cli import app as cli
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import UnsupportedConstraint, VocabularyCannotSpell
from tokdfa.mask import clear_token
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.mask import Mask

PLUGIN = Path(__file__).parent / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The package, installed by pip into a folder of its own, which is on the path while the tests run."""
    folder = tmp_path_factory.mktemp("plugin")
    source, target = folder / "source", folder / "installed"
    shutil.copytree(PLUGIN, source, ignore=shutil.ignore_patterns("__pycache__"))
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", target, source], check=True)
    sys.path.insert(0, str(target))
    registry.backend_targets.cache_clear()
    yield
    sys.path.remove(str(target))
    sys.modules.pop("cut_texts", None)
    registry.backend_targets.cache_clear()


@pytest.mark.usefixtures("installed")
def test_it_is_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(tokdfa.backends())[-1] == "cut_texts"
    info = tokdfa.backends()["cut_texts"]
    assert (info.kinds, info.installed) == (("choice",), True)
    monkeypatch.setattr("sys.argv", ["tokdfa", "backends"])
    monkeypatch.setattr(cli, "console", cli.Console(width=200))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    assert info.summary in capsys.readouterr().out


@pytest.mark.usefixtures("installed")
def test_it_holds_to_the_laws() -> None:
    # the cases that every backend is tried on have no choice that ends up where no token goes on: "ac", and then "b"
    gaps = Case("gaps", Vocabulary([b"a", b"ab", b"c", b""], [3]), Choice(["ab", "acb"]), (b"ab",), gaps=True)
    results = check_backend("cut_texts", cases=[*toy_cases(), gaps])
    assert not [result for result in results if not result.ok]
    held = {result.law for result in results if result.outcome == "held"}
    assert held == {law.name for law in LAWS}


@pytest.mark.usefixtures("installed")
def test_the_laws_would_find_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an end token missing from its masks, the plug-in is refused."""
    fill = StateMatcher.fill_mask

    def without_ends(matcher: StateMatcher[bytes], out: Mask) -> None:
        fill(matcher, out)
        for end in matcher.vocab.end_tokens:
            clear_token(out, end)

    import cut_texts

    monkeypatch.setattr(cut_texts.CutTextsMatcher, "fill_mask", without_ends)
    case = Case("two", Vocabulary([b"a", b"b", b"ab", b""], [3]), Choice(["ab", "a"]), (b"ab", b"a"))
    assert "end_bits" in {result.law for result in check_backend("cut_texts", cases=[case]) if not result.ok}


@pytest.mark.usefixtures("installed")
def test_it_is_used_like_any_other() -> None:
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    choice = Choice(["Theodore", " The", "été"])
    matcher = tokdfa.compile(choice, tokenizer.vocabulary, "cut_texts").start()
    other = tokdfa.compile(choice, tokenizer.vocabulary, "token_index").start()
    for token in [*tokenizer.encode("Theodore"), 2]:
        assert mask_of(matcher) == mask_of(other)
        matcher.advance(token)
        other.advance(token)
    assert matcher.is_finished()
    with pytest.raises(UnsupportedConstraint, match="cut_texts takes choice, not regex"):
        tokdfa.compile(Regex("x"), tokenizer.vocabulary, "cut_texts")
    with pytest.raises(VocabularyCannotSpell, match="no tokens spell a text of 'x'"):
        tokdfa.compile(Choice(["x"]), Vocabulary([b"a", b""], [1]), "cut_texts")
