"""The canonicity of a tokenizer, made once on a machine and kept on disk.

A stored file (`tokdfa.core.stored_file`) is named by the tokenizer's fingerprint and by the content of the modules that
make it, so that another tokenizer or an edit builds anew. Shapes and ranges are checked, so that no file makes
compiled code read outside its arrays.

Llama 3: 2 s to build, 0.1 s to load. Whatever the way, the sample of `tokdfa.proper.verify` is encoded before use.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.core.folders import cache_folder
from tokdfa.core.stored_file import FileFormat, code_stamp
from tokdfa.proper.byte_fallback import ByteFallback, build_byte_fallback
from tokdfa.proper.canonical import Canonicity
from tokdfa.proper.derivations import Derivations, derive_tokens
from tokdfa.proper.intervals import IntervalLists, build_lists
from tokdfa.proper.merge_rules import MergeRules, extract_rules, letter_tokens
from tokdfa.proper.merge_tree import MergeTree, build_merge_tree
from tokdfa.proper.verify import check_against_reference

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from tokdfa.core.stored_file import Arrays, Header
    from tokdfa.vocabulary.tokenizers import Tokenizer

#: What SentencePiece writes for a space.
HIDDEN_SPACE = "\u2581".encode()
#: The parts of a `Canonicity` that are kept, all made of arrays.
_PARTS: dict[str, Any] = {
    "rules": MergeRules,
    "derivations": Derivations,
    "merge_tree": MergeTree,
    "lists": IntervalLists,
    "fallback": ByteFallback,
}
#: The modules whose content names the files.
_SOURCES = (
    *(f"proper/{name}.py" for name in ("byte_fallback", "derivations", "merge_rules", "merge_tree", "rules_cache")),
    *(f"proper/{name}.pyx" for name in ("bpe", "intervals")),
)
_FORMAT = FileFormat("tokdfa merge rules", 1)


def rules_folder() -> Path:
    """Where canonicities are kept unless the caller names a folder: ``merge-rules`` in the user's cache folder."""
    return cache_folder("merge-rules")


def load_canonicity(tokenizer: Tokenizer) -> Canonicity:
    """The canonicity of `tokenizer`: the same object for the same tokenizer, from memory, disk or scratch.

    Raises TokenizerError for a tokenizer that does not merge, or whose merges we do not reproduce.
    """
    return tokenizer.keep("canonicity", lambda: read_or_build(tokenizer, rules_folder()))


def read_or_build(tokenizer: Tokenizer, folder: Path) -> Canonicity:
    """The canonicity of `tokenizer` from its file in `folder`, or else built and then kept there; verified."""
    path = folder / f"{tokenizer.fingerprint}-{code_stamp(*_SOURCES)}.npz"
    made = _FORMAT.keep(path, partial(_of_parts, tokenizer), lambda: build_canonicity(tokenizer), _parts)
    check_against_reference(made, tokenizer.name)
    return made


def build_canonicity(tokenizer: Tokenizer) -> Canonicity:
    """Everything from the tokenizer's rules, without disk and without verification. Raises TokenizerError."""
    source, vocabulary = tokenizer.merges, tokenizer.vocabulary
    rules = extract_rules(tokenizer)
    derivations = derive_tokens(rules)
    fallback = None
    if source.byte_tokens is not None:
        known = list(letter_tokens(vocabulary, source))
        if source.rule == "pieces":  # SentencePiece reads U+2581 as a space, so its bytes stand in no encoding
            known.append(HIDDEN_SPACE)
        fallback = build_byte_fallback(source.byte_tokens, known, vocabulary.size)
    merge_tree = build_merge_tree(
        derivations, np.zeros(0, dtype=np.int32) if fallback is None else fallback.used_tokens()
    )
    return Canonicity(
        vocabulary, source, rules, derivations, merge_tree, build_lists(rules, derivations, merge_tree), fallback
    )


def _of_parts(tokenizer: Tokenizer, _: Header, arrays: Arrays) -> Canonicity:
    """The canonicity with these `_parts`. Raises KeyError or ValueError for what is none of this tokenizer."""
    parts: dict[str, Any] = {"fallback": None}
    for name, kind in _PARTS.items():
        if name != "fallback" or tokenizer.merges.byte_tokens is not None:
            parts[name] = kind(*(arrays[f"{name}.{field}"] for field in kind.__match_args__))
    if not _fits(tokenizer.vocabulary.size, **parts):
        raise ValueError("its parts do not fit together")
    return Canonicity(tokenizer.vocabulary, tokenizer.merges, **parts)


def _parts(made: Canonicity) -> tuple[Header, Arrays]:
    """What its file holds."""
    return {}, {
        f"{name}.{field}": getattr(part, field)
        for name, kind in _PARTS.items()
        if (part := getattr(made, name)) is not None
        for field in kind.__match_args__
    }


def _fits(
    size: int,
    rules: MergeRules,
    derivations: Derivations,
    merge_tree: MergeTree,
    lists: IntervalLists,
    fallback: ByteFallback | None,
) -> bool:
    """Whether every array has its type, and every number in it leads into the array it is an index of."""
    parts = rules, derivations, merge_tree, lists
    numbers = [getattr(part, name) for part in parts for name in part.__match_args__ if name != "is_proper"]
    if any(array.dtype != np.int32 or array.ndim != 1 for array in numbers) or derivations.is_proper.dtype != np.bool_:
        return False
    in_forest, rule_count = len(merge_tree.order), len(rules.left)
    per_token = [
        *vars(derivations).values(),
        merge_tree.number,
        merge_tree.end,
        merge_tree.irregular_starts,
        lists.state_of,
    ]
    return (
        all(len(array) == size for array in per_token)
        and all(len(array) == rule_count for array in (rules.right, rules.result, rules.rank))
        and all(_below(array, size, 0) for array in (rules.left, rules.right, rules.result, rules.spelling))
        and all(_below(array, size) for array in (derivations.left, derivations.right))
        and np.array_equal(derivations.left >= 0, derivations.right >= 0)
        and bool(np.all((derivations.level < 0) | (derivations.left >= 0)))
        and _below(merge_tree.order, size, 0)
        and _below(merge_tree.children, size, 0)
        and _below(merge_tree.number, in_forest)
        and _below(merge_tree.end, in_forest + 1)
        and _below(merge_tree.number[merge_tree.children], in_forest, 0)
        and _offsets(rules.row_starts, size, rule_count)
        and _offsets(rules.spelling_starts, size, len(rules.spelling))
        and _offsets(merge_tree.child_starts, size, len(merge_tree.children))
        and _below(merge_tree.irregular_starts, len(merge_tree.children) + 1, 0)
        and _offsets(lists.list_starts, len(lists.list_starts) - 1, len(lists.starts))
        and len(lists.starts) == len(lists.ends)
        and _below(lists.starts, in_forest, 0)
        and _below(lists.ends, in_forest + 1, 0)
        and _below(lists.state_of, len(lists.list_starts) - 1)
        and (fallback is None or _fallback_fits(size, fallback))
    )


def _fallback_fits(size: int, fallback: ByteFallback) -> bool:
    return (
        [array.dtype for array in (fallback.tokens, fallback.byte_of, fallback.table)] == [np.int32, np.int16, np.int32]
        and fallback.tokens.shape == (256,)
        and fallback.byte_of.shape == (size,)
        and fallback.table.ndim == 2
        and fallback.table.shape[1] == 256
        and _below(fallback.tokens, size)
        and _below(fallback.byte_of, 256)
        and _below(fallback.table, len(fallback.table))
    )


def _below(array: npt.NDArray[Any], bound: int, lowest: int = -1) -> bool:
    return not array.size or (int(array.min()) >= lowest and int(array.max()) < bound)


def _offsets(array: npt.NDArray[np.int32], rows: int, total: int) -> bool:
    """Whether `array` holds the row starts of `rows` rows with `total` entries."""
    return bool(len(array) == rows + 1 and array[0] == 0 and array[-1] == total and np.all(np.diff(array) >= 0))
