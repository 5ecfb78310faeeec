"""SynCode: its masks beside those of its own logits processor, what they are wider by, and its dead ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.packages import needs
from tests.walks import accepts
from tests.walks import mask_of as allowed
from tokdfa.backends.peers import syncode_peer
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Grammar
from tokdfa.errors import UnsupportedConstraint, VocabularyError
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.backends.base import Matcher

#: Tokens that go over the ends of terminals, characters in parts, and one pair with equal bytes.
LONGER = [b"12", b"+1", b"1+", b")+", b"+(", b" +", "é".encode(), b"\xa9a", b"ab", b"ab"]
VOCAB = Vocabulary([*(bytes([byte]) for byte in range(256)), *LONGER, b"", b""], [266], size=267, name="sums")
SUM = Grammar(
    """
start: sum
sum: item ("+" item)*
item: NUMBER | NAME | "(" sum ")"
NUMBER: /[0-9]+/
NAME: /[a-zé]+/
%ignore " "
"""
)
TEXTS = [b"12+(1+1)+ab", b"(1)+1 + 12", "é+aé".encode()]


def start(mode: str = "grammar_mask") -> Matcher:
    return create_backend("syncode", VOCAB, mode=mode).compile(SUM).start()


def shortest(text: bytes) -> list[int]:
    return list(text)


def longest(text: bytes) -> list[int]:
    found: list[int] = []
    while text:
        token = max(
            reversed(range(266)), key=lambda one: len(VOCAB.token_bytes(one)) * text.startswith(VOCAB.token_bytes(one))
        )
        found.append(token)
        text = text[len(VOCAB.token_bytes(token)) :]
    return found


def test_names_are_those_of_byte_level_tokenizers() -> None:
    """Without the package: what it is given."""
    made = syncode_peer._Tokenizer(VOCAB)
    names = {token: str(name) for name, token in made.get_vocab().items()}
    assert len(names) == VOCAB.size
    assert (names[ord("a")], names[ord(" ")], names[256], names[261]) == ("a", "\u0120", "12", "\u0120+")
    assert names[264] == names[265] == "ab"
    assert made.decode([256, 257]) == "12+1"
    with pytest.raises(VocabularyError, match="otherwise"):
        syncode_peer._Tokenizer(Vocabulary([b"<0x0A>", b""], [1]))


@needs("syncode")
@pytest.mark.filterwarnings("ignore")  # it leaves files open
@pytest.mark.parametrize("mode", ["grammar_mask", "grammar_strict"])
@pytest.mark.parametrize("spell", [shortest, longest])
def test_masks_are_those_of_its_own_logits_processor(
    mode: str, spell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_backend("syncode", VOCAB)  # imports it with a hand on its logging
    import torch
    from syncode import SyncodeLogitsProcessor
    from syncode.parsers.grammars import Grammar as Own
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    monkeypatch.chdir(tmp_path)  # it writes a folder there
    names = {str(name): token for name, token in syncode_peer._Tokenizer(VOCAB).get_vocab().items()}
    names |= {"ab ": 264, "<end>": 266}  # names differ there: of equal ones it keeps the last
    del names["\u2581"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(names, unk_token="<end>")), eos_token="<end>"
    )
    own = SyncodeLogitsProcessor(Own(SUM.text), tokenizer, use_cache=False, parse_output_only=True, mode=mode)
    for text in TEXTS:
        own.reset()
        matcher, tokens = start(mode), [0]
        for token in [*spell(text), None]:
            scores = own(torch.tensor([tokens]), torch.zeros(1, VOCAB.size))
            theirs = set(np.flatnonzero(np.isfinite(scores[0].numpy())).tolist())
            assert set(allowed(matcher)) - {264} == theirs - {264}, tokens
            if token is None or token not in theirs:
                break
            matcher.advance(token)
            tokens.append(token)


@needs("syncode")
def test_it_lacks_tokens_over_two_terminals_where_none_has_begun_and_those_that_leave_one_unfinished() -> None:
    decimals = Grammar('start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]+([.][0-9]+)?/\n')
    for grammar, text, lacking in (
        (SUM, b"", {b"1+"}),
        (SUM, b"12", set()),
        (SUM, b"(1)+1 ", {b"+1", b"+("}),
        (SUM, b"12+a", {b"\xc3"}),
        (decimals, b"1", {b"."}),
    ):
        judge, matcher = (create_backend(name, VOCAB).compile(grammar).start() for name in ("pushdown_trie", "syncode"))
        for token in shortest(text):
            judge.advance(token)
            matcher.advance(token)
        found = {VOCAB.token_bytes(one) for one in set(allowed(judge)) - set(allowed(matcher))}
        assert found == lacking, text


@needs("syncode")
def test_it_offers_the_end_where_a_terminal_may_go_on_and_tokens_that_it_cannot_read() -> None:
    matcher = start()
    assert not accepts(create_backend("pushdown_trie", VOCAB).compile(SUM).start(), "12+")
    assert accepts(matcher.fork(), "12+")
    matcher.advance(256)
    assert set(allowed(matcher)) >= {256, 257, 266}


@needs("syncode")
def test_a_grammar_that_is_not_lalr() -> None:
    with pytest.raises(UnsupportedConstraint, match=r"syncode cannot compile .*Reduce/Reduce"):
        create_backend("syncode", VOCAB).compile(Grammar('start: a | b\na: "x"\nb: "x"\n'))
