"""``tokdfa proper``, run as a user runs it: what it prints, its JSON, its exit status; and the figures behind it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.command_line import command
from tests.vocabulary.tokenizer_files import byte_level
from tokdfa.cli.proper import cut_tokens, find_token, looks_like_ids, parse_ids
from tokdfa.errors import VocabularyError
from tokdfa.proper.adjacent_pairs import first_merge
from tokdfa.proper.rules_cache import build_canonicity, load_canonicity
from tokdfa.proper.statistics import collect_statistics, forbidden_by_rule
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.command_line import Command


@pytest.fixture
def proper(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return command("proper", 60, monkeypatch, capsys)


def test_a_text(proper: Command) -> None:
    status, lines, _ = proper("It's 12345 w\u00f6rld", "-t", "llama3")
    tokens = load_tokenizer("llama3").encode("It's 12345 w\u00f6rld")
    assert status == 0
    assert [line.split()[0] for line in lines[3:8]] == ["'It'", '"\'s"', "'", "'123'", "'45'"]
    assert [token for line in lines[3:] for token in line.split() if token.isdigit()] == list(map(str, tokens))
    assert lines[8].startswith("' w\u00f6rld'")


def test_a_text_with_its_derivation(proper: Command) -> None:
    status, lines, _ = proper("a \U00013000", "-t", "mistral-v1", "--derivation")
    assert status == 0
    assert [line.split("  ")[-1].strip() for line in lines[3:]] == [
        "a letter",
        "a letter",
        *["byte fallback: its character is no token"] * 4,
    ]
    _, lines, _ = proper(" The", "-t", "mistral-v1", "-d")
    assert lines[-1].endswith("'h'+'e' (4), ' '+'T' (58), ' T'+'he' (151)")


def test_a_text_in_json(proper: Command) -> None:
    status, lines, _ = proper("The \u2603:smile:[b]", "-t", "tekken", "--json", "-d")
    assert status == 0
    (line,) = lines
    content = json.loads(line)
    tokens = load_tokenizer("tekken").encode("The \u2603:smile:[b]")
    assert content["proper_tokens"] == tokens
    assert "".join(piece["text"] for piece in content["pieces"]) == content["text"] == "The \u2603:smile:[b]"
    listed = [token for piece in content["pieces"] for token in piece["tokens"]]
    assert [token["id"] for token in listed] == tokens
    assert bytes.fromhex("".join(token["hex"] for token in listed)).decode() == content["text"]
    assert listed[0]["merges"][-1]["result"] == {key: listed[0][key] for key in ("id", "hex", "text")}


@pytest.mark.parametrize(
    "arguments",
    [("--tokens", "415,350,431"), ("[415, 350, 431]",), ("415 350 431",), ("--cut", " The|od|ore")],
)
def test_a_sequence_that_is_not_proper(proper: Command, arguments: tuple[str, ...]) -> None:
    status, lines, _ = proper(*arguments, "-t", "mistral-v1")
    assert status == 1
    assert "at position 1: 350 b'od' cannot follow 415 b' The'" in lines[0]
    assert [line.split()[:2] for line in lines[3:]] == [["0", "415"], ["1", "350"], ["2", "431"]]
    assert lines[3].endswith("<- first difference")
    status, lines, _ = proper(*arguments, "-t", "mistral-v1", "--json")
    assert status == 1
    content = json.loads(lines[0])
    assert (content["proper"], content["proper_tokens"], content["first_difference"]) == (False, [22704, 431], 0)
    assert (content["fault"]["position"], content["fault"]["kind"]) == (1, "pair")
    rule = content["fault"]["rule"]
    assert (rule["left"]["text"], rule["right"]["text"], rule["result"]["id"]) == (" The", "od", 22704)
    assert rule["rank"] == 22431


def test_a_sequence_that_is_proper(proper: Command) -> None:
    status, lines, _ = proper("[22704, 431]", "-t", "mistral-v1")
    assert (status, lines[0]) == (0, "proper")
    assert [line.split()[:2] for line in lines[3:]] == [["0", "22704"], ["1", "431"]]
    status, lines, _ = proper("[22704, 431]", "-t", "mistral-v1", "--json")
    content = json.loads(lines[0])
    assert (status, content["proper"], content["fault"], content["pieces"]) == (0, True, None, [" Theodore"])
    status, lines, _ = proper("--tokens", "", "-t", "bytes")
    assert (status, lines[0]) == (0, "proper")


def test_sequences_with_special_tokens_and_without_a_text(proper: Command) -> None:
    status, lines, _ = proper("[97, 256]", "-t", "bytes")
    assert status == 1
    assert "special token <end>" in lines[0]
    status, lines, _ = proper("[226, 152]", "-t", "bytes")
    assert status == 1
    assert "no text ends here" in lines[0]
    status, lines, _ = proper("[226, 152]", "-t", "bytes", "--json")
    content = json.loads(lines[0])
    assert [content[key] for key in ("proper", "text", "pieces", "proper_tokens")] == [False, None, None, None]


def test_after_a_token(proper: Command) -> None:
    status, lines, _ = proper("--after", " The", "-t", "mistral-v1", "-n", "3")
    assert status == 0
    assert "675 of 31,857 tokens" in lines[1]
    assert len(lines) == 7
    by_id = proper("--after", "415", "-t", "mistral-v1", "-n", "3")
    assert by_id == (status, lines, "")
    _, (line,), _ = proper("--after", "415", "-t", "mistral-v1", "-n", "99", "--json")
    content = json.loads(line)
    assert content["rule_count"] == len(content["rules"]) == 11
    assert sum(rule["forbids"] for rule in content["rules"]) == content["forbidden"] == 675


def test_statistics(proper: Command) -> None:
    status, lines, _ = proper("--statistics", "-t", "mistral-v1")
    assert status == 0
    assert "58,980" in lines[1]
    _, (line,), _ = proper("--statistics", "-t", "bytes", "--json")
    content = json.loads(line)
    assert (content["rules"], content["states"], content["largest_count"]) == (0, 1, 0)
    assert len(content["largest_after"]) == 256


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a\u2581", "-t", "mistral-v1"), "U+2581"),
        ((), "give one of"),
        (("a", "--statistics"), "give one of"),
        (("--tokens", "1,x"), "not 'x'"),
        (("--tokens", "1,999"), "token 999 is outside 0..256"),
        (("--tokens", "[1"), "not '[1'"),
        (("--cut", "a|bc"), "part 1 of --cut: no token of bytes spells 'bc'"),
        (("--cut", "a||b"), "part 1 of --cut is empty"),
        (("--cut", "a", "--separator", ""), "at least one character"),
        (("--after", "ab"), "--after: no token of bytes spells 'ab'"),
        (("--after", "256"), "token 256 is not proper inside a piece"),
        (("--after", "257"), "outside"),
        (("a", "-t", "byte"), "did you mean 'bytes'"),
    ],
)
def test_errors_are_one_message_and_status_two(proper: Command, arguments: tuple[str, ...], message: str) -> None:
    status, lines, error = proper("-t", "bytes", *arguments)
    assert (status, lines) == (2, [])
    assert error.startswith("error:")
    assert message in error


@pytest.mark.parametrize(
    "text",
    [
        "1 " * 50_000 + "x",
        "[" + "1" * 50_000 + "x]",
        "",
        "[]",
        "12",
        "1 2 x",
        "[1",
        "1.5 2",
        "\u0661 \u0662",
        "[[1]]",
        "1,,2",
        "-1 -2",
    ],
)
def test_what_is_a_text(text: str) -> None:
    assert not looks_like_ids(text)


@given(
    ids=st.lists(st.integers(0, 10**6), min_size=2, max_size=9),
    separator=st.sampled_from([",", " ", ", ", " ,", "\n", "  "]),
    brackets=st.sampled_from(["{}", "[{}]", " [ {} ]\n"]),
)
def test_ids_are_read_as_they_are_written(ids: list[int], separator: str, brackets: str) -> None:
    text = brackets.format(separator.join(map(str, ids)))
    assert looks_like_ids(text)
    assert parse_ids(text) == ids


def test_the_token_that_encoding_uses_is_taken(tmp_path: Path) -> None:
    """Isolated before usable before others: the byte piece of Mistral v1 comes first in the file, and is never used."""
    tokenizer = load_tokenizer("mistral-v1")
    assert tokenizer.vocabulary.token_bytes(3 + ord("a")) == b"a"
    assert [find_token(tokenizer, "a", "it")] == tokenizer.encode("a")
    assert cut_tokens(tokenizer, "a/b", "/") == tokenizer.encode("a") + tokenizer.encode("b")
    assert cut_tokens(tokenizer, "") == []
    isolated = load_tokenizer(f"hf:{byte_level(tmp_path / 't.json')}")
    isolated.keep("canonicity", lambda: build_canonicity(isolated))
    for text in ("      ", "<tool>", "\u65e5\u672c\u8a9e"):
        assert [find_token(isolated, text, "it")] == isolated.encode(text)
    with pytest.raises(VocabularyError, match="it: no token"):
        find_token(tokenizer, "", "it")


def test_forbidden_by_rule() -> None:
    canonicity = load_canonicity(load_tokenizer("mistral-v1"))
    token = load_tokenizer("mistral-v1").encode(" The")[0]
    by_rule = forbidden_by_rule(canonicity, token)
    counts = [len(followers) for followers in by_rule.values()]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == canonicity.forbidden_counts[canonicity.state_of(token)]
    for rule, followers in by_rule.items():
        assert followers == sorted(followers)
        for follower in followers[:20]:
            assert first_merge(canonicity.rules, canonicity.derivations, token, follower) == rule
            spelled = canonicity.vocabulary.spell([token, follower])
            assert canonicity.source.encode_piece(spelled) != [token, follower]


@pytest.mark.parametrize("name", ["mistral-v1", "llama3"])
def test_figures(name: str) -> None:
    figures = collect_statistics(load_tokenizer(name))
    canonicity = load_canonicity(load_tokenizer(name))
    expected: dict[str, Any] = {
        "mistral-v1": {"rules": 58_980, "improper_tokens": 0, "byte_tokens": 116, "largest_count": 12_260},
        "llama3": {"rules": 280_147, "improper_tokens": 588, "byte_tokens": 0, "whole_pieces": 588},
    }[name]
    assert {key: getattr(figures, key) for key in expected} == expected
    assert (figures.marked_states is None) == (name == "mistral-v1")
    for token in figures.largest_after:
        starts, ends = canonicity.forbidden(token)
        assert int((ends - starts).sum()) == figures.largest_count
    assert 0 < figures.memory_bytes < 40e6
    assert min(figures.build_seconds, figures.load_seconds) > 0
