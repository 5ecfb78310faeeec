"""Masks that must stay as they are: one digest for each constraint, kept in ``tests/reference_masks.json``.

    python -m tests.reference_masks compare                   # what the repository holds: schemas, grammars, regexes
    python -m tests.reference_masks compare --schemas DIR     # and the cases of a folder in MaskBench's form
    python -m tests.reference_masks write --schemas DIR       # after a change that is meant
    python -m tests.reference_masks steps SECTION NAME        # every mask of one constraint, to compare

A *section* is a list of constraints with one backend, its options and a tokenizer. For each constraint the masks along
its texts and along one random walk, drawn from the masks themselves by a seed, go into a digest of 64 bits, with the
number of masks. A text ends at its first refused token. Where an engine refuses the constraint or a step, the type of
the error takes the place of the digest. Equal masks have equal digests, whichever engine made them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

import tokdfa
from tokdfa.errors import TokdfaError
from tokdfa.lab.measure.schema_corpus import read_cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tokdfa.backends.base import Matcher

FILE = Path(__file__).with_suffix(".json")
INPUTS = Path(__file__).parent.parent / "experiments" / "inputs"
#: Masks of a random walk at most.
STEPS = 100


class Section(NamedTuple):
    """Constraints from one place under one backend; `kind` says which place, `constraint` are options of theirs."""

    kind: str
    tokenizer: str
    backend: str
    options: Mapping[str, Any] = MappingProxyType({})
    constraint: Mapping[str, Any] = MappingProxyType({})


#: Those whose kind is `cases` need the folder given by ``--schemas``.
SECTIONS = {
    "cases": Section("cases", "llama3", "pushdown_trie"),
    "cases in any order": Section("cases", "llama3", "pushdown_trie", constraint={"order": "any"}),
    "schemas": Section("schemas", "llama3", "pushdown_trie"),
    "schemas, generation": Section("schemas", "mistral-v1", "pushdown_trie", constraint={"profile": "generation"}),
    "schemas, earley_trie": Section("schemas", "mistral-v1", "earley_trie"),
    "schemas without some bytes": Section("schemas", "smollm2", "pushdown_trie"),
    "grammars": Section("grammars", "llama3", "pushdown_trie"),
    "grammars, any lexer": Section("grammars", "tekken", "pushdown_trie", {"lexer": "any"}),
    "grammars, earley_trie": Section("grammars", "llama3", "earley_trie"),
    "grammars as llguidance": Section("grammars", "tekken", "earley_trie", {"lexer": "one_byte", "ignore": "between"}),
    "grammars without some bytes": Section("grammars", "smollm2", "pushdown_trie"),
    "grammars, cfg_fsm": Section("grammars", "mistral-v1", "cfg_fsm"),
    "regexes": Section("regexes", "llama3", "token_index", {"lazy": True}),
    "regexes, tokens_dfa": Section("regexes", "mistral-v1", "tokens_dfa"),
    "regexes, pushdown_trie": Section("regexes", "tekken", "pushdown_trie"),
    "regexes, proper": Section("regexes", "mistral-v1", "token_index", {"lazy": True, "proper": True}),
    "regexes, cartesian_merge": Section("regexes", "mistral-v1", "cartesian_merge"),
}


def items(section: Section, schemas: Path | None) -> Iterator[tuple[str, type[tokdfa.Constraint], Any, list[str]]]:
    """(name, type and source of a constraint, texts) of all in a section."""
    if section.kind in {"cases", "schemas"}:
        folder = schemas if section.kind == "cases" else INPUTS / "schemas"
        if folder is not None:
            for case in read_cases(folder):
                yield case.name, tokdfa.JsonSchema, case.schema_text, [test.text for test in case.tests]
    elif section.kind == "grammars":
        for path in sorted((INPUTS / "grammars").glob("*.lark")):
            texts = yaml.safe_load(path.with_suffix(".yaml").read_text())
            yield path.stem, tokdfa.Grammar, path.read_text(), [*texts["accepted"], *texts.get("refused", [])]
    else:
        texts = yaml.safe_load((INPUTS / "regex_texts.yaml").read_text())
        for entry in yaml.safe_load((INPUTS / "regexes.yaml").read_text()):
            yield entry["label"], tokdfa.Regex, entry["regex"], texts


class Recorder:
    """Takes the masks of one constraint."""

    def __init__(self, vocabulary: tokdfa.Vocabulary) -> None:
        self.mask = tokdfa.allocate_mask(vocabulary.size)
        self.ends = vocabulary.end_token_set
        self.digest = hashlib.blake2b(digest_size=8)
        self.steps: list[str] = []

    def fill(self, matcher: Matcher) -> None:
        """Take the mask of a state."""
        matcher.fill_mask(self.mask)
        self.digest.update(self.mask.tobytes())
        self.steps.append(hashlib.blake2b(self.mask.tobytes(), digest_size=4).hexdigest())

    def take_text(self, matcher: Matcher, tokens: list[int]) -> None:
        """The masks along a text, to its end or its first refused token."""
        self.fill(matcher)
        for token in tokens:
            if not int(self.mask[token // 32]) >> (token % 32) & 1:
                return
            matcher.advance(token)
            self.fill(matcher)

    def take_walk(self, matcher: Matcher, rng: random.Random) -> None:
        """The masks along a random walk."""
        for _ in range(STEPS):
            self.fill(matcher)
            allowed = [token for token in tokdfa.mask_to_ids(self.mask).tolist() if token not in self.ends]
            if not allowed:
                return
            matcher.advance(rng.choice(allowed))

    @property
    def summary(self) -> str:
        return f"{len(self.steps)} {self.digest.hexdigest()}"


def record(name: str, make: Any, source: Any, texts: list[str], section: Section) -> tuple[str, list[str]]:
    """(number of masks and their digest, or where an error came and its type; a digest of each mask)."""
    tokenizer = tokdfa.load_tokenizer(section.tokenizer)
    taken = Recorder(tokenizer.vocabulary)
    try:
        constraint = make(source, **section.constraint)
        compiled = tokdfa.compile(constraint, tokenizer.vocabulary, backend=section.backend, **section.options)
        for text in texts:
            taken.take_text(compiled.start(), list(tokenizer.encode(text)))
        taken.take_walk(compiled.start(), random.Random(name))
    except TokdfaError as error:
        return f"{len(taken.steps)} {type(error).__name__}", [*taken.steps, str(error)]
    return taken.summary, taken.steps


def differences(kept: dict[str, str], found: dict[str, str]) -> list[str]:
    """A line for each constraint of a section whose masks differ from those that are kept, or that is not kept."""
    return [
        f"  {name}: kept {kept.get(name)}, found {summary}"
        for name, summary in found.items()
        if kept.get(name) != summary
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("verb", choices=("write", "compare", "steps"))
    parser.add_argument("names", nargs="*", help="sections; for `steps` a section and the name of a constraint")
    parser.add_argument("--schemas", type=Path, help="folder of cases in MaskBench's form")
    parser.add_argument("--file", type=Path, default=FILE)
    given = parser.parse_intermixed_args(arguments)
    if given.verb == "steps":
        title, name = given.names
        for item in items(SECTIONS[title], given.schemas):
            if item[0] == name:
                print(*record(*item, SECTIONS[title])[1], sep="\n")
        return 0
    kept = json.loads(given.file.read_text()) if given.file.exists() else {}
    different = 0
    for title, section in SECTIONS.items():
        if (given.names and title not in given.names) or (section.kind == "cases" and given.schemas is None):
            continue
        found = {item[0]: record(*item, section)[0] for item in items(section, given.schemas)}
        is_new = title not in kept and given.verb == "write"
        lines = [] if is_new else differences(kept.get(title, {}), found)
        different += len(lines)
        masks = sum(int(summary.split()[0]) for summary in found.values())
        print(f"{title}: {masks} masks of {len(found)} constraints, {len(lines)} differ", *lines, sep="\n", flush=True)
        if given.verb == "write":
            kept[title] = found
            given.file.write_text(json.dumps(kept, indent=0, sort_keys=True, ensure_ascii=False) + "\n")
    return bool(different) and given.verb == "compare"


if __name__ == "__main__":
    sys.exit(main())
