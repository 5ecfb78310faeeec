"""The untimed call before the timed ones: a throw-away constraint, so that no sample pays for what happens only once.

A backend's first compile on a vocabulary may import modules, build the token trie or fill tables of its engine. That is
the price of a vocabulary, not of a constraint, so it is paid here. Where it is known which kind of constraint comes
next, the throw-away is of that kind: reading a grammar loads other code than reading a regex. What an engine can make
in advance for such constraints (`Backend.prepare`) is made, too; a process that does not ask for that pays for it with
its first masks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa import mask as masks
from tokdfa.constraint import Choice, Constraint, Grammar, JsonSchema, Regex
from tokdfa.lab.measure.limits import attempt

if TYPE_CHECKING:
    from tokdfa.backends.base import Backend
    from tokdfa.vocabulary.vocabulary import Vocabulary

LABEL = "warm-up"
#: What nearly every grammar, and nearly every schema, has, and every engine takes. In a process that was forked a
#: moment ago the first one that is compiled also copies the pages of whatever code it runs.
GRAMMAR = r"""
start: item+
item: (NAME | WORD) "=" value ";"
?value: NAME | NUMBER | TEXT | list
list: "[" [value ("," value)*] "]"
NAME: /[a-z_][a-z0-9_]*/
NUMBER: /[0-9]+(\.[0-9]+)?/
TEXT: /"[^"\\\n]*"/
%ignore /[ \t\n]+/
"""
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer"},
        "kind": {"enum": ["one", "two"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "count"],
    "additionalProperties": False,
}


def warm_up(backend: Backend, kind: str = "", prepares: bool = True) -> None:
    """Compile a throw-away constraint, of this `kind` if the backend takes it, fill masks and take a token. `prepares`:
    whether what constraints of that kind share is made in advance, as `Backend.prepare` does for who asks for it.

    What goes wrong here is ignored on purpose, panics included: the constraint that is asked for will show it, in a
    place where it is recorded.
    """
    constraint = throwaway(backend, kind)
    if constraint is not None:
        if prepares:
            attempt(backend.prepare, constraint.kind)
        attempt(_use, backend, constraint)


def _use(backend: Backend, constraint: Constraint) -> None:
    compiled = backend.compile(constraint)
    mask = masks.allocate_mask(backend.vocab.size)
    for _ in range(2):  # the second time, states have been seen: a path of its own where masks are remembered
        matcher = compiled.start()
        matcher.fill_mask(mask)
        allowed = masks.mask_to_ids(mask)
        if len(allowed):
            matcher.advance(int(allowed[0]))
            matcher.fill_mask(mask)


def throwaway(backend: Backend, kind: str = "") -> Constraint | None:
    """A small constraint of this `kind`, or else of the first kind that the backend takes.

    None if the vocabulary has no plain word.
    """
    word = _plain_word(backend.vocab)
    if word is None:
        return None
    by_kind: dict[str, Constraint] = {
        "regex": Regex(f"(?:{word}){{1,3}}", label=LABEL),
        "choice": Choice([word, word * 2], label=LABEL),
        "grammar": Grammar(f'{GRAMMAR}WORD: "{word}"\n', label=LABEL),
        "json_schema": JsonSchema(SCHEMA, label=LABEL),
    }
    kinds = sorted(backend.kinds, key=lambda taken: taken != kind)
    return next((by_kind[taken] for taken in kinds if taken in by_kind), None)


def _plain_word(vocab: Vocabulary) -> str | None:
    """The first token that is made of ASCII letters and digits; they mean themselves in every syntax."""
    for token in range(vocab.size):
        spelled = vocab.token_bytes(token)
        if spelled.isalnum():  # bytes: ASCII letters and digits only
            return spelled.decode("ascii")
    return None
