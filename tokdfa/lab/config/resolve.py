"""From what an experiment file says to what it means: includes, grids, labels, and all checks with their places.

Each function takes raw YAML data with its place in the file and gives typed entries; a fault becomes a ConfigError
that names file, line and key, such as ``e.yaml:12: backends[2].options.lazi: there is no option ...``.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

from tokdfa.core.packages import install_commands
from tokdfa.errors import ConfigError, TokdfaError
from tokdfa.lab.config import checks
from tokdfa.lab.config.constraints import read_constraints
from tokdfa.lab.config.experiment import BackendEntry, ExperimentConfig, Part
from tokdfa.lab.config.shipped import find_experiment
from tokdfa.lab.config.yaml_source import YamlSource, read_yaml
from tokdfa.lab.kinds import find_kind, targets
from tokdfa.lab.measure.batch import Batch
from tokdfa.lab.measure.growing import PART
from tokdfa.lab.measure.limits import Limits
from tokdfa.lab.measure.measure import DEFAULT_MEASURES, MEASURES
from tokdfa.lab.measure.workloads import WORKLOADS, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tokdfa.lab.config.checks import Where

#: Combinations of the options of one backend.
MAX_GRID = 1_000

#: Keys that belong to experiments of the kind "backends" only.
_BACKEND_KEYS = ("backends", "reference", "workloads", "measures", "batch", "parts", "known")


def load_config(path: str | Path, settings: Mapping[str, Any] | None = None) -> ExperimentConfig:
    """Read, check and resolve an experiment file; a bare name is one that comes with the package (`config.shipped`).

    Raises ConfigError with file, line and key, and UnknownNameError for a name that is none.
    `settings` come on top of those in the file; those of a section in an experiment on backends as ``SECTION.NAME``.
    Cost: milliseconds, plus the import of the named backends' modules (not of the peers' packages), plus loading the
    tokenizers that are given as files.
    """
    path, settings = find_experiment(path), dict(settings or {})
    source = read_yaml(path)
    raw = _with_settings(source, checks.as_mapping(source, source.data, ()), settings)
    checks.refuse_unknown(source, raw, (), ExperimentConfig.model_fields)
    fields: dict[str, Any] = {
        key: value for key, value in raw.items() if key not in ("tokenizers", "constraints", *_BACKEND_KEYS, "limits")
    }
    kind = raw.get("kind", "backends")
    checks.require_known(source, ("kind",), "kind of experiment", kind, targets())
    _check_keys(source, raw, kind)
    if isinstance(raw.get("settings"), dict):
        fields["settings"] = _settings(source, raw["settings"], kind)
    fields["tokenizers"] = _tokenizers(source, raw.get("tokenizers", []), ("tokenizers",))
    fields["constraints"] = read_constraints(source, raw)
    for index, entry in enumerate(raw.get("constraints", [])):
        _tokenizers(source, entry.get("tokenizers", []), ("constraints", index, "tokenizers"))
    fields["limits"] = checks.as_model(source, Limits, raw.get("limits", {}), ("limits",))
    if kind == "backends":
        fields |= _backend_fields(source, raw)
    config = checks.as_model(source, ExperimentConfig, fields, ())
    _check_texts(source, config)
    config = config.model_copy(update={"settings": _by_section(kind, config.settings, partial(_checked, source))})
    config._source, config._given = path, settings
    return config


def _with_settings(source: YamlSource, raw: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """`raw` with these settings in place of its own; ``SECTION.NAME`` is a setting of a section."""
    if not settings:
        return raw
    own = dict(checks.as_mapping(source, raw.get("settings", {}), ("settings",)))
    for name, value in settings.items():
        section, dot, inner = name.partition(".")
        if not dot:
            own[name] = value
        else:
            own[section] = {**checks.as_mapping(source, own.get(section, {}), ("settings", section)), inner: value}
    return {**raw, "settings": own}


def _check_keys(source: YamlSource, raw: dict[str, Any], kind: str) -> None:
    """Refuse keys that do not go with the kind of experiment, and ask for those that it needs."""
    if kind == "backends":
        for key in ("tokenizers", "constraints", "backends"):
            if not raw.get(key):
                raise source.error(f"an experiment on backends needs {key}", (key,))
        for section in raw["settings"] if isinstance(raw.get("settings"), dict) else ():
            if section == "backends" or section not in targets():
                raise source.error(
                    "settings are for special kinds of experiments; one on backends has a section for each kind to "
                    f"measure beside them, and {section!r} is none",
                    ("settings",),
                )
        return
    for key in _BACKEND_KEYS:
        if raw.get(key):
            raise source.error(f"an experiment of kind {kind} has no {key}; what it needs goes into settings", (key,))


def _backend_fields(source: YamlSource, raw: dict[str, Any]) -> dict[str, Any]:
    backends = _backends(source, raw)
    labels = [entry.label for entry in backends]
    reference = raw.get("reference", labels[0])
    checks.require_known(source, ("reference",), "backend label", reference, labels)
    return {
        "backends": backends,
        "reference": reference,
        "workloads": _workloads(source, raw),
        "measures": _measures(source, raw),
        "batch": _batch(source, raw),
        "parts": _parts(source, raw, labels),
        "known": read_constraints(source, raw, "known"),
    }


def _batch(source: YamlSource, raw: dict[str, Any]) -> Batch | None:
    """The sizes of batches, where they are measured."""
    if "batch" in raw and "batch" not in raw.get("measures", []):
        raise source.error("sizes of batches are for the measure 'batch', which is not among the measures", ("batch",))
    asked = "batch" in raw.get("measures", [])
    return checks.as_model(source, Batch, raw.get("batch", {}), ("batch",)) if asked else None


def _parts(source: YamlSource, raw: dict[str, Any], labels: list[str]) -> list[Part]:
    """The parts of an ablation, whose labels must be those of backends."""
    found = []
    for index, given in enumerate(checks.as_list(source, raw.get("parts", []), ("parts",))):
        part = checks.as_model(source, Part, given, ("parts", index))
        for key, label in (("with", part.having), ("without", part.without)):
            checks.require_known(source, ("parts", index, key), "backend label", label, labels)
        found.append(part)
    return found


def _tokenizers(source: YamlSource, given: Any, place: Where) -> list[str]:
    from tokdfa.vocabulary.tokenizers import load_tokenizer, tokenizer_names

    names = checks.as_list(source, given, place)
    known = tokenizer_names()
    for index, name in enumerate(names):
        where = (*place, index)
        if not isinstance(name, str):
            raise source.error(f"a tokenizer is named by a text, not {name!r}", where)
        whole = name if (part := PART.fullmatch(name)) is None else part["whole"]
        try:
            if whole not in known:  # a file, or a mistake: loading tells
                load_tokenizer(whole)
            elif known[whole].missing:
                commands = " && ".join(install_commands(known[whole].missing))
                raise source.error(f"tokenizer {whole} needs packages that are not installed: {commands}", where)
        except ConfigError:
            raise
        except TokdfaError as error:
            raise source.error(str(error), where) from None
    checks.refuse_twice(source, "tokenizer", names, [(*place, index) for index in range(len(names))])
    return names


def _backends(source: YamlSource, raw: dict[str, Any]) -> list[BackendEntry]:
    from tokdfa.backends.registry import backend_names

    entries: list[BackendEntry] = []
    places: list[Where] = []
    for index, given in enumerate(checks.as_list(source, raw["backends"], ("backends",))):
        where: Where = ("backends", index)
        if isinstance(given, str):
            checks.require_known(source, where, "backend", given, backend_names())
            given = {"name": given}
        grid = _grid(source, checks.as_mapping(source, given, where), where)
        for entry in grid:
            twin = next((one for one in entries if (one.name, one.options) == (entry.name, entry.options)), None)
            if twin is None or twin.label == entry.label:
                entries.append(entry)
                places.append(where)
            elif len(grid) == 1:  # grids may overlap
                raise source.error(
                    f"{entry.label!r} and {twin.label!r} are the same backend with the same options", where
                )
    checks.refuse_twice(source, "backend label", [entry.label for entry in entries], places)
    return entries


def _grid(source: YamlSource, entry: dict[str, Any], where: Where) -> list[BackendEntry]:
    """One entry for each combination of the option values that are given as lists."""
    from tokdfa.backends.registry import backend_class, backend_names

    checks.refuse_unknown(source, entry, where, BackendEntry.model_fields)
    if "name" not in entry:
        raise source.error("key 'name' is missing", where)
    name, label = entry["name"], entry.get("label", "")
    checks.require_known(source, (*where, "name"), "backend", name, backend_names())
    if not isinstance(label, str):
        raise source.error(f"a label is a text, not {label!r}; quote it", (*where, "label"))
    options = checks.as_mapping(source, entry.get("options", {}), (*where, "options"))
    known = {option.name: option for option in backend_class(name).options}
    axes: dict[str, list[Any]] = {}
    for key, value in options.items():
        place = (*where, "options", key)
        checks.require_known(source, place, f"option of backend {name}", key, known)
        axes[key] = _values(source, place, value if isinstance(value, list) else [value], known[key].check)
    shown = [key for key in options if not label or isinstance(options[key], list)]
    combinations = list(itertools.islice(itertools.product(*axes.values()), MAX_GRID + 1))
    if len(combinations) > MAX_GRID:
        raise source.error(f"this grid has more than {MAX_GRID} combinations", (*where, "options"))
    defaults = {option.name: option.default for option in known.values()}
    entries = []
    for values in combinations:
        chosen = dict(zip(axes, values, strict=True))
        words = [label or name, *(f"{key}={_shown(chosen[key])}" for key in shown)]
        entries.append(BackendEntry(name=name, label=" ".join(words), options={**defaults, **chosen}))
    return entries


def _values(source: YamlSource, where: Where, values: list[Any], check: Callable[[Any], Any]) -> list[Any]:
    if not values:
        raise source.error("an empty list gives no combination at all", where)
    try:
        return [check(value) for value in values]
    except TokdfaError as error:
        raise source.error(str(error), where) from None


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _workloads(source: YamlSource, raw: dict[str, Any]) -> list[Workload]:
    given = checks.as_list(source, raw.get("workloads", [{"kind": "random_walk"}]), ("workloads",))
    if not given:
        raise source.error("an experiment on backends needs at least one workload", ("workloads",))
    entries = []
    for index, raw_entry in enumerate(given):
        where: Where = ("workloads", index)
        entry = dict(checks.as_mapping(source, raw_entry, where))
        checks.require_known(source, (*where, "kind"), "kind of workload", entry.get("kind"), WORKLOADS)
        if entry["kind"] == "strings" and "file" in entry:
            if "texts" in entry:
                raise source.error("give either texts or a file", where)
            entry["texts"] = checks.texts_beside(source, entry.pop("file"), (*where, "file"))
        typed = checks.as_model(source, WORKLOADS[entry["kind"]], entry, where)
        entries.append(typed if typed.label else typed.model_copy(update={"label": typed.default_label}))
    places = [("workloads", index) for index in range(len(entries))]
    checks.refuse_twice(source, "workload label", [entry.label for entry in entries], places)
    return entries


def _measures(source: YamlSource, raw: dict[str, Any]) -> list[str]:
    given = checks.as_list(source, raw.get("measures", list(DEFAULT_MEASURES)), ("measures",))
    for index, measure in enumerate(given):
        checks.require_known(source, ("measures", index), "measure", measure, MEASURES)
    if not given:
        raise source.error("there is nothing to measure", ("measures",))
    return [measure for measure in MEASURES if measure in given]


def _settings(source: YamlSource, raw: dict[str, Any], kind: str) -> dict[str, Any]:
    """The settings of a special kind; of an experiment on backends, those of the kinds that it measures beside them."""

    def read(section: str, given: Any, where: Where) -> dict[str, Any]:
        settings = checks.as_mapping(source, given, where)
        return {key: _setting(source, value, (*where, key)) for key, value in settings.items()}

    return _by_section(kind, raw, read)


def _by_section(kind: str, settings: dict[str, Any], change: Callable[[str, Any, Where], Any]) -> dict[str, Any]:
    """Settings changed section by section, given each kind with its settings and their place."""
    if kind != "backends":
        return dict(change(kind, settings, ("settings",)))
    return {section: change(section, given, ("settings", section)) for section, given in settings.items()}


def _setting(source: YamlSource, value: Any, where: Where) -> Any:
    """A setting; ``{file: NAME}`` stands for what that file, beside the experiment's, holds, ``{folder: NAME}`` for
    the whole path of that folder.
    """
    if isinstance(value, dict) and set(value) == {"file"}:
        return checks.read_beside(source, value["file"], (*where, "file")).data
    if isinstance(value, dict) and set(value) == {"folder"}:
        return str(checks.path_beside(source, value["folder"], (*where, "folder"), "folder").absolute())
    return value


def _check_texts(source: YamlSource, config: ExperimentConfig) -> None:
    """The workload ``texts`` needs texts of every constraint, and has none of its own."""
    for index, workload in enumerate(config.workloads):
        if workload.kind == "texts" and workload.texts:
            raise source.error(
                "the texts of this workload are those of the constraints; for others take the kind strings",
                ("workloads", index, "texts"),
            )
        for entry in config.constraints if workload.kind == "texts" else ():
            if not entry.texts:
                raise source.error(f"constraint {entry.label!r} has no texts", ("workloads", index))


def _checked(source: YamlSource, kind: str, settings: dict[str, Any], where: Where) -> dict[str, Any]:
    """The settings of a special kind, after it has looked at them and completed them."""
    try:
        chosen = find_kind(kind)
        if chosen.settings is not None:
            checks.as_model(source, chosen.settings, settings, where)
        return settings if chosen.complete is None else chosen.complete(settings)
    except ConfigError:
        raise
    except TokdfaError as error:
        raise source.error(str(error), where) from None
