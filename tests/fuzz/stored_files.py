"""``stored``: everything that the package writes to disk and reads again, changed in between, read and used.

The head is the kind of file (`_KINDS`); the body a tuple of edits (`edited`). Numpy archives are also changed where
their digest does not help: an array is replaced, or claims another shape, and the digest made right.
"""

from __future__ import annotations

import io
import itertools
import json
import tempfile
import zipfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

import tokdfa
from tests.fuzz.case import Case
from tests.fuzz.mutations import NUMBERS, odd_values
from tests.fuzz.walk import WrongMask, vocabulary, walk
from tests.vocabulary.tokenizer_files import byte_fallback
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown, PushdownTrie
from tokdfa.core.stored_file import BLANK, seal
from tokdfa.errors import StoreError, TokenRefused
from tokdfa.lab.run import store
from tokdfa.proper.pretokenizer_dfa import FORMAT as MARKED
from tokdfa.proper.pretokenizer_dfa import MarkedDfa
from tokdfa.proper.rules_cache import read_or_build
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

GRAMMAR = tokdfa.Grammar('start: "[" [item ("," item)*] "]"\nitem: start | /[a-z]{1,3}/ | "ab"\n')
SCHEMA = tokdfa.JsonSchema({"properties": {"a": {"maxLength": 5, "type": "string"}, "b": {"enum": [1, "x"]}}})
FINGERPRINT = "0" * 32

#: Shapes that arrays claim.
CLAIMS = ("(99999999999,)", "(4000000000,)", "(99999999999, 2)", "(-1,)", "()", "(2, 2)", "(0,)", "((((((", "(1, -4)")

Edit = tuple[Any, ...]


def edited(data: bytes, edits: Sequence[Edit]) -> bytes:
    """`data` with edits. Places count modulo what there is, so that every edit fits every file.

    ("set", array, place, number), ("resize", array, length), ("type", array, dtype), ("drop", array),
    ("header", key, value), ("claim", array, shape): in an archive. ("flip", place, bit), ("cut", place),
    ("put", place, bytes): in the file. Those in the archive come first.
    """
    inside = [edit for edit in edits if edit[0] not in ("flip", "cut", "put")]
    if inside:
        data = _edited_archive(data, inside)
    for edit in edits:
        place = edit[1] % (len(data) + 1) if isinstance(edit[1], int) else 0
        if edit[0] == "flip" and place < len(data):
            data = data[:place] + bytes([data[place] ^ 1 << edit[2]]) + data[place + 1 :]
        elif edit[0] == "cut":
            data = data[:place]
        elif edit[0] == "put":
            data = data[:place] + edit[2] + data[place + len(edit[2]) :]
    return data


def _edited_archive(data: bytes, edits: Sequence[Edit]) -> bytes:
    with np.load(io.BytesIO(data)) as archive:
        arrays = dict(archive)
    header = json.loads(arrays.pop("header").tobytes()) if "header" in arrays else None
    claims: dict[str, str] = {}
    for kind, which, *rest in edits:
        name = sorted(arrays)[which % len(arrays)] if arrays else ""
        if kind == "header" and header is not None:
            _put_in(header, which, rest[0])
        elif kind == "set" and arrays and arrays[name].size:
            array = arrays[name].copy()
            with np.errstate(all="ignore"):
                number = np.array(rest[1] % 2**64, dtype=np.uint64)
                array.flat[rest[0] % array.size] = number.astype(array.dtype) if array.dtype != bool else rest[1] % 2
            arrays[name] = array
        elif kind == "resize" and arrays:
            arrays[name] = np.resize(arrays[name], (rest[0], *arrays[name].shape[1:]))
        elif kind == "type" and arrays:
            arrays[name] = arrays[name].astype(rest[0])
        elif kind == "drop":
            arrays.pop(name, None)
        elif kind == "claim":
            claims[name] = rest[0]
    if header is not None:
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    return _archive(arrays, claims)


def _archive(arrays: dict[str, Any], claims: dict[str, str]) -> bytes:
    """A sealed numpy archive in which some arrays claim another shape than they have."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array)
            written = content.getvalue()
            if name in claims:
                shown = repr(array.shape).encode()
                claimed = claims[name].encode().ljust(len(shown))
                begin = written.index(shown)
                room = written.index(b"\n", begin) - begin
                written = (
                    written[:begin]
                    + (claimed + written[begin + len(shown) : begin + room].rstrip()).ljust(room)[:room]
                    + written[begin + room :]
                )
            archive.writestr(f"{name}.npy", written)
        archive.comment = BLANK
    return seal(buffer.getvalue())


def _put_in(header: dict[str, Any], which: int, value: Any) -> None:
    """Replace the value at some place of a header."""
    here: Any = header
    while True:
        keys = sorted(here) if isinstance(here, dict) else range(len(here))
        key = list(keys)[which % len(keys)]
        which //= len(keys)
        if not (isinstance(here[key], dict | list) and here[key] and which):
            here[key] = value
            return
        here = here[key]


def _edits() -> st.SearchStrategy[tuple[Edit, ...]]:
    which, place = st.integers(0, 15), st.integers(0, 2**16)
    numbers = st.sampled_from(NUMBERS) | st.integers(-3, 40)
    inside = st.one_of(
        st.tuples(st.just("set"), which, place, numbers),
        st.tuples(st.just("set"), which, place, numbers),
        st.tuples(st.just("resize"), which, st.integers(0, 40)),
        st.tuples(st.just("type"), which, st.sampled_from(("int8", "int64", "uint16", "float32", "bool", "<U3", "S2"))),
        st.tuples(st.just("drop"), which),
        st.tuples(st.just("header"), st.integers(0, 2**12), odd_values(("regex", "choice", "kind", "text", "a"))),
        st.tuples(st.just("claim"), which, st.sampled_from(CLAIMS)),
    )  # fmt: skip
    outside = st.one_of(
        st.tuples(st.just("flip"), place, st.integers(0, 7)),
        st.tuples(st.just("cut"), place),
        st.tuples(st.just("put"), place, st.binary(min_size=1, max_size=8)),
    )
    return st.lists(inside, min_size=1, max_size=3).map(tuple) | st.lists(outside, min_size=1, max_size=3).map(tuple)


def _words() -> Vocabulary:
    """A vocabulary that nothing has been shared with yet."""
    known = vocabulary("words")
    tokens = [known.token_bytes(token) for token in range(known.size)]
    return Vocabulary(tokens, known.end_tokens, known.special_tokens)


class StoredEntry:
    """See the module's docstring."""

    name = "stored"
    file_name = "stored.file"

    def __init__(self) -> None:
        self.seeds: dict[str, bytes] = {}
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._tokenizer: Any = None

    @property
    def folder(self) -> Path:
        assert self._directory is not None
        return Path(self._directory.name)

    @property
    def path(self) -> Path:
        return self.folder / self.file_name

    def prepare(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="fuzz")
        vocab = _words()
        for kind, constraint in (("grammar form", GRAMMAR), ("schema form", SCHEMA)):
            self._keep(kind, PushdownTrie(vocab).compile(constraint).save)  # type: ignore[attr-defined]
        table = np.array([[0, 1], [1, -1]], dtype=np.int32)
        marked = MarkedDfa(
            table,
            (np.arange(256) % 2).astype(np.uint8),
            np.array([True, True]),
            start=0,
            marker=np.array([1, -1], dtype=np.int32),
        )
        self._keep("marked", lambda path: MARKED.write(path, *marked.parts("")))
        self._tokenizer = tokdfa.load_tokenizer(f"hf:{byte_fallback(self.folder / 'tokenizer.json')}")
        read_or_build(self._tokenizer, self.folder / "rules")
        self.seeds["rules"] = next((self.folder / "rules").iterdir()).read_bytes()
        item = {"tokenizer": "bytes", "label": "a", "options": "{}", "seconds": 0.5}
        rows_of_items = [{"item_id": f"i{number}", **item} for number in range(5)]
        part = store._to_parquet(rows_of_items, store.COLUMNS["items"])
        config = b"name: test\nkind: backends\nbackends: [{name: token_index, label: a, options: {}}]\n"
        provenance = b'{"commit": "abc", "versions": {"numpy": "2"}, "times": [1, 2], "seal": "%b"}' % BLANK
        for kind, content in (("part", part), ("config", config + b"# " + BLANK), ("provenance", provenance)):
            self.seeds[f"run {kind}"] = seal(content)
            self.seeds[f"unsealed run {kind}"] = content.replace(BLANK, b"-" * len(BLANK))
        for kind in self.seeds:
            self.run(Case(kind, ()))

    def _keep(self, kind: str, save: Callable[[Path], Any]) -> None:
        save(self.path)
        self.seeds[kind] = self.path.read_bytes()

    def cases(self) -> st.SearchStrategy[Case]:
        return st.builds(Case, st.sampled_from(sorted(self.seeds)), _edits())

    def run(self, case: Case) -> str:
        assert isinstance(case.body, tuple)
        try:
            data = edited(self.seeds[case.head], case.body)
        except (zipfile.BadZipFile, ValueError, TypeError, OverflowError, AttributeError):
            return "no such edit"
        self.path.write_bytes(data)
        kind = case.head.replace(" ", "_").removeprefix("grammar_").removeprefix("schema_").removeprefix("unsealed_")
        try:
            return getattr(self, f"_use_{kind}")(self.path) or "used"
        except (WrongMask, TokenRefused):
            return "used, and wrong"

    def _use_form(self, path: Path) -> None:
        walk(CompiledPushdown.load(path, _words()))

    def _use_marked(self, path: Path) -> None:
        found = MARKED.read(path, partial(MarkedDfa.of_parts, ""))
        found.accepts_pieces([b"ab", b"c"])
        found.as_bytes()

    def _use_rules(self, path: Path) -> None:
        target = next((self.folder / "rules").iterdir())
        path.replace(target)
        made = read_or_build(self._tokenizer, self.folder / "rules")
        target.write_bytes(self.seeds["rules"])
        for left, right in itertools.pairwise(self._tokenizer.encode("abab é \n")):
            made.pair_is_canonical(left, right)
            made.forbidden_after(left)

    def _use_run_part(self, path: Path) -> None:
        self._use_run(path, "items/0.parquet")

    def _use_run_config(self, path: Path) -> None:
        self._use_run(path, store.CONFIG)

    def _use_run_provenance(self, path: Path) -> None:
        self._use_run(path, store.PROVENANCE)

    def _use_run(self, path: Path, name: str) -> None:
        folder = self.folder / "run"
        for other, kind in (
            ("items/0.parquet", "run part"),
            (store.CONFIG, "run config"),
            (store.PROVENANCE, "run provenance"),
        ):
            (folder / other).parent.mkdir(parents=True, exist_ok=True)
            (folder / other).write_bytes(self.seeds[kind])
        path.replace(folder / name)
        try:
            run = store.open_run(folder)
            assert isinstance(run.config, dict)
            assert isinstance(run.provenance, dict)
            run.items()
        except StoreError as error:
            if name not in str(error):
                raise AssertionError("the error does not name the file") from error
            raise


ENTRY = StoredEntry()
