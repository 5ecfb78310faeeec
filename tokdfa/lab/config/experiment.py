"""The experiment file: a typed YAML, checked as a whole before anything runs.

`load_config` resolves what the file leaves open: files it refers to are read in, grids of backend options are spelled
out, defaults and labels are filled in. Two files that resolve to the same thing are the same experiment. The resolved
form is itself an experiment file (``config.yaml`` in the run folder) and loads to an equal config.

What is refused here rather than during a run: unknown or missing keys, wrong types, unknown backends, options, option
values, tokenizers, workloads and measures, patterns that cannot be parsed, labels given twice. A backend whose package
is missing and a constraint that a backend does not take are results, not mistakes: they become rows that say so.
"""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field, PrivateAttr, field_validator

from tokdfa.lab.config.shipped import installed_folder
from tokdfa.lab.measure.constraint_entry import ConstraintEntry  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.lab.measure.contenders import MEASURES
from tokdfa.lab.measure.limits import Limits
from tokdfa.lab.measure.settings import Strict
from tokdfa.lab.measure.workloads import Workload, canonical_json

if TYPE_CHECKING:
    from tokdfa.backends.base import Backend

#: Keys that an experiment which does not use them is stored without.
OPTIONAL = ("minutes", "known", "parts", "way", "pythons")
Measure = Literal["compile", "first_mask", "mask", "advance", "seen", "memory"]


class BackendEntry(Strict):
    """One backend with one value for each of its options. `label` is its name in tables."""

    name: str
    label: str
    options: dict[str, bool | int | float | str | None] = Field(default_factory=dict)

    def backend_class(self) -> type[Backend]:
        """The class of the backend. Raises UnknownNameError."""
        from tokdfa.backends.registry import backend_class

        return backend_class(self.name)


class Part(Strict):
    """A part of an ablation by its title, and the labels of the backends with it and without it."""

    model_config = ConfigDict(populate_by_name=True)

    part: str
    having: Annotated[str, Field(alias="with")]
    without: str


class ExperimentConfig(Strict):
    """An experiment, resolved. Made by `load_config`; see the module's page for what it guarantees.

    `way`: of backends, "served", a process for each that lives as long as the run is at a tokenizer, or "fresh", a new
    one for each constraint and workload. `known`: constraints whose masks along their texts a new process makes before
    anything is measured, untimed, for backends that keep something for the next constraint. `pythons`: backend -> path
    of the Python interpreter that runs it, where that is not the one of the run: for a peer whose packages need an
    environment of their own.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$")]
    question: str = ""
    minutes: Annotated[float, Field(gt=0)] | None = None
    kind: str = "backends"
    tokenizers: list[str] = Field(default_factory=list)
    constraints: list[ConstraintEntry] = Field(default_factory=list)
    known: list[ConstraintEntry] = Field(default_factory=list)
    backends: list[BackendEntry] = Field(default_factory=list)
    reference: str = ""
    workloads: list[Annotated[Workload, Field(discriminator="kind")]] = Field(default_factory=list)
    measures: list[Measure] = Field(default_factory=list)
    parts: list[Part] = Field(default_factory=list)
    pythons: dict[str, str] = Field(default_factory=dict)
    way: Literal["", "served", "fresh"] = ""
    repeats: Annotated[int, Field(ge=1, le=10_000)] = 5
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    limits: Limits = Field(default_factory=Limits)
    settings: dict[str, Any] = Field(default_factory=dict)

    @field_validator("measures")
    @classmethod
    def _in_order(cls, given: list[Measure]) -> list[Measure]:
        return sorted(set(given), key=MEASURES.index)

    @field_validator("workloads")
    @classmethod
    def _labelled(cls, given: list[Workload]) -> list[Workload]:
        return [one if one.label else one.model_copy(update={"label": one.default_label}) for one in given]

    _source: Path | None = PrivateAttr(default=None)
    _given: dict[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def source(self) -> Path | None:
        """The file it was loaded from."""
        return self._source

    @property
    def command(self) -> str:
        """The command that runs it (again), settings that were given beside the file included."""
        if self._source is None:
            return "run(config)"
        words = [f"--set {shlex.quote(f'{name}={canonical_json(value)}')}" for name, value in self._given.items()]
        return " ".join(["tokdfa run", str(self._source), *words])

    @property
    def reference_entry(self) -> BackendEntry | None:
        """The backend that ratios and mask differences refer to; None in a special kind of experiment."""
        return next((entry for entry in self.backends if entry.label == self.reference), None)

    @property
    def sections(self) -> dict[str, dict[str, Any]]:
        """Special kind -> its settings: the one kind of the experiment, or those that it measures beside backends."""
        return self.settings if self.kind == "backends" else {self.kind: self.settings}

    @property
    def common(self) -> ExperimentConfig:
        """What all groups share: without what each of their items holds itself, and need not travel twice."""
        return self.model_copy(update={"constraints": [], "settings": {}})

    @property
    def fingerprint(self) -> str:
        """10 hex digits of a hash of what all results depend on, so that runs that agree in it share a folder.

        It is everything but how they are told and the backends with their interpreters: an item depends on its own
        (see `expand`) and on the reference, so others may join or leave.
        """
        backends = [one for one in self.backends if one.label == self.reference]
        told: dict[str, Any] = {"question": "", "minutes": None, "parts": []}
        content = self.model_copy(update={"backends": backends, "pythons": {}, **told})._plain()
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:10]

    def _plain(self) -> dict[str, Any]:
        """The experiment as plain data: of `OPTIONAL` keys, and of constraints, what is given."""
        data = self.model_dump(mode="json", by_alias=True)
        for key in ("constraints", "known"):
            data[key] = [entry.model_dump(mode="json", exclude_defaults=True) for entry in getattr(self, key)]
        return {key: value for key, value in data.items() if value or key not in OPTIONAL}

    @property
    def folder_name(self) -> str:
        """The name of the run folder: ``NAME-FINGERPRINT``."""
        return f"{self.name}-{self.fingerprint}"

    @property
    def results_folder(self) -> Path:
        """Where run folders go by default: ``results`` beside the experiment file, or in the current folder if the
        file belongs to an installed package.
        """
        beside = self._source.parent if self._source else Path()
        return Path("results") if beside == installed_folder() else beside / "results"

    def to_yaml(self) -> str:
        """The resolved experiment as YAML text, which `load_config` reads back to an equal config."""
        import yaml

        return yaml.safe_dump(self._plain(), sort_keys=False, allow_unicode=True, width=100)
