"""Forms and pools in files: the same masks afterwards, and no damage goes unnoticed."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tokdfa import mask as masks
from tokdfa.backends.pushdown_trie import schema_tables
from tokdfa.backends.pushdown_trie.arrays import ALONE
from tokdfa.backends.pushdown_trie.pool import Pool
from tokdfa.backends.pushdown_trie.pool_file import POOL_FORMAT, pool_path, read_pool, write_pool
from tokdfa.backends.pushdown_trie.shared_pools import pool_of, save_pool
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown, PushdownTrie
from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex
from tokdfa.errors import SavedIndexError, UnsupportedConstraint
from tokdfa.program.printing import format_program
from tokdfa.program.program_file import read_program, write_program
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

TOKENS = [bytes([byte]) for byte in range(256)] + [b"ab", b'"a', b"a,", b'",', b"[[", b"12", b""]
LISTS = 'start: "[" [item ("," item)*] "]"\nitem: start | NAME | <|x|>\nNAME: /"[^"]*"|[0-9]+/\n%ignore " "\n'
CONSTRAINTS = (
    Grammar(LISTS, label="lists"),
    Grammar("start: text <|x|>\ntext[lazy]: /[a-z,]*,/\n", label="lazy"),
    Regex(r'"[^"]{0,40}"', label="string"),
    Choice([b"ab", b"a,", "12"]),
)


def small_vocabulary(extra: bytes = b"") -> Vocabulary:
    texts = [*TOKENS[:-1], extra, b"", b""]
    return Vocabulary(texts, end_tokens=[len(texts) - 1], special_tokens={len(texts) - 2: "<|x|>"})


def masks_along(compiled: CompiledPushdown, seed: int = 0, steps: int = 30) -> list[bytes]:
    """The masks of a random walk."""
    rng = np.random.default_rng(seed)
    matcher, mask, found = compiled.start(), masks.allocate_mask(compiled.vocab.size), []
    for _ in range(steps):
        matcher.fill_mask(mask)
        found.append(mask.tobytes())
        allowed = [t for t in masks.mask_to_ids(mask).tolist() if t not in compiled.vocab.end_token_set]
        if not allowed:
            break
        matcher.advance(int(rng.choice(allowed)))
    return found


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda c: c.name)
@pytest.mark.parametrize("lexer", ["longest", "any"])
def test_a_loaded_form_is_the_one_that_was_saved(constraint, lexer: str, tmp_path: Path) -> None:
    vocabulary = small_vocabulary()
    compiled = PushdownTrie(vocabulary, lexer=lexer, shared=False).compile(constraint)
    assert isinstance(compiled, CompiledPushdown)
    compiled.save(tmp_path / "program.npz")
    loaded = CompiledPushdown.load(tmp_path / "program.npz", vocabulary)
    assert loaded.constraint == constraint
    assert loaded.settings == compiled.settings
    assert format_program(loaded.program) == format_program(compiled.program)
    for seed in range(3):
        assert masks_along(loaded, seed) == masks_along(compiled, seed)
    other = small_vocabulary(b"a]")  # a program is for any vocabulary
    moved = CompiledPushdown.load(tmp_path / "program.npz", other)
    assert masks_along(moved) == masks_along(PushdownTrie(other, lexer=lexer).compile(constraint))  # type: ignore[arg-type]


def test_an_automaton_out_of_a_file_passes_for_no_other(tmp_path: Path) -> None:
    """A file whose text has been exchanged, with a right digest, must not change what other constraints read."""
    vocabulary = small_vocabulary()
    program = PushdownTrie(vocabulary, shared=False).compile(Regex("ab")).program  # type: ignore[attr-defined]
    wrong = PushdownTrie(vocabulary, shared=False).compile(Regex("12")).program  # type: ignore[attr-defined]
    object.__setattr__(program, "terminals", wrong.terminals)
    write_program(tmp_path / "program.npz", program, Regex("ab"), {})
    loaded = CompiledPushdown.load(tmp_path / "program.npz", vocabulary)
    assert loaded.start().allows(ord("1"))
    honest = PushdownTrie(vocabulary).compile(Regex("ab")).start()
    assert honest.allows(ord("a"))
    assert not honest.allows(ord("1"))


def test_lazy_automata_are_not_saved(tmp_path: Path) -> None:
    compiled = PushdownTrie(small_vocabulary()).compile(Regex("[ab]{0,9000}"))
    assert isinstance(compiled, CompiledPushdown)
    with pytest.raises(UnsupportedConstraint, match="too many states"):
        compiled.save(tmp_path / "program.npz")


def test_damaged_forms_are_refused(tmp_path: Path) -> None:
    compiled = PushdownTrie(small_vocabulary()).compile(CONSTRAINTS[0])
    assert isinstance(compiled, CompiledPushdown)
    path = tmp_path / "program.npz"
    compiled.save(path)
    whole = path.read_bytes()
    with pytest.raises(SavedIndexError, match="no file"):
        read_program(tmp_path / "nothing.npz")
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(SavedIndexError):
            read_program(path)
    before = format_program(compiled.program)
    for place in range(0, len(whole), 97):
        damaged = bytearray(whole)
        damaged[place] ^= 0x41
        path.write_bytes(bytes(damaged))
        with suppress(SavedIndexError):  # or else it is harmless: the archive's own book-keeping
            assert format_program(read_program(path)[0]) == before


@pytest.mark.parametrize(
    ("name", "row", "column", "value"),
    [("code", 1, 0, 9), ("code", 1, 1, 1_000), ("code", 1, 2, -1), ("code", 0, 0, 3), ("entries", 0, None, 999)],
)
def test_forged_forms_are_refused(name: str, row: int, column: int | None, value: int, tmp_path: Path) -> None:
    compiled = PushdownTrie(small_vocabulary()).compile(CONSTRAINTS[0])
    assert isinstance(compiled, CompiledPushdown)
    array = getattr(compiled.program, name).copy()
    array[row if column is None else (row, column)] = value
    object.__setattr__(compiled.program, name, array)
    write_program(tmp_path / "program.npz", compiled.program, CONSTRAINTS[0], {})
    with pytest.raises(SavedIndexError, match="no valid program"):
        read_program(tmp_path / "program.npz")


@pytest.mark.parametrize("settings", [{"lexer": "shortest"}, {"lexxer": "any"}, {"mask_mb": "many"}])
def test_a_form_with_wrong_options_names_its_file(settings: dict[str, object], tmp_path: Path) -> None:
    vocabulary = small_vocabulary()
    compiled = PushdownTrie(vocabulary).compile(CONSTRAINTS[0])
    assert isinstance(compiled, CompiledPushdown)
    write_program(tmp_path / "program.npz", compiled.program, CONSTRAINTS[0], settings)
    with pytest.raises(SavedIndexError, match=r"program\.npz has options that cannot be"):
        CompiledPushdown.load(tmp_path / "program.npz", vocabulary)


def filled_pool(vocabulary: Vocabulary) -> tuple[Pool, list[list[bytes]]]:
    """The pool of a vocabulary after some constraints, and their masks."""
    found = []
    for constraint in (*CONSTRAINTS, Regex("[ab]{0,9000}")):
        compiled = PushdownTrie(vocabulary).compile(constraint)
        assert isinstance(compiled, CompiledPushdown)
        found.append(masks_along(compiled))
    return pool_of(vocabulary), found


def test_a_pool_from_disk_makes_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    vocabulary = small_vocabulary()
    pool, found = filled_pool(vocabulary)
    assert pool.partitions.count
    assert save_pool(vocabulary) == pool_path(vocabulary)
    fresh = small_vocabulary()
    for constraint, expected in zip(CONSTRAINTS, found, strict=False):
        compiled = PushdownTrie(fresh, disk=True).compile(constraint)
        assert isinstance(compiled, CompiledPushdown)
        assert masks_along(compiled) == expected
    adopted = pool_of(fresh)
    assert adopted.partitions.made == 0
    assert set(adopted.automata.starts) < set(pool.automata.starts)
    later = PushdownTrie(fresh, disk=True).compile(Regex('x"[^"]{0,7}"[ab]{0,9000}'))  # goes on as a pool does
    plain = PushdownTrie(small_vocabulary(), shared=False, partition=False).compile(later.constraint)
    assert masks_along(later) == masks_along(plain)  # type: ignore[arg-type]


def test_what_schemas_need_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    vocabulary = small_vocabulary()
    schema = JsonSchema({"type": "object", "properties": {"born": {"format": "date"}}})
    monkeypatch.setattr(schema_tables, "_is_warm", lambda: True)
    expected = masks_along(PushdownTrie(vocabulary).compile(schema))  # type: ignore[arg-type]
    assert not pool_of(vocabulary).prepared  # the first schema has no use for what others need
    assert masks_along(PushdownTrie(vocabulary).compile(schema)) == expected  # type: ignore[arg-type]
    (prepared,) = pool_of(vocabulary).prepared
    save_pool(vocabulary)
    monkeypatch.setattr(schema_tables, "_make_tables", lambda *_: pytest.fail("made again"))
    fresh = small_vocabulary()
    compiled = PushdownTrie(fresh, disk=True).compile(schema)
    assert masks_along(compiled) == expected  # type: ignore[arg-type]
    assert pool_of(fresh).prepared == {prepared}
    monkeypatch.setitem(schema_tables.FORMATS, "date", "2024-02-28")  # another version makes its own
    schema_tables._stamp.cache_clear()
    PushdownTrie(fresh).compile(schema)
    with pytest.raises(pytest.fail.Exception, match="made again"):
        PushdownTrie(fresh).compile(schema)
    schema_tables._stamp.cache_clear()


def test_a_damaged_pool_is_ignored_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    vocabulary = small_vocabulary()
    _, found = filled_pool(vocabulary)
    path = save_pool(vocabulary)
    path.write_bytes(path.read_bytes()[:-9])
    fresh = small_vocabulary()
    with pytest.warns(UserWarning, match="save_pool writes it again"):
        compiled = PushdownTrie(fresh, disk=True).compile(CONSTRAINTS[0])
    assert masks_along(compiled) == found[0]  # type: ignore[arg-type]
    write_pool(path, pool_of(vocabulary), vocabulary)
    other = small_vocabulary(b"xy")
    with pytest.raises(SavedIndexError, match="another vocabulary"):
        read_pool(path, Pool(other), other)


def read_arrays(path: Path) -> tuple[dict, dict]:
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(arrays.pop("header").tobytes()), arrays


@pytest.fixture(scope="module")
def real_pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a pool that has every kind of partition; as it is, it is read."""
    vocabulary = load_tokenizer("mistral-v1").vocabulary
    compiled = PushdownTrie(vocabulary, shared=False).compile(Regex(r'"[^"]{0,9}"[a-z]["0-9]'))
    assert isinstance(compiled, CompiledPushdown)
    masks_along(compiled)
    for state in range(1, compiled.pool.automata.state_count):
        compiled.pool.divide(0, state)  # those of items alone in their rows have no rest here
        compiled.pool.divide(0, state | ALONE)
    path = tmp_path_factory.mktemp("pool") / "pool.npz"
    write_pool(path, compiled.pool, vocabulary)
    read_pool(path, Pool(vocabulary), vocabulary)
    return path


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("transitions", lambda array: array.__setitem__(300, 30_000)),
        ("partition_class", lambda array: array.__setitem__(1, 1 << 20)),
        ("ids", lambda array: array.__setitem__(0, 1 << 20)),
        ("keys", lambda array: array.__setitem__(0, 1 << 50)),
        ("part_nodes", lambda array: array.__setitem__((0, 1), 1 << 20)),
        ("part_ids", lambda array: array.__setitem__((0, 1), 1 << 20)),
        ("rests", lambda array: array.__setitem__(0, array[0] | np.uint64(0x7FFFFF << 20))),
        ("rests", lambda array: array.__setitem__(0, array[0] | np.uint64(0xFFF << 8))),
    ],
)
def test_forged_pools_are_refused(name: str, change, real_pool: Path, tmp_path: Path) -> None:
    vocabulary = load_tokenizer("mistral-v1").vocabulary
    header, arrays = read_arrays(real_pool)
    change(arrays[name])
    kept = {key: header[key] for key in ("fingerprint", "starts", "spelled", "prepared")}
    POOL_FORMAT.write(tmp_path / "pool.npz", kept, arrays)
    with pytest.raises(SavedIndexError, match="no valid tables"):
        read_pool(tmp_path / "pool.npz", Pool(vocabulary), vocabulary)


def test_a_pool_without_an_array_is_refused(tmp_path: Path) -> None:
    vocabulary = small_vocabulary()
    pool, _ = filled_pool(vocabulary)
    path = tmp_path / "pool.npz"
    write_pool(path, pool, vocabulary)
    header, arrays = read_arrays(path)
    kept = {key: header[key] for key in ("fingerprint", "starts", "spelled", "prepared")}
    for name in arrays:
        some = {other: array for other, array in arrays.items() if other != name}
        POOL_FORMAT.write(path, kept, some)
        with pytest.raises(SavedIndexError, match="missing"):
            read_pool(path, Pool(vocabulary), vocabulary)
    del arrays["flags"]
    arrays["partition_class"] = arrays["partition_class"].astype(
        np.int64
    )  # a problem is found before the array is missed
    POOL_FORMAT.write(path, kept, arrays)
    with pytest.raises(SavedIndexError, match="missing"):
        read_pool(path, Pool(vocabulary), vocabulary)
