"""A matcher's table says where the matcher is, and looking changes nothing."""

from __future__ import annotations

import pytest

import tokdfa
from tests.display.pages import piece_of
from tokdfa import Choice, Grammar, Regex, show
from tokdfa.errors import VocabularyError
from tokdfa.vocabulary.vocabulary import Vocabulary

VOCAB = Vocabulary([b"<b>", b"</b>", b"x", b"<", b"b", b">", b"/", b""], end_tokens=[7], name="tags")
TAGGED = Regex("<b>x*</b>")


def started(backend="token_index", constraint=TAGGED, **options):
    return tokdfa.compile(constraint, VOCAB, backend=backend, **options).start()


@pytest.mark.parametrize("backend", ["token_index", "brute_force", "tokens_dfa"])
def test_state(backend):
    matcher = started(backend)
    for token in (0, 2):
        matcher.advance(token)
    facts = dict(row for row in piece_of(show(matcher, after=[0, 2])).rows if len(row) == 2)
    assert facts["text so far"] == "<b> x"
    assert facts["the text"] == "must go on"
    assert facts["must come next"] == "nothing in particular"
    assert "3 of 8 tokens" in piece_of(show(matcher)).text
    assert "text so far" not in piece_of(show(matcher)).text
    assert repr(show(matcher, after=[0, 2])) == (
        f"MatcherView({type(matcher).__name__.lstrip('_')}, after b'<b>x', must go on, 3 of 8 tokens)"
    )


def test_forced_and_finished():
    matcher = started()
    facts = dict(row for row in piece_of(show(matcher, after=[])).rows if len(row) == 2)
    assert facts["text so far"] == "empty"
    assert facts["must come next"] == "<b>"
    for token in (0, 1):
        matcher.advance(token)
    assert show(matcher).status == "may end"
    matcher.advance(7)
    view = show(matcher, after=[0, 1, 7])
    assert view.status == "finished"
    assert dict(row for row in piece_of(view).rows if len(row) == 2)["text so far"] == "<b> </b>"


def test_looking_changes_nothing():
    grammar = Grammar('start: "<b>" X* "</b>"\nX: "x"')
    matcher = started("earley_trie", grammar)
    matcher.advance(0)
    mask = tokdfa.allocate_mask(VOCAB.size)
    matcher.fill_mask(mask)
    before = dict(matcher.counters)
    assert before
    view = show(matcher)
    work = dict(row for row in piece_of(view).rows if len(row) == 2)["work so far"]
    assert all(f"{name.replace('_', ' ')} {count:,}" in work for name, count in before.items())
    assert matcher.counters == before
    again = mask.copy()
    matcher.fill_mask(again)
    assert (again == mask).all()


def test_what_is_no_token():
    with pytest.raises(VocabularyError):
        show(started(), after=[99])


def test_compiled():
    compiled = tokdfa.compile(Choice(["<b>"], label="<i>"), VOCAB, backend="tokens_dfa")
    phases = [["phase", "ms"], *([name, f"{seconds * 1000:,.3f}"] for name, seconds in compiled.phases.items())]
    sizes = [["built", "size"], *([name.replace("_", " "), f"{size:,}"] for name, size in compiled.sizes.items())]
    assert piece_of(show(compiled)).rows == phases + sizes
    assert repr(show(compiled)).startswith("CompiledView(<i>, tokens_dfa, tags: ")
