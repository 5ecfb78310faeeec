"""Ways to decode, each to one answer, with what it cost: the instruments of ``kind: worth``.

Methods: ``none``, the model alone to the end of its line; ``masks``, local masking; ``reason``, a line of free text and
then local masking; and those of `tokdfa.decoding`, which approach the model's own distribution under the constraint:
``rejection``, ``smc``, ``awrs``, ``asap``, ``cars``, ``adaptrack``, ``mcmc``. Those sample at temperature 1, as
they are defined; ``none`` does, too, as what the others are set against. ``masks`` and ``reason`` may have another
temperature, or be greedy. Of weighted sequences one is taken by its weight; of ASAp's the last one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from tokdfa.constraint import Constraint, JsonSchema
from tokdfa.decoding.adaptive_rejection import draw_by_adaptive_rejection
from tokdfa.decoding.adaptrack import draw_by_adaptrack
from tokdfa.decoding.asap import draw_by_asap
from tokdfa.decoding.cars import draw_by_cars
from tokdfa.decoding.loop import generate
from tokdfa.decoding.mcmc import draw_by_mcmc
from tokdfa.decoding.rejection import draw_by_rejection
from tokdfa.decoding.sampling import Sampler, draw_index, log_total, random_generator
from tokdfa.decoding.smc import draw_by_smc
from tokdfa.errors import OptionError
from tokdfa.lab.measure.counting_model import CountingModel
from tokdfa.lab.measure.engines import Engine, schema_with
from tokdfa.lab.measure.settings import Strict
from tokdfa.lab.measure.timed_matcher import TimedConstraint
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.mask import mask_from_bool

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.decoding.draws import Draws, Eos
    from tokdfa.lab.measure.model_price import Price
    from tokdfa.models.base import LanguageModel
    from tokdfa.vocabulary.tokenizers import Tokenizer

#: What stands before an answer in the prompts of `tokdfa.tasks`, and before a line of reasoning in its place.
ANSWER, REASON = "Output:\n", "Reasoning:"

#: The methods of local masking, and what only they can be told.
LOCAL = ("masks", "reason")
LOCAL_OPTIONS = ("skip_forced", "always_ends", "greedy", "temperature")


class Answer(NamedTuple):
    """`tokens`, without an end token, `text`: their bytes, `finished`: ended by itself; `mask_seconds`, `forced`: steps
    with one allowed token; if known.
    """

    tokens: tuple[int, ...]
    text: bytes
    finished: bool
    mask_seconds: float | None = None
    forced: int | None = None


class Way(Strict):
    """A method with its size. `label`: its name in tables, by default the method.

    `size`: particles (smc, awrs), samples (asap), steps (mcmc), tokens of reasoning (reason), at most so many drafts
    (rejection, cars) or prefixes looked at (adaptrack); `proper`: masks of proper sequences only. `backend` with its
    `options`: makes the masks, by default the experiment's; `json_schema`: options of schemas, such as ``profile:
    generation``, in place of their own.

    Of masks and reason only (`LOCAL_OPTIONS`): `skip_forced`, the model is not asked where one token may come;
    `always_ends`; `greedy` and `temperature`, of the line of reasoning, too.
    """

    method: Literal["none", "masks", "reason", "rejection", "smc", "awrs", "asap", "cars", "adaptrack", "mcmc"]
    label: str = ""
    size: int = Field(default=8, ge=1, le=100_000)
    proper: bool = False
    skip_forced: bool = True
    always_ends: bool = False
    greedy: bool = False
    temperature: Annotated[float, Field(gt=0)] = 1.0
    backend: str = ""
    options: dict[str, bool | int | float | str | None] = Field(default_factory=dict)
    json_schema: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_possible(self) -> Way:
        if self.backend:
            Engine(backend=self.backend, options=self.options)
        self.constraint(JsonSchema(True))
        for name in () if self.method in LOCAL else LOCAL_OPTIONS:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise OptionError(
                    f"settings.ways: {self.name}: {self.method} takes no {name}; leave it out, or take the method "
                    f"{' or '.join(LOCAL)}"
                )
        return self

    def constraint(self, given: Constraint) -> Constraint:
        """A constraint as this way gets it. Raises OptionError."""
        if not self.json_schema or not isinstance(given, JsonSchema):
            return given
        return schema_with(self.json_schema, given.text, label=given.label)

    @property
    def draws_as_masked(self) -> bool:
        """Whether its answers are drawn token by token from what masks leave of the model's distribution."""
        return self.method == "masks" and not (self.greedy or self.always_ends) and self.temperature == 1

    @property
    def name(self) -> str:
        """The label, or the method."""
        return self.label or self.method


def answer(
    way: Way,
    model: LanguageModel,
    compiled: CompiledConstraint,
    prompt: str,
    tokenizer: Tokenizer,
    max_tokens: int,
    seed: int,
    price: Price,
    eos: Eos,
) -> dict[str, Any]:
    """One answer and its cost: the columns of `decode`, and ``text``, ``finished``, ``tokens``, ``steps`` (tokens and
    the end), ``forced``.
    """
    found, costs = decode(way, model, compiled, prompt, tokenizer, max_tokens, seed, price, eos)
    one = found if isinstance(found, Answer) else _taken(found, way, seed)
    told = {"text": one.text.decode(errors="backslashreplace"), "finished": one.finished, "tokens": len(one.tokens)}
    return {**told, "steps": len(one.tokens) + one.finished, "forced": one.forced, **costs}


def decode(
    way: Way,
    model: LanguageModel,
    compiled: CompiledConstraint,
    prompt: str,
    tokenizer: Tokenizer,
    max_tokens: int,
    seed: int,
    price: Price,
    eos: Eos,
) -> tuple[Answer | Draws, dict[str, float]]:
    """What a way ends with, one answer or weighted sequences, and its cost: ``passes`` (different prefixes that the
    model was asked about), ``seconds``, ``mask_seconds``. `eos`: of the ways that draw sequences.

    `model` may have rows from elsewhere: ``seconds`` are those of the loop itself, and the model's by its `price`, with
    each batch a call and each token behind the prompt a row, as in a loop that keeps rows and states for one answer.
    """
    timed, counting = TimedConstraint(compiled), CountingModel(model)
    started = time.perf_counter_ns()
    context = tokenizer.encode(prompt)
    found: Answer | Draws
    if way.method in ("none", *LOCAL):
        found = _local(way, counting, compiled, prompt, tokenizer, max_tokens, seed)
    else:
        found = _draw(way, counting, timed, context, max_tokens, seed, eos)
    own = (time.perf_counter_ns() - started) * 1e-9 - counting.counts.seconds
    read = counting.tokens_read(len(model.start_tokens) + len(context))
    known = found.mask_seconds if isinstance(found, Answer) else None
    return found, {
        "passes": counting.different_rows,
        "seconds": own + counting.calls * price.call + read * price.row,
        "mask_seconds": timed.meter.ns * 1e-9 if known is None else known,
    }


def _local(
    way: Way,
    model: LanguageModel,
    compiled: CompiledConstraint,
    prompt: str,
    tokenizer: Tokenizer,
    max_tokens: int,
    seed: int,
) -> Answer:
    if way.method == "none":
        return _line(model, tokenizer.encode(prompt), max_tokens, Sampler(seed=seed))
    if way.method == "reason":
        asked = prompt.removesuffix(ANSWER) + REASON
        freely = Sampler(way.temperature, greedy=way.greedy, seed=seed)
        line = _line(model, tokenizer.encode(asked), way.size, freely).text.decode(errors="replace")
        prompt = f"{asked} {line}\n{ANSWER}"
    context = tokenizer.encode(prompt)
    sampler = Sampler(way.temperature, greedy=way.greedy, seed=seed)
    found = generate(model, compiled, context, sampler, max_tokens, way.skip_forced, way.always_ends)
    return Answer(found.tokens, found.spelled, found.finished, found.mask_seconds, found.forced)


def _line(model: LanguageModel, context: list[int], max_tokens: int, sampler: Sampler) -> Answer:
    """What the model writes by itself to the end of a line, an end token, or the limit, without blanks around it."""
    vocabulary = model.vocabulary
    every = mask_from_bool(np.ones(vocabulary.size, dtype=bool))
    tokens: list[int] = []
    before = (*model.start_tokens, *context)
    while len(tokens) < max_tokens:
        (row,) = model.log_probabilities([(*before, *tokens)])
        token = sampler.choose(row, every)
        if token in vocabulary.end_token_set:
            return Answer(tuple(tokens), vocabulary.spell(tokens).strip(), True, 0.0)
        tokens.append(token)
        if b"\n" in vocabulary.token_bytes(token):
            return Answer(tuple(tokens), vocabulary.spell(tokens).partition(b"\n")[0].strip(), True, 0.0)
    return Answer(tuple(tokens), vocabulary.spell(tokens).strip(), False, 0.0)


def _draw(
    way: Way, model: LanguageModel, timed: TimedConstraint, context: list[int], max_tokens: int, seed: int, eos: Eos
) -> Draws:
    more: dict[str, Any] = {"max_tokens": max_tokens, "seed": seed, "eos": eos}
    if way.method == "rejection":
        return draw_by_rejection(model, timed, context, samples=1, max_drafts=way.size, batch=1, **more)
    if way.method == "cars":
        return draw_by_cars(model, timed, context, samples=1, max_drafts=way.size, backtrack=True, **more)
    if way.method == "adaptrack":
        return draw_by_adaptrack(model, timed, context, samples=1, max_looks=way.size, **more)
    if way.method == "mcmc":
        return draw_by_mcmc(model, timed, context, samples=1, steps=way.size, proposal="priority", **more)
    if way.method == "asap":
        return draw_by_asap(model, timed, context, samples=way.size, max_drafts=way.size, **more)
    draw = draw_by_smc if way.method == "smc" else draw_by_adaptive_rejection
    return draw(model, timed, context, particles=way.size, **more)


def _taken(draws: Draws, way: Way, seed: int) -> Answer:
    """The answer among the sequences; an unfinished empty one if there is none."""
    log_sum = log_total(draws.log_weights)
    if log_sum == -np.inf:
        return Answer((), b"", False)
    last = len(draws.sequences) - 1
    place = last
    if way.method != "asap":
        # not with the numbers that the sequences were drawn by
        drawn = random_generator(derive_seed(seed, "answer"))
        place = draw_index(np.cumsum(np.exp(draws.log_weights - log_sum)), drawn)
    return Answer(draws.sequences[place], draws.texts[place], True)
