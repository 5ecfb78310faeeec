r"""Pre-tokenizers as marked languages: from a description to a deterministic automaton over bytes and a marker.

Words. A *pre-tokenizer* cuts a text into *pieces*; merges never cross a border between two of them. A *marked text* is
the text with a *marker* at each border. The marked texts of a pre-tokenizer are a regular language, the *marked
language*, however far its pattern looks ahead; `MarkedDfa` is its minimal automaton. With it the border, which a
pattern decides by looking at what follows, becomes a letter like others: a product of automata, a trie walk or a run
of merge rules can read it.

How it is made, one module an idea:

- `tokdfa.regex.parse`: the pattern of a step, in the dialect of its library, as a tree.
- `pretokenizer_classes`: the characters that the pattern tells apart, asked of the library itself.
- `pretokenizer_program`: the pattern as a program with priorities; the vectors of what succeeds, from the right.
- `pretokenizer_automaton`: guess a vector and verify it, from the left: an automaton over classes; sequences of steps.
- `pretokenizer_bytes`: classes of characters become bytes.
- `pretokenizer_dfa`: the result.

The result is kept on disk, so that the searches through all characters are done once on a machine. A file is named by a
hash of the description, the versions of the libraries that were asked, and the content of the modules that build the
automaton, so an edit or an update builds anew.

A *description* is a list of steps, as `pretokenizer_json` reads them from a file, each a dictionary with the key
``kind``; every step cuts up each piece of the one
before on its own (so an end of a piece is an end of text to the next step). Without steps a text is one piece.

=================  =================================================================================================
kind               other keys
=================  =================================================================================================
split              ``pattern``; ``dialect``: "tiktoken", "oniguruma" or "literal" (the pattern is a text);
                   ``unmatched``: "piece" or "lost" (default: lost in tiktoken, else piece); ``behavior``: "isolated"
                   (default), "removed", "contiguous", "merged_with_previous", "merged_with_next"; ``invert`` (False)
digits             ``individual``: each digit a piece, or each run of digits
punctuation        ``behavior`` (as above): ASCII punctuation and ``\p{P}``
whitespace_split   (none): white space is lost
byte_level         ``use_regex``: GPT-2's pattern; ``add_prefix_space``. Once; what follows reads characters for bytes
metaspace          ``replacement``: what stands for a space inside the tokenizer; ``split``: a piece begins at each
                   space; ``prepend_scheme``: "never". Only as the last step
=================  =================================================================================================

Behind ``byte_level`` a step sees each byte as a character of GPT-2's alphabet (Falcon's steps for digits do, to which
the bytes B2, B3, B9, BC, BD and BE are digits then, as the characters are); it is made over these characters, and read
over bytes.

The text is what tokens spell, so nothing may be put before it: ``add_prefix_space`` and a ``prepend_scheme`` other
than "never" are refused (`tokdfa.vocabulary.huggingface_spelling.without_dummy_prefix` takes them out of a file, as the
loader does). A text with the replacement of a metaspace in it would come back with a space, so it is not accepted.
Special and added tokens are no part of this: a text is plain text.

Tried with the patterns of GPT-2, cl100k, o200k, Llama 3, Tekken, Qwen 2 and SmolLM2: 1,400 to 3,000 states, 1 to 2 s
each, nearly all of it spent in asking the libraries about all characters; 0.01 s from the disk.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokdfa.core.folders import cache_folder
from tokdfa.core.packages import installed_version
from tokdfa.core.stored_file import code_stamp
from tokdfa.errors import TokenizerError
from tokdfa.proper.pretokenizer_automaton import NEVER, SegmentRule, mark_one_step, mark_sequence
from tokdfa.proper.pretokenizer_bytes import bytes_as_letters, letters_as_bytes, read_byte_alphabet, spell_in_bytes
from tokdfa.proper.pretokenizer_classes import check_pattern
from tokdfa.proper.pretokenizer_dfa import FORMAT, MarkedDfa
from tokdfa.regex.dialects import LIBRARY_DIALECTS
from tokdfa.regex.library_parser import source_sets
from tokdfa.regex.parse import parse
from tokdfa.regex.syntax_tree import Node, SourceSet, concat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: What ByteLevel of the package tokenizers cuts with: the pattern of GPT-2's first release.
BYTE_LEVEL_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

#: The modules on which automata depend: those that build them, and those that read the patterns.
_SOURCES = (
    "proper/pretokenizer*.py",
    *(f"regex/{name}.py" for name in ("atoms", "dialects", "library_parser", "parse", "parser", "syntax_tree")),
)


def build_marked_dfa(steps: Sequence[Mapping[str, Any]], cache: bool | Path = True) -> MarkedDfa:
    """The marked language of a description. `cache`: whether to use the folder on disk, or another folder.

    Cost: 0.1 to 0.6 s for each new character set of a pattern, the first time in a process; else some 0.1 s; from the
    disk 0.01 s. Raises TokenizerError (a step that changes the text, a pattern that the library refuses),
    RegexSyntaxError and RegexUnsupported with the offset in the pattern, LimitExceeded, MissingDependency.
    """
    level = next((number for number, step in enumerate(steps) if step["kind"] == "byte_level"), len(steps) - 1)
    read = [_read_step(step, number, number == level) for number, step in enumerate(steps)]
    of_text = [cut for cuts in read[: level + 1] for cut in cuts]
    of_bytes = [cut for cuts in read[level + 1 :] for cut in cuts]

    def build() -> MarkedDfa:
        for step in steps:
            if step["kind"] == "split" and step["dialect"] in LIBRARY_DIALECTS:
                check_pattern(step["pattern"], step["dialect"])
        letters = mark_one_step(*(of_text[0] if of_text else (NEVER, SegmentRule())))
        for pattern, rule in of_text[1:]:
            letters = mark_sequence(letters, mark_one_step(pattern, rule))
        marked = spell_in_bytes(letters)
        for pattern, rule in of_bytes:
            alphabet = read_byte_alphabet(mark_one_step(pattern, rule))
            marked = letters_as_bytes(mark_sequence(bytes_as_letters(marked), alphabet))
        return marked

    if cache is False:
        return build()
    origins = {wanted.origin for pattern, _ in (*of_text, *of_bytes) for wanted in source_sets(pattern)} - {"character"}
    libraries = {"tiktoken" if origin == "tiktoken" else "tokenizers" for origin in origins}
    # building says so if a library is missing, so no automaton is kept without its version
    versions = {name: installed_version(name) or "" for name in sorted(libraries)}
    made_of = {"steps": [dict(step) for step in steps], "versions": versions, "code": code_stamp(*_SOURCES)}
    described = json.dumps(made_of)
    folder = cache_folder("pretokenizers") if cache is True else Path(cache)
    path = folder / f"{hashlib.sha256(described.encode()).hexdigest()[:32]}.npz"
    return FORMAT.keep(path, partial(MarkedDfa.of_parts, described), build, lambda made: made.parts(described))


def _read_step(step: Mapping[str, Any], number: int, may_rewrite: bool) -> list[tuple[Node, SegmentRule]]:
    """A step as patterns with their rules, one after another; none if it cuts nothing."""
    kind = step["kind"]
    if kind == "split":
        return [(_read_pattern(step), _split_rule(step))]
    if kind == "digits":
        behavior = "isolated" if step["individual"] else "contiguous"
        return [(SourceSet("pre_tokenizer", "Digits"), _rule(behavior))]
    if kind == "punctuation":
        return [(SourceSet("pre_tokenizer", "Punctuation"), _rule(step.get("behavior", "isolated")))]
    if kind == "whitespace_split":
        return [(SourceSet("pre_tokenizer", "WhitespaceSplit"), _rule("removed"))]
    if not may_rewrite:
        raise TokenizerError(f"step {number} ({kind}) writes its text in other characters, so it must be the last step")
    if kind == "byte_level":
        if step.get("add_prefix_space"):
            raise TokenizerError(f"step {number}: add_prefix_space puts a space before the text; pass False")
        return [(parse(BYTE_LEVEL_PATTERN, dialect="oniguruma"), _rule("isolated"))] if step["use_regex"] else []
    if step.get("prepend_scheme", "never") != "never":
        raise TokenizerError(f"step {number}: prepend_scheme puts a space before the text; pass 'never'")
    replacement = step.get("replacement", "\u2581")
    if len(replacement) != 1 or replacement == " ":
        raise TokenizerError(f"step {number}: the replacement is one character other than a space, not {replacement!r}")
    cuts: list[tuple[Node, SegmentRule]] = [(SourceSet("character", replacement), _rule("removed"))]
    if step.get("split", True):
        cuts.append((SourceSet("character", " "), _rule("merged_with_next")))
    return cuts


def _read_pattern(step: Mapping[str, Any]) -> Node:
    if step["dialect"] != "literal":
        return parse(step["pattern"], dialect=step["dialect"])
    if not step["pattern"]:
        raise TokenizerError("a literal pattern needs at least one character")
    return concat(SourceSet("character", letter) for letter in step["pattern"])


def _split_rule(step: Mapping[str, Any]) -> SegmentRule:
    rule = _rule(step.get("behavior", "isolated"), step.get("invert", False))
    unmatched = step.get("unmatched", "lost" if step["dialect"] == "tiktoken" else "piece")
    return SegmentRule((rule.lost[0] or unmatched == "lost", rule.lost[1]), rule.cuts)


def _rule(behavior: str, invert: bool = False) -> SegmentRule:
    """What the package tokenizers does with *delimiters*: the matches, or if `invert` the stretches between them."""

    def is_delimiter(flag: int) -> bool:
        return bool(flag) != invert

    def cut(left: int, right: int) -> bool:
        match behavior:
            case "contiguous":
                return left != right
            case "merged_with_previous":
                return is_delimiter(left) or not is_delimiter(right)
            case "merged_with_next":
                return is_delimiter(right) or not is_delimiter(left)
        return True

    removed = behavior == "removed"
    return SegmentRule(
        lost=(removed and is_delimiter(0), removed and is_delimiter(1)),
        cuts=((cut(0, 0), cut(0, 1)), (cut(1, 0), cut(1, 1))),
    )
