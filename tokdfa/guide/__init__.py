r"""`Guide`, `Index` and `Vocabulary` as outlines_core has them, over our own index: switch by changing an import.

Words. An *index* is the table state x token -> state of a constraint and a vocabulary, built in advance. A *guide*
walks it for one generated text: it knows its *state*, lists the tokens that may come next and takes one of them. The
names, arguments and results are those of outlines_core 0.2.14. 001 (section E) adds the masks: `Guide.get_tokens` and
`Guide.advance` also fill a buffer of the caller, and then make no list.

What a state of a guide means is outlines_core's: `Guide.is_finished` says that the text may end here, not that it has
ended. Where it may, the end token is among the allowed tokens and, in `Index.get_transitions`, leads back to its state;
but `Index.get_next_state` has no state for it, and a guide never takes it. The loop stops when it is sampled.

What differs, on purpose:

- *Patterns.* outlines_core reads Rust regexes, we read those of Python's `re`, full match (see
  `tokdfa.constraint.Regex`): anchors and look-ahead are understood, ``[a&&b]`` and ``\z`` are not. No text is lost: for
  outlines_core ``a|ab`` is ``a`` alone (see `tokdfa.backends.peers.outlines_core_peer`). An index also takes a
  `Constraint`, and a backend with its options.
- *Vocabularies.* A token of no bytes is never allowed, and an id has one text. Several end tokens are possible, by
  `Vocabulary.of`; an index takes a `tokdfa.Vocabulary` or a `Tokenizer` as well.
- *States* are 0, 1, 2 ... and the start is 0. Lists of tokens ascend.
- *Dead ends.* No token is allowed after which the text cannot be completed.
- *Masks* cover all ids of the vocabulary. outlines_core counts tokens instead: with ids that have gaps, it asks for
  fewer words and leaves out the tokens beyond them.
- *Rollback.* `Guide.reset` forgets the earlier states (outlines_core goes back into the text before the reset),
  ``max_rollback=0`` keeps none (there, four), and copies keep the limit (there, it becomes the number of states kept).
- *Errors* are a `GuideError`, which is a ValueError, or a `GuideTypeError`, which is a TypeError. The cause, such as a
  `RegexSyntaxError` with its position, is the ``__cause__``. A negative state or id is unknown, not an OverflowError.
- *Pickles* hold what an index was made from, and loading one compiles it again. There is no ``from_binary``.
"""

from tokdfa.guide.arguments import GuideError, GuideTypeError
from tokdfa.guide.buffers import create_mask
from tokdfa.guide.guide import Guide
from tokdfa.guide.index import Index
from tokdfa.guide.vocabulary import Vocabulary

__all__ = ["Guide", "GuideError", "GuideTypeError", "Index", "Vocabulary", "create_mask"]
