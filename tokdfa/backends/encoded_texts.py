"""The brute force of proper sequences: encode every text of the constraint, and allow what occurs.

It is the oracle for backends that allow only proper sequences: it asks nothing of tokdfa but which texts a finite
constraint has (`tokdfa.automata.words`), and the tokenizer's own encoder for the rest. After a sequence of tokens
exactly those may come next that come next in an encoding; the text may end iff the sequence is one. With tokens before
the text, an encoding of both together counts iff it begins with them.

Finite constraints only, one encoding each: 5 to 50 us a text, and 2 us a byte to list them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tokdfa import mask as masks
from tokdfa.backends.base import Backend, CompiledConstraint, Option, Phases, StateMatcher, Support
from tokdfa.backends.explicit_automaton import explicit_automaton
from tokdfa.errors import TokdfaError, UnsupportedConstraint
from tokdfa.vocabulary.tokenizers import encode_exactly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: A node of the trie of encodings: token -> node, and whether an encoding ends here.
Node = tuple[dict[int, int], bool]


class EncodedTexts(Backend):
    """See the module's docstring."""

    name: ClassVar[str] = "encoded_texts"
    summary: ClassVar[str] = "the encodings of all texts, listed: finite constraints (the oracle of proper sequences)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "json_schema")
    is_proper = True
    options: ClassVar[tuple[Option, ...]] = (
        Option("max_texts", int, 20_000, "limit on the texts of the constraint", minimum=1),
        Option("max_bytes", int, 500_000, "limit on the bytes of all texts together", minimum=1),
        Option("max_states", int, 100_000, "limit on DFA states", minimum=1),
    )

    def supports(self, constraint: Constraint) -> Support:
        """Lists the texts, as far as the limits go; a constraint that is wrong is for `compile` to complain about."""
        answer = super().supports(constraint)
        if not answer:
            return answer
        try:
            texts = self._list_texts(constraint)
        except TokdfaError:
            return answer
        for count, limit, what in (
            (len(texts), self.settings["max_texts"], "texts"),
            (sum(map(len, texts)), self.settings["max_bytes"], "bytes in its texts"),
        ):
            if count > limit:
                return Support(False, f"{constraint.name!r} has more than {limit} {what}: use cartesian_merge")
        return answer

    def _list_texts(self, constraint: Constraint) -> list[bytes]:
        from tokdfa.automata.algebra import trim
        from tokdfa.automata.words import words

        dfa = trim(explicit_automaton(constraint, self.settings["max_states"], Phases()))
        return words(dfa, self.settings["max_texts"] + 1, self.settings["max_bytes"])

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        tokenizer = self.vocab.tokenizer
        assert tokenizer is not None  # `supports` has asked
        texts = [text.decode() for text in self._list_texts(constraint)]
        return CompiledEncodedTexts(constraint, self.vocab, tokenizer, texts)


class CompiledEncodedTexts(CompiledConstraint):
    """The texts of a constraint; each start makes the trie of their encodings."""

    def __init__(self, constraint: Constraint, vocab: Vocabulary, tokenizer: Tokenizer, texts: list[str]) -> None:
        super().__init__(constraint, vocab, EncodedTexts.name)
        self._tokenizer, self._texts = tokenizer, texts
        with self.phases.measure("encode"):
            self._beginning = self._list_encodings(())
        self.sizes = {"texts": len(texts), "states": len(self._beginning)}

    def _start(self, context: tuple[int, ...]) -> EncodedTextsMatcher:
        """A matcher after the tokens `context`; UnsupportedConstraint if no encoding of both begins with them."""
        return EncodedTextsMatcher(self.vocab, self._list_encodings(context) if context else self._beginning)

    def _list_encodings(self, context: Sequence[int]) -> list[Node]:
        before = self._tokenizer.decode(context)
        nodes: list[tuple[dict[int, int], list[bool]]] = [({}, [])]
        for text in self._texts:
            tokens = encode_exactly(self._tokenizer, self.vocab, before + text)
            if tokens is None or tokens[: len(context)] != list(context):
                continue
            node = 0
            for token in tokens[len(context) :]:
                if token not in nodes[node][0]:
                    nodes[node][0][token] = len(nodes)
                    nodes.append(({}, []))
                node = nodes[node][0][token]
            nodes[node][1].append(True)
        found = [(following, bool(ends)) for following, ends in nodes]
        if found == [({}, False)]:
            raise UnsupportedConstraint(
                f"no encoding of a text of {self.constraint.name!r} begins with the given context: end it earlier"
            )
        return found


class EncodedTextsMatcher(StateMatcher[int]):
    """A matcher over a trie of encodings."""

    def __init__(self, vocab: Vocabulary, nodes: list[Node]) -> None:
        super().__init__(vocab, 0)
        self._nodes = nodes

    def _step(self, state: int, token: int) -> int | None:
        return self._nodes[state][0].get(token)

    def _accepts(self, state: int) -> bool:
        return self._nodes[state][1]

    def _fill(self, state: int, out: Mask) -> None:
        following, ends = self._nodes[state]
        out[:] = masks.mask_from_ids([*following, *(self.vocab.end_tokens if ends else ())], self.vocab.size)

    def _fork_empty(self) -> EncodedTextsMatcher:
        return EncodedTextsMatcher(self.vocab, self._nodes)
