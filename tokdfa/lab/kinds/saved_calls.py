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
folder of JSON `schemas` with instances (`schema_cases`). It has a row for each text and each engine: the counts,
``runs`` and ``longest_run``, ``calls``, and in ``allowed`` the numbers of allowed tokens, end tokens included, at the
positions but the end, as a JSON list. An engine that refuses a token of the sequence, or an end at its end, has a row
``wrong_refusal``; one that cannot compile has one row with the reason, without a text. What keeps a schema or an
instance from being measured is a row without an engine, whose status is one of `SKIPPED`. ``inputs`` is a hash of the
file that the text comes from, because the identity of an experiment covers the path only.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa import mask as masks
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import MissingDependency, OptionError, TokdfaError, TokenizerError
from tokdfa.lab.measure.engines import Engine, check_engines
from tokdfa.lab.measure.limits import NOT_ASKED, OK, failure_of
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import encode_exactly, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.tokenizers import Tokenizer

#: The tokenizer's tokens spell another text.
CHANGED = "changed"
#: Why a schema, or an instance of one, is not measured: the file has another layout; none of its instances is valid;
#: no regex can be made of it; its regex is over a limit; the regex does not match a valid instance (what becomes of a
#: schema is often narrower than the schema: it fixes the order of the members, for instance); a setting left it out.
UNREADABLE, NO_INSTANCE, REFUSED = "unreadable", "no_instance", "refused"
TOO_LARGE, NOT_MATCHED = "too_large", "not_matched"
SKIPPED = (UNREADABLE, NO_INSTANCE, REFUSED, TOO_LARGE, NOT_MATCHED, NOT_ASKED)
#: How an instance may be written, the first that its regex takes: as json.dumps does, and without spaces.
SEPARATORS = ((", ", ": "), (",", ":"))

#: What is kept of the words about a schema, some of which repeat all of it, and of an instance that does not match.
MAX_MESSAGE = 300

_CONSTRAINT_KEYS = ("tokenizer", "label", "regex", "search", "ascii_classes", "flags", "choice")
Count = Annotated[int, Field(ge=1, le=1_000_000)]


class Settings(BaseModel):
    """The settings of the experiment.

    `engines`: the first is what the others are compared with. `texts`: label of a constraint -> its texts, or the path
    of a YAML file with that, relative to the current folder. `schemas`: a folder of JSON files, see `schema_cases`; at
    most `max_schemas` of them, spread evenly over the names in alphabetical order, and `max_instances` of each. A
    schema whose regex has more than `max_pattern` characters or whose byte DFA has more than `max_states` states is not
    measured, nor are those whose turn comes after `seconds`, which belong below the experiment's limit on an item.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    engines: list[Engine] = Field(min_length=2)
    texts: dict[str, list[str]] | str = Field(default_factory=dict)
    schemas: str | None = None
    max_schemas: Count = 100
    max_instances: Count = 5
    max_pattern: Count = 100_000
    max_states: Count = 5_000
    seconds: Annotated[float, Field(gt=0)] = 120.0


class Case(NamedTuple):
    """A constraint with texts of its language. `skipped`: what is not measured, as (status, message, text)."""

    name: str
    constraint: Constraint | None
    texts: tuple[str, ...]
    inputs: str = ""
    skipped: tuple[tuple[str, str, str], ...] = ()


def check_settings(settings: dict[str, Any]) -> Settings:
    """The typed settings of an experiment. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    check_engines(typed.engines)
    if not typed.texts and typed.schemas is None:
        raise OptionError("saved_calls needs texts, with constraints, or schemas, without")
    return typed


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Follow the texts of one constraint, or the instances of a folder of schemas, with one tokenizer.

    `settings`: tokenizer (name); label, regex (and search, ascii_classes, flags) or choice; and those of `Settings`.
    `seed` is not used: nothing is random. Raises OptionError if the constraint has no texts, or is neither.
    """
    typed = check_settings({key: value for key, value in settings.items() if key not in _CONSTRAINT_KEYS})
    tokenizer = load_tokenizer(settings["tokenizer"])
    vocab = tokenizer.vocabulary
    if not {"regex", "choice"} & set(settings):
        if typed.schemas is None:
            raise OptionError("saved_calls takes regexes and choices; without constraints it needs the setting schemas")
        cases = schema_cases(typed)
    elif typed.schemas is None:
        cases = iter([_given_case(settings, typed)])
    else:
        raise OptionError("schemas take the place of constraints: leave one of the two out")
    backends: dict[str, Backend | TokdfaError] = {}
    for engine in typed.engines:
        try:
            backends[engine.name] = create_backend(engine.backend, vocab, **engine.options)
        except TokdfaError as error:
            backends[engine.name] = error
    ends, fallback = masks.mask_from_ids(vocab.end_tokens, vocab.size), _fallback_mask(tokenizer)
    rows = []
    for case in cases:
        place = {"tokenizer": tokenizer.name, "constraint": case.name, "inputs": case.inputs}
        for status, message, text in case.skipped:
            rows.append({**place, "engine": "", "text": text, "status": status, "message": message})
        if case.constraint is None:
            continue
        for engine in typed.engines:
            backend = backends[engine.name]
            found = _follow_case(backend, case.constraint, case.texts, tokenizer, ends, fallback)
            rows += [{**place, "engine": engine.name, "backend": engine.backend, **row} for row in found]
    return rows


def _given_case(settings: dict[str, Any], typed: Settings) -> Case:
    """The constraint of an item with its texts."""
    constraint: Constraint
    label = settings.get("label", "")
    if "choice" in settings:
        constraint = Choice(settings["choice"], label=label)
    else:
        names = ("search", "ascii_classes", "flags")
        constraint = Regex(
            settings["regex"], label=label, **{name: settings[name] for name in names if name in settings}
        )
    texts, inputs = (typed.texts, "") if isinstance(typed.texts, dict) else read_texts(Path(typed.texts))
    if not texts.get(label):
        raise OptionError(f"settings.texts has no texts for the constraint {constraint.name!r}")
    return Case(constraint.name, constraint, tuple(texts[label]), inputs)


def read_texts(path: Path) -> tuple[dict[str, list[str]], str]:
    """A YAML file of label -> list of texts, and 10 hex digits of a hash of it. Raises OptionError."""
    import yaml

    try:
        data = path.read_bytes()
        loaded = yaml.safe_load(data)
    except (OSError, yaml.YAMLError) as error:
        raise OptionError(
            f"settings.texts: {path} cannot be read (a path is relative to the current folder): {error}"
        ) from None
    if not isinstance(loaded, dict) or not all(
        isinstance(texts, list) and all(isinstance(text, str) for text in texts) for texts in loaded.values()
    ):
        raise OptionError(f"settings.texts: {path} must map labels to lists of texts")
    return loaded, _digest(data)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:10]


def schema_cases(settings: Settings) -> Iterator[Case]:
    """A case for each schema of a folder: its regex, and the instances that match it.

    Every file ``*.json`` holds ``{"schema": ..., "tests": [{"data": ..., "valid": true}, ...]}`` (the layout of
    MaskBench). `outlines_core.json_schema.build_regex_from_schema` makes the regex. An instance is written in the first
    of the `SEPARATORS` that match; characters outside ASCII stay as they are. Raises OptionError without such files,
    MissingDependency without outlines-core.
    """
    try:
        from outlines_core.json_schema import build_regex_from_schema
    except ImportError:
        raise MissingDependency("outlines-core", "peers", "the setting schemas of saved_calls") from None
    assert settings.schemas is not None
    files = sorted(Path(settings.schemas).glob("*.json"))
    if not files:
        raise OptionError(f"settings.schemas: there are no files *.json in {settings.schemas}")
    count = min(len(files), settings.max_schemas)
    chosen = {files[index * len(files) // count] for index in range(count)}
    started = time.monotonic()
    for file in files:
        if file not in chosen:
            yield _skipped(file, NOT_ASKED, f"only {count} of {len(files)} schemas are measured")
        elif time.monotonic() - started > settings.seconds:
            yield _skipped(file, NOT_ASKED, f"the {settings.seconds:g} s for all schemas are over")
        else:
            yield _schema_case(file, build_regex_from_schema, settings)


def _skipped(file: Path, status: str, message: str) -> Case:
    return Case(file.stem, None, (), skipped=((status, message[:MAX_MESSAGE], ""),))


def _schema_case(file: Path, build: Callable[[str], str], settings: Settings) -> Case:
    try:
        data = file.read_bytes()
        content = json.loads(data)
        schema, tests = content["schema"], content["tests"]
        instances = [test["data"] for test in tests if test["valid"]]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        return _skipped(file, UNREADABLE, f"{type(error).__name__}: {error}")
    if not instances:
        return _skipped(file, NO_INSTANCE, "no test is valid")
    try:
        pattern = build(json.dumps(schema))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        return _skipped(file, REFUSED, failure_of(error).message)
    if len(pattern) > settings.max_pattern:
        return _skipped(file, TOO_LARGE, f"the regex has more than {settings.max_pattern:,} characters")
    constraint = Regex(pattern, label=file.stem)
    try:
        language = compile_dfa(constraint, max_states=settings.max_states)
    except TokdfaError as error:
        failure = failure_of(error)
        return _skipped(file, TOO_LARGE if failure.kind == "memory" else REFUSED, failure.message)
    texts: list[str] = []
    skipped: list[tuple[str, str, str]] = []
    for instance in instances:
        written = [json.dumps(instance, ensure_ascii=False, separators=pair) for pair in SEPARATORS]
        # half a surrogate pair has no UTF-8 form, so no regex matches it
        matching = [text for text in written if language.accepts(text.encode(errors="surrogatepass"))]
        if matching and len(texts) < settings.max_instances:
            texts.append(matching[0])
            continue
        status, message = NOT_MATCHED, "the regex does not match a valid instance"
        if matching:
            status, message = NOT_ASKED, f"only {settings.max_instances} instances of a schema are measured"
        skipped.append((status, message, json.dumps(instance)[:MAX_MESSAGE]))
    return Case(file.stem, constraint if texts else None, tuple(texts), _digest(data), tuple(skipped))


def _fallback_mask(tokenizer: Tokenizer) -> Mask:
    """The tokens of the byte fallback; none for a tokenizer that does not merge, of which nothing is known."""
    try:
        tokens = tokenizer.merges.byte_tokens
    except TokenizerError:
        tokens = None
    ids = np.zeros(0, dtype=np.int32) if tokens is None else tokens[tokens >= 0]
    return masks.mask_from_ids(ids, tokenizer.vocabulary.size)


def _follow_case(
    backend: Backend | TokdfaError,
    constraint: Constraint,
    texts: Sequence[str],
    tokenizer: Tokenizer,
    ends: Mask,
    fallback: Mask,
) -> Iterator[dict[str, Any]]:
    """A row for each text, or a single one if the constraint cannot be compiled."""
    try:
        if isinstance(backend, TokdfaError):
            raise backend
        compiled = backend.compile(constraint)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        failure = failure_of(error)
        yield {"text": "", "status": failure.kind, "message": failure.message}
        return
    for text in texts:
        tokens = encode_exactly(tokenizer, tokenizer.vocabulary, text)
        row: dict[str, Any] = {"text": text, "status": OK, "message": "", "states": compiled.sizes.get("states")}
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
