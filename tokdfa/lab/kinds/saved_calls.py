r"""The experiment ``kind: saved_calls``: at how many positions is there nothing to choose, so that no model is needed?

Words. The *proper* sequence of a text is what the tokenizer makes of it. Before each of its tokens is a *position*; one
more, the *end*, follows the last. A position is *forced* if one token only is allowed there, the end if only end tokens
are. A model need not be called for what is forced, so the *calls* that are left are the positions, the end included,
that are not. Forced positions side by side are a *run*: its tokens go into the model together, with the next call.

The claim under test (002, challenge 3, and the notebook to it): along 1,000 JSON strings (arguments of function calls,
as json.dumps writes them, in schemas turned into regexes) with 18,898 tokens of Mistral-7B's tokenizer, the plain token
DFA leaves one allowed token at 750 positions, a constraint that allows proper sequences only at 3,853. That counts no
end, neither as a position nor as an alternative, and the tokens of the byte fallback do not exist. So there are three
counts for every text:

- ``forced``: the mask has one bit. What a decoding loop saves; the end tokens are alternatives like any others;
- ``forced_text``: the same with the end tokens left out of the mask;
- ``forced_002``: the same with the byte fallback's tokens left out too (unless it is the one of the sequence), as
  published. Tokenizers without byte fallback have no such tokens, and it equals ``forced_text``.

One item is a tokenizer and a constraint with its `texts`; or, in an experiment without constraints, a tokenizer and a
folder of JSON `schemas` with instances (`tokdfa.lab.measure.schema_instances`). It has a row for each text and engine:
the counts, ``runs`` and ``longest_run``, ``calls``, and in ``allowed`` the numbers of allowed tokens, end tokens
included, at the positions but the end, as a JSON list. An engine that refuses a token of the sequence, or an end at its
end, has a row ``wrong_refusal``; one that cannot compile has one row with the reason, without a text. What keeps a
schema or an instance from being measured is a row without an engine.

Only texts that all engines went through are counted. Shares are of positions, so long texts weigh more than short ones,
as they do in a decoding loop.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa import mask as masks
from tokdfa.errors import OptionError, TokenizerError
from tokdfa.lab.declare import Bars, Column, Kind, Listing, Pivot, Quotient, Say, Stat, Summary
from tokdfa.lab.declare.cells import readable
from tokdfa.lab.declare.columns import text
from tokdfa.lab.measure.constraint_entry import CONSTRAINT_KEYS, ConstraintEntry
from tokdfa.lab.measure.engines import Engine, Workshop, check_engines
from tokdfa.lab.measure.limits import OK, Failure
from tokdfa.lab.measure.schema_instances import Case, SchemaLimits, schema_cases
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.vocabulary.tokenizers import encode_exactly, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.tokenizers import Tokenizer

#: The tokenizer's tokens spell another text.
CHANGED = "changed"

Count = Annotated[int, Field(ge=1, le=1_000_000)]


class Settings(BaseModel):
    """The settings of the experiment.

    `engines`: the first is what the others are compared with. `texts`: label of a constraint -> its texts. `schemas`: a
    folder of JSON files; at most `max_schemas` of them and `max_instances` of each. A schema whose regex has more than
    `max_pattern` characters or whose byte DFA has more than `max_states` states is not measured, nor are those whose
    turn comes after `seconds`, which belong below the experiment's limit on an item.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    engines: list[Engine] = Field(min_length=2)
    texts: dict[str, list[str]] = Field(default_factory=dict)
    schemas: str | None = None
    max_schemas: Count = 100
    max_instances: Count = 5
    max_pattern: Count = 100_000
    max_states: Count = 5_000
    seconds: Annotated[float, Field(gt=0)] = 120.0


def complete(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as they are. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    check_engines(typed.engines)
    if not typed.texts and typed.schemas is None:
        raise OptionError("saved_calls needs texts, with constraints, or schemas, without")
    return settings


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Follow the texts of one constraint, or the instances of a folder of schemas, with one tokenizer.

    `settings`: tokenizer (name); those of a constraint; and those of `Settings`. `seed` is not used: nothing is random.
    Raises OptionError if the constraint has no texts, or neither constraint nor schemas are given.
    """
    typed = typed_settings(Settings, {key: value for key, value in settings.items() if key in Settings.model_fields})
    tokenizer = load_tokenizer(settings["tokenizer"])
    vocab = tokenizer.vocabulary
    workshop = Workshop(typed.engines, vocab)
    ends, fallback = masks.mask_from_ids(vocab.end_tokens, vocab.size), _fallback_mask(tokenizer)
    rows = []
    for case in _cases(settings, typed):
        place = {"tokenizer": tokenizer.name, "constraint": case.name}
        for status, message, skipped in case.skipped:
            rows.append({**place, "engine": "", "text": skipped, "status": status, "message": message})
        if case.constraint is None:
            continue
        for engine in typed.engines:
            compiled = workshop.compile(engine.name, case.constraint)
            found = follow_texts(compiled, case.texts, tokenizer, ends, fallback)
            rows += [{**place, "engine": engine.name, "backend": engine.backend, **row} for row in found]
    return rows


def _cases(settings: dict[str, Any], typed: Settings) -> Iterator[Case]:
    given = {key: value for key, value in settings.items() if key in ConstraintEntry.model_fields and key != "texts"}
    if not set(given) & set(CONSTRAINT_KEYS):
        if typed.schemas is None:
            raise OptionError("without constraints saved_calls needs the setting schemas")
        limits = (typed.max_schemas, typed.max_instances, typed.max_pattern, typed.max_states, typed.seconds)
        yield from schema_cases(Path(typed.schemas), SchemaLimits(*limits))
        return
    if typed.schemas is not None:
        raise OptionError("schemas take the place of constraints: leave one of the two out")
    constraint = ConstraintEntry.model_validate(given).build()
    texts = typed.texts.get(given.get("label", ""))
    if not texts:
        raise OptionError(f"settings.texts has no texts for the constraint {constraint.name!r}")
    yield Case(constraint.name, constraint, tuple(texts))


def _fallback_mask(tokenizer: Tokenizer) -> Mask:
    """The tokens of the byte fallback; none for a tokenizer that does not merge, of which nothing is known."""
    try:
        tokens = tokenizer.merges.byte_tokens
    except TokenizerError:
        tokens = None
    ids = np.zeros(0, dtype=np.int32) if tokens is None else tokens[tokens >= 0]
    return masks.mask_from_ids(ids, tokenizer.vocabulary.size)


def follow_texts(
    compiled: CompiledConstraint | Failure, texts: Sequence[str], tokenizer: Tokenizer, ends: Mask, fallback: Mask
) -> Iterator[dict[str, Any]]:
    """A row for each text, or a single one if the constraint cannot be compiled."""
    if isinstance(compiled, Failure):
        yield {"text": "", "status": compiled.kind, "message": compiled.message}
        return
    for one in texts:
        tokens = encode_exactly(tokenizer, tokenizer.vocabulary, one)
        row: dict[str, Any] = {"text": one, "status": OK, "message": ""}
        if tokens is None:
            yield row | {"status": CHANGED, "message": "the tokenizer's tokens spell another text"}
        else:
            yield row | follow_tokens(compiled, tokens, ends, fallback)


def follow_tokens(compiled: CompiledConstraint, tokens: Sequence[int], ends: Mask, fallback: Mask) -> dict[str, Any]:
    """The counts of one proper sequence, see the module's page; or the status ``wrong_refusal`` with its place.

    `ends`, `fallback`: masks of the end tokens and of the byte fallback's. One mask for each position and for the end.
    """
    vocab = compiled.vocab
    matcher, mask = compiled.start(), masks.allocate_mask(vocab.size)
    allowed: list[int] = []
    allowed_text: list[int] = []
    allowed_002: list[int] = []
    for position, token in enumerate(tokens):
        matcher.fill_mask(mask)
        if not masks.contains(mask, token):
            message = f"token {token} {vocab.token_bytes(token)!r} is refused at position {position} of {len(tokens)}"
            return {"status": "wrong_refusal", "message": message}
        without_ends = mask & ~ends
        published = without_ends & ~fallback
        masks.set_token(published, token)
        for counts, one in ((allowed, mask), (allowed_text, without_ends), (allowed_002, published)):
            counts.append(masks.count(one))
        matcher.advance(token)
    if not matcher.can_end():
        return {"status": "wrong_refusal", "message": f"the end is refused after {len(tokens)} tokens"}
    matcher.fill_mask(mask)
    forced = [count == 1 for count in allowed]
    end_forced = masks.count(mask & ~ends) == 0
    runs = [len(list(group)) for is_forced, group in itertools.groupby([*forced, end_forced]) if is_forced]
    return {
        "positions": len(tokens),
        "forced": sum(forced),
        "forced_text": allowed_text.count(1),
        "forced_002": allowed_002.count(1),
        "end_forced": int(end_forced),
        "calls": len(tokens) + 1 - sum(runs),
        "runs": len(runs),
        "longest_run": max(runs, default=0),
        "allowed": json.dumps(allowed),
    }


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The texts that all engines went through; the walks that failed; what is not measured."""
    walks = rows[rows["engine"] != ""]
    done = walks[walks["status"] == OK]
    place = ["tokenizer", "constraint", "text"]
    done = done[done.groupby(place, sort=False)["engine"].transform("nunique") == walks["engine"].nunique()]
    if len(done):
        counts = done["allowed"].map(lambda listed: np.array(json.loads(listed), dtype="<f4").tobytes())
        done = done.assign(counts=counts, places=done["positions"] + 1)
    lost = rows[rows["status"] != OK]
    lost = lost.assign(status=lost["status"].map(readable), instance=lost["text"].replace("", None))
    return {"": done, "failed": lost[lost["engine"] != ""], "skipped": lost[lost["engine"] == ""]}


_PLACE = ("tokenizer", "engine")
_FORCED = Quotient("forced:sum", "positions:sum", "share", unit="share")
_AS_002 = Quotient("forced_002:sum", "positions:sum", "share as in 002", unit="share")

KIND = Kind(
    measure=measure,
    settings=Settings,
    complete=complete,
    columns=(
        *(text("tokenizer"), text("constraint"), text("engine"), text("text"), text("message", "reason")),
        text("status", "kind"),
        Column("positions", meaning="tokens that the tokenizer makes of the texts"),
        Column("places", "positions and ends"),
        Column("forced", "forced", "", "higher", "positions with one allowed token, end tokens counted like others"),
        Column("forced_text", "no end tokens", "", "higher", "one allowed token beside end tokens"),
        Column("forced_002", "as in 002", "", "higher", "the same without the tokens of the byte fallback"),
        Column("calls", "calls left", "", "lower", "positions, the ends included, where there is a choice"),
        Column("runs", meaning="forced positions side by side, which need no call of their own"),
        Column("longest_run", "longest run"),
        Column("counts", "allowed", meaning="tokens that a mask allows"),
    ),
    case=("tokenizer", "constraint"),
    place=("text",),
    frames=frames,
    tables=(
        Summary(
            "saved_calls",
            "Positions with one allowed token",
            "Along the tokens that the tokenizer makes of each text that all engines went through. Forced: the mask "
            "allows one token; no end tokens: one beside them; as in 002: without the byte fallback's tokens too.",
            by=_PLACE,
            values=(
                *(Stat("text", "count", "texts"), Stat("positions", "sum", "positions")),
                *(Stat("forced", "sum", "forced"), _FORCED, Stat("forced_text", "sum", "no end tokens")),
                *(Stat("forced_002", "sum", "as in 002"), _AS_002, Stat("calls", "sum", "calls left")),
                *(Stat("places", "sum", "of"), Stat("runs", "sum", "runs"), "longest_run:max"),
                *(Stat("counts", "mean", "mean allowed"), Stat("counts", "median", "median allowed")),
            ),
            brief=(*_PLACE, "positions", "forced", "share", "as in 002", "calls left"),
        ),
        Pivot(
            "saved_calls_constraints",
            "Forced positions by constraint",
            "Share of the positions at which the mask allows one token; then the calls left.",
            rows=("tokenizer", "constraint"),
            value=_FORCED,
            detail="calls:sum",
            beside=(Stat("text", "distinct", "texts"),),
        ),
        Listing(
            "saved_calls_refusals",
            "Texts that an engine did not go through",
            "They count for no engine. A refusal is a defect: the sequence is proper and its text in the language.",
            shown=("engine", "constraint", "tokenizer", "status", "message", "text"),
            frame="failed",
        ),
        Summary(
            "saved_calls_skipped",
            "Schemas and instances that are not measured",
            "The first of each kind stands for the others.",
            by=("tokenizer", "status"),
            values=(
                *(Stat("constraint", "distinct", "schemas"), Stat("instance", "count", "instances")),
                *(Stat("constraint", "first", "first"), "message:first"),
            ),
            frame="skipped",
        ),
    ),
    charts=(
        Bars(
            "saved_calls",
            "Share of positions with one allowed token",
            "Over all positions of the constraint's texts; end tokens count like any others.",
            x=_FORCED,
            rows="constraint",
            panels="tokenizer",
            log=False,
        ),
    ),
    sentences=(
        Say(
            "{tokenizer}, {engine}: one token is allowed at {forced} of {positions} positions ({share}) of {texts} "
            "texts, counted as in 002 at {as_002} ({share_002}); {calls} of {places} calls are left.",
            per=_PLACE,
            blanks={
                **{"forced": "forced:sum", "positions": "positions:sum", "share": _FORCED, "texts": "text:count"},
                **{"as_002": "forced_002:sum", "share_002": _AS_002, "calls": "calls:sum", "places": "places:sum"},
            },
        ),
        Say(
            "Published (002, other texts, Mistral-7B's tokenizer, counted as in 002): 750 with the plain token DFA and "
            "3,853 with proper sequences only, of 18,898 positions (3.97% and 20.4%)."
        ),
        Say(
            "{engine}: {count} walks did not go through ({status}); their texts count for no engine.",
            per=("engine", "status"),
            blanks={"count": "status:count"},
            frame="failed",
        ),
        Say("{count} schemas and instances are not measured.", blanks={"count": "status:count"}, frame="skipped"),
    ),
)
