"""What a notebook shows of automata, masks, matchers and tries: tables and drawings in place of arrays.

A *view* is an object looked at: it knows how to be one short line (`repr`), and how to be a piece of a page
(`_repr_html_`, which Jupyter asks for). `show` makes the view of anything that has one. With ``%load_ext
tokdfa.display`` Jupyter shows those objects that need no vocabulary beside them like that without being asked.

Pieces of pages are complete in themselves: no scripts, nothing loaded, no drawing as a bitmap. Text is drawn in the
colour of its surroundings, so that they can be read on light and on dark pages. Whatever a token spells is escaped.

- `view`: what all views have in common, and the few pieces of HTML that they are made of.
- `masks`, `automata`, `matchers`, `tries`: one view each.

What this package does not do: figures for print (`tokdfa.automata.drawing`, `tokdfa.lab.report`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.errors import TokdfaError, a_type
from tokdfa.mask import as_array

if TYPE_CHECKING:
    from tokdfa.display.view import View

__all__ = ["load_ipython_extension", "show"]


def show(subject: Any, vocab: Any = None, **options: Any) -> View:
    """The view of a mask (with its vocabulary), an automaton, a matcher, a compiled constraint or a token trie.

    A mask is an array of numpy or a torch tensor on the CPU; its vocabulary is one, or anything that `load_tokenizer`
    takes. What `tokdfa.constrain` returns is shown as the constraint that it has compiled.

    `options` are those of the view: ``show(mask, vocab, limit=20)``, ``show(dfa, highlight=[3])``, ``show(matcher,
    after=tokens)``, ``show(vocab.trie, prefix=b"th", limit=40)``; see `MaskView`, `AutomatonView`, `MatcherView` and
    `TrieView`. Raises TokdfaError for anything else, and for a mask without a vocabulary.
    """
    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.vocabulary.trie import TokenTrie

    if hasattr(subject, "__array__"):
        from tokdfa.display.masks import MaskView
        from tokdfa.vocabulary.tokenizers import as_vocabulary

        if vocab is None:
            raise TokdfaError("a mask holds numbers of tokens only: give its vocabulary, show(mask, vocab)")
        return MaskView(as_array(subject), as_vocabulary(vocab), **options)
    if vocab is not None:
        raise TokdfaError(f"only a mask needs a vocabulary beside it, {a_type(subject)} does not")
    if isinstance(subject, Dfa):
        from tokdfa.display.automata import AutomatonView

        return AutomatonView(subject, **options)
    if isinstance(subject, Matcher):
        from tokdfa.display.matchers import MatcherView

        return MatcherView(subject, **options)
    compiled = getattr(subject, "compiled", subject)
    if isinstance(compiled, CompiledConstraint):
        from tokdfa.display.matchers import CompiledView

        return CompiledView(compiled, **options)
    if isinstance(subject, TokenTrie):
        from tokdfa.display.tries import TrieView

        return TrieView(subject, **options)
    raise TokdfaError(
        f"there is no view of {a_type(subject)}; show takes a mask and its vocabulary, a Dfa, a matcher, "
        "a compiled constraint or a token trie"
    )


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext tokdfa.display``: from now on automata, matchers, compiled constraints and tries show themselves."""
    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.vocabulary.trie import TokenTrie

    formatter = shell.display_formatter.formatters["text/html"]
    for kind in (Dfa, Matcher, CompiledConstraint, TokenTrie):
        formatter.for_type(kind, lambda subject: show(subject)._repr_html_())
