"""A matcher's state, and what compiling made, as tables.

A matcher knows what may come next, not what was written: give the tokens that it took as `after`. Looking does not
change it: masks and forced bytes are asked of forks, and the counters are those from before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa import mask as masks
from tokdfa.core.arguments import as_tokens
from tokdfa.display.masks import MaskView
from tokdfa.display.view import View, chip, escape, facts, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import CompiledConstraint, Matcher

#: How far forced bytes are followed, and how many tokens of the text are shown, the last ones.
FORCED_BYTES, SHOWN_TOKENS = 64, 40


class MatcherView(View):
    """A matcher as it is now. `after`: the tokens that it took; `limit`: rows of the table of its mask.

    Costs a few masks; `repr` costs one. Raises VocabularyError if `after` holds what is no token.
    """

    def __init__(self, matcher: Matcher, after: Sequence[int] | None = None, limit: int = 8) -> None:
        self.vocab = matcher.vocab
        self.counters = dict(matcher.counters)
        self.after = None if after is None else list(as_tokens(after, self.vocab.size, "after"))
        self.is_finished, self.can_end = matcher.is_finished(), matcher.can_end()
        packed = masks.allocate_mask(self.vocab.size)
        matcher.fork().fill_mask(packed)
        self.mask = MaskView(packed, self.vocab, limit)
        self._text = b"" if self.after is None else self.vocab.spell(self.after)
        self._matcher, self._kind = matcher.fork(), type(matcher).__name__.lstrip("_")

    @property
    def status(self) -> str:
        """Finished, may end, or must go on."""
        return "finished" if self.is_finished else "may end" if self.can_end else "must go on"

    def __repr__(self) -> str:
        text = "" if self.after is None else f"after {self._text[-60:]!r}, "
        return (
            f"MatcherView({self._kind}, {text}{self.status}, {len(self.mask.allowed):,} of {self.vocab.size:,} tokens)"
        )

    def forced_bytes(self) -> bytes:
        """What every text goes on with from here, at most 64 bytes."""
        return b"" if self.is_finished else self._matcher.fork().forced_bytes(FORCED_BYTES)

    def _body(self) -> str:
        pairs = []
        if self.after is not None:
            shown = self.after[-SHOWN_TOKENS:]
            chips = [chip(self.vocab.token_bytes(token), f"token {token}") for token in shown if self._spells(token)]
            left_out = "… " if len(shown) < len(self.after) else ""
            pairs.append(("text so far", left_out + " ".join(chips) or "empty"))
        pairs.append(("the text", self.status))
        forced = self.forced_bytes()
        pairs.append(("must come next", chip(forced) if forced else "nothing in particular"))
        if self.counters:
            counted = (f"{escape(name.replace('_', ' '))} {count:,}" for name, count in self.counters.items())
            pairs.append(("work so far", ", ".join(counted)))
        return f"<div>{escape(self._kind)}</div>{facts(pairs)}{self.mask._body()}"

    def _spells(self, token: int) -> bool:
        return bool(self.vocab.lengths[token])


class CompiledView(View):
    """What compiling made: its phases in milliseconds, and its sizes."""

    def __init__(self, compiled: CompiledConstraint) -> None:
        self._headline = f"{compiled.constraint.name}, {compiled.backend_name}, {compiled.vocab.name or 'unnamed'}"
        self.phases, self.sizes = dict(compiled.phases), dict(compiled.sizes)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {size:,}" for name, size in self.sizes.items())
        return f"CompiledView({self._headline}{': ' + sizes if sizes else ''})"

    def _body(self) -> str:
        phases = [(escape(name), f"{seconds * 1000:,.3f}") for name, seconds in self.phases.items()]
        sizes = [(escape(name.replace("_", " ")), f"{size:,}") for name, size in self.sizes.items()]
        parts = [f"<div>{escape(self._headline)}</div>"]
        parts += [table(("phase", "ms"), phases, numbers=(1,))] if phases else []
        parts += [table(("built", "size"), sizes, numbers=(1,))] if sizes else []
        return "".join(parts)
