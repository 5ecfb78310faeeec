"""Tags whose texts hold markers of a vocabulary: ``<tool_call>`` is a token where there is one, and text elsewhere.

Servers and chat templates write tags as texts, and a marker in them means its token: characters of a marker that other
tokens spell are not what the model was trained to write (`tokdfa.vocabulary.markers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.core.arguments import as_text
from tokdfa.grammar.parts import Part, seq, special, tag, text, up_to
from tokdfa.vocabulary.loading import cut_at_names
from tokdfa.vocabulary.tokenizers import as_vocabulary

if TYPE_CHECKING:
    from typing import Any

    from tokdfa.grammar.parts import Tag


def marked_text(written: str, vocab: Any) -> Part:
    """A text in which the names of special tokens are these tokens. `vocab`: anything that `load_tokenizer` takes, or a
    vocabulary. An end token is left out, as in descriptions of tools: the text may end there.
    """
    return seq(*map(_part, _cut(written, vocab)))


def marked_tag(
    begin: str, content: Part | str | None = None, end: Part | str = "", *, vocab: Any, trigger: str | None = None
) -> Tag:
    """As `tokdfa.grammar.parts.tag`, of texts in which the names of special tokens are these tokens.

    A token that begins the tag is its trigger, and what follows the token a part of its content. In a `begin` that has
    a marker behind other characters all is text, unless these characters hold the `trigger`.
    """
    first, *rest = _cut(begin, vocab) or [begin]
    if isinstance(first, int):
        trigger = None
    elif rest and (trigger is None or not first.startswith(trigger)):
        first, rest = begin, []
    last: Part | str = end
    if isinstance(end, str):
        pieces = _cut(end, vocab)
        last = seq(*map(_part, pieces)) if len(pieces) != 1 else _part(pieces[0])
        if content is None:
            content, last = up_to(last if len(pieces) == 1 else text(end)), ""
    if rest:
        content = seq(*map(_part, rest), "" if content is None else content)
    return tag(_part(first), content, last, trigger=trigger)


def marker(written: str, vocab: Any) -> Part | None:
    """The special token that is printed so, if there is one and it ends no text."""
    pieces = _cut(written, vocab)
    return _part(pieces[0]) if len(pieces) == 1 and isinstance(pieces[0], int) else None


def _cut(written: str, vocab: Any) -> list[str | int]:
    """A text cut at names of special tokens: texts and ids, without end tokens."""
    vocabulary = as_vocabulary(vocab)
    pieces = cut_at_names(vocabulary.special_tokens)(as_text(written, "a tag's text"))
    return [piece for piece in pieces if piece not in vocabulary.end_token_set]


def _part(piece: str | int) -> Part:
    return special(piece) if isinstance(piece, int) else text(piece)
