"""The experiment ``kind: cfg_fsm``: LALR(1) tables with a contextual lexer (003), beside engines for all grammars.

One item is a tokenizer, a grammar and one of four parts. Which parts a grammar has follows from the settings:

- ``masks``: its texts, replayed by `cfg_fsm` with both ways to make masks and by other engines
  (`tokdfa.lab.measure.cfg_fsm_replay`). Rows ``engine``; a row ``refused`` if Lark does not take the grammar.
- ``concatenation``, for the grammars that the setting names: two terminals in a row and cases like it. How many masks a
  second, by what is kept between them (`tokdfa.lab.measure.cfg_fsm_masks`)? 003 says 44,191 for its own way, on its
  author's machine, with the vocabulary of mistral-v1.
- ``terminals``, for templates (`tokdfa.lab.measure.cfg_fsm_families`): a mask against the number of terminals.
- ``token bytes``, for the grammars that the setting names: a mask against the bytes of the longest token, over samples
  of the vocabulary that have as many tokens where there are enough.

Rows of the last three are ``way``; one more, ``split``, tells the size of a vocabulary's split table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.backends.cfg_fsm.splits import SplitTable
from tokdfa.constraint import Grammar
from tokdfa.errors import OptionError
from tokdfa.lab.measure.cfg_fsm_families import MOST, fill_template, is_template
from tokdfa.lab.measure.cfg_fsm_masks import WAYS, measure_ways
from tokdfa.lab.measure.cfg_fsm_names import CONCATENATION, MASKS, NOTHING, TERMINALS, TOKEN_BYTES, TREE, WALK
from tokdfa.lab.measure.cfg_fsm_replay import ENGINES, replay_texts
from tokdfa.lab.measure.clock import time_call
from tokdfa.lab.measure.grammar_replay import chosen, constraint_of
from tokdfa.lab.measure.growing import sample_by_length
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Settings that are numbers: their defaults. See `replay_texts` and `measure_ways`.
NUMBERS: dict[str, float] = {"text_tokens": 600, "positions": 20, "rounds": 3, "turns": 100, "seconds": 4.0}
_LISTS = ("concatenations", "terminals", "token_bytes", "engines")
#: The ways whose growth is measured.
_GROWING = (TREE, NOTHING, WALK)


def check_settings(settings: dict[str, Any]) -> None:
    """Raise OptionError or UnknownNameError if `settings` of an experiment file are not what `run_item` takes.

    `engines`: labels of `ENGINES`, all of them by default; `concatenations`: labels of grammars; `terminals`: {label of
    a template: rising numbers of terminals}; `token_bytes`: {tokens: N, lengths: rising values, grammars: labels}; and
    the numbers of `NUMBERS`.
    """
    check_keys("setting of cfg_fsm", settings, (*NUMBERS, *_LISTS))
    chosen(settings, "engines", ENGINES)
    _check_labels("concatenations", settings.get("concatenations", []))
    terminals = settings.get("terminals", {})
    if not isinstance(terminals, dict):
        raise OptionError(f"settings.terminals is {{label: numbers of terminals}}, not {terminals!r}")
    for label, counts in terminals.items():
        _check_rising(f"terminals[{label!r}]", counts, 2, MOST)
    if "token_bytes" in settings:
        wanted = settings["token_bytes"]
        if not isinstance(wanted, dict):
            raise OptionError(f"settings.token_bytes is {{tokens, lengths, grammars}}, not {wanted!r}")
        check_keys("key of token_bytes", wanted, ("tokens", "lengths", "grammars"))
        _check_rising("token_bytes.tokens", [wanted.get("tokens")], 256)
        _check_rising("token_bytes.lengths", wanted.get("lengths"), 1)
        _check_labels("token_bytes.grammars", wanted.get("grammars"))
    for name, default in NUMBERS.items():
        value = settings.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | type(default)) or not 0 < value < float("inf"):
            raise OptionError(f"settings.{name} must be a positive {type(default).__name__}, not {value!r}")


def _check_labels(name: str, labels: Any) -> None:
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise OptionError(f"settings.{name} must be a list of labels of grammars, not {labels!r}")


def _check_rising(name: str, values: Any, least: int, most: float = float("inf")) -> None:
    whole = isinstance(values, list) and all(type(value) is int and least <= value <= most for value in values)
    if not whole or not values or sorted(set(values)) != values:
        limits = f"from {least}" + (f" to {most}" if most < float("inf") else "")
        raise OptionError(f"settings.{name}: rising whole numbers {limits} are expected, not {values!r}")


def split_settings(settings: dict[str, Any], seed: int) -> list[tuple[str, dict[str, Any]]]:
    """The parts of one tokenizer and one grammar, by title. Raises OptionError for what is no grammar."""
    if "grammar" not in settings:
        raise OptionError("cfg_fsm takes grammars, no other constraints")
    label = settings.get("label", "")
    if is_template(settings["grammar"]):
        parts = [TERMINALS]
    else:
        parts = [CONCATENATION if label in settings.get("concatenations", []) else MASKS]
        parts += [TOKEN_BYTES] * (label in settings.get("token_bytes", {}).get("grammars", []))
    return [(part, {**settings, "part": part}) for part in parts]


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one part of one tokenizer and one grammar; rows as the module's page says.

    `settings`: tokenizer (name), label, grammar (and start), texts, and the part, as `split_settings` gives them; and
    what `check_settings` describes. `seed` chooses the samples of the vocabulary.
    """
    vocab = load_tokenizer(settings["tokenizer"]).vocabulary
    place = {
        "tokenizer": settings["tokenizer"],
        "vocab_size": vocab.size,
        "part": settings["part"],
        "constraint": settings.get("label") or settings["grammar"],
    }
    measure = {
        MASKS: _masks,
        CONCATENATION: _concatenation,
        TERMINALS: _by_terminals,
        TOKEN_BYTES: _by_token_bytes,
    }[settings["part"]]
    return [{**place, **row} for row in measure(settings, vocab, seed)]


def _masks(settings: dict[str, Any], vocab: Vocabulary, seed: int) -> list[dict[str, Any]]:
    tokenizer = load_tokenizer(settings["tokenizer"])
    labels = chosen(settings, "engines", ENGINES)
    return replay_texts(constraint_of(settings), tokenizer, _texts(settings), labels, _numbers(settings))


def _concatenation(settings: dict[str, Any], vocab: Vocabulary, seed: int) -> list[dict[str, Any]]:
    found = measure_ways(constraint_of(settings), vocab, _texts(settings), list(WAYS), _numbers(settings))
    rows = [{"row": "way", **row} for row in found]
    if settings["label"] == settings["concatenations"][0]:  # once is enough
        rows.append({"row": "split", **_split(vocab)})
    return rows


def _split(vocab: Vocabulary) -> dict[str, Any]:
    table, nanoseconds = time_call(lambda: SplitTable(vocab))
    return {
        "tokens": len(table.tokens),
        "cuts": len(table.rest_at) - len(table.tokens),
        "rests": len(table.lengths),
        "table_bytes": table.nbytes,
        "seconds": nanoseconds * 1e-9,
    }


def _by_terminals(settings: dict[str, Any], vocab: Vocabulary, seed: int) -> list[dict[str, Any]]:
    label = settings.get("label", "")
    counts = settings.get("terminals", {}).get(label)
    if counts is None:
        raise OptionError(f"the template {label!r} needs numbers of terminals: give settings.terminals an entry for it")
    rows = []
    for count in counts:
        member = fill_template(settings["grammar"], count)
        constraint = Grammar(member.grammar, settings.get("start", "start"), label=f"{label}, {count}")
        for row in measure_ways(constraint, vocab, [member.text], _GROWING, _numbers(settings)):
            rows.append({"row": "way", "parameter": count, **row})
    return rows


def _by_token_bytes(settings: dict[str, Any], vocab: Vocabulary, seed: int) -> list[dict[str, Any]]:
    wanted, rows = settings["token_bytes"], []
    for longest in wanted["lengths"]:
        sample = sample_by_length(vocab, longest, wanted["tokens"], seed)
        spelled = sample.lengths[sample.lengths > 0]
        size = {"tokens": int(np.count_nonzero(spelled)), "mean_token_bytes": float(spelled.mean())}
        for row in measure_ways(constraint_of(settings), sample, _texts(settings), _GROWING, _numbers(settings)):
            rows.append({"row": "way", "parameter": longest, **size, **row})
    return rows


def _texts(settings: dict[str, Any]) -> list[str]:
    texts = settings.get("texts", [])
    if not texts:
        raise OptionError(f"cfg_fsm drives grammars along texts: give {settings.get('label')!r} texts or a texts_file")
    return list(texts)


def _numbers(settings: Mapping[str, Any]) -> dict[str, float]:
    return {name: settings.get(name, default) for name, default in NUMBERS.items()}
