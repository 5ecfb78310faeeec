"""From what an experiment file says to what it means: includes, grids, labels, and all checks with their places.

`ExperimentConfig` says which keys there are and of which type; here is what a type cannot say. A fault becomes a
ConfigError that names file, line and key, such as ``e.yaml:12: backends[2].options.lazi: there is no option ...``.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from tokdfa.backends.registry import backend_class, backend_names
from tokdfa.core.packages import install_commands
from tokdfa.errors import ConfigError, TokdfaError
from tokdfa.lab.config import checks
from tokdfa.lab.config.constraints import read_constraints
from tokdfa.lab.config.experiment import BackendEntry, ExperimentConfig
from tokdfa.lab.config.shipped import find_experiment
from tokdfa.lab.config.yaml_source import YamlSource, read_yaml
from tokdfa.lab.kinds import find_kind, starts_engines, targets
from tokdfa.lab.measure.contenders import DEFAULT_MEASURES
from tokdfa.lab.measure.growing import SUBSET
from tokdfa.lab.measure.settings import Strict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tokdfa.lab.config.checks import Where

#: Combinations of the options of one backend.
MAX_GRID = 1_000

#: Keys that belong to experiments of the kind "backends" only.
_BACKEND_KEYS = ("backends", "reference", "workloads", "measures", "parts", "known", "way")


class _Grid(Strict):
    """A backend as a file gives it: a list of an option's values makes an entry of each."""

    name: str
    label: str = ""
    options: dict[Any, Any] = Field(default_factory=dict)


def load_config(path: str | Path, settings: Mapping[str, Any] | None = None) -> ExperimentConfig:
    """Read, check and resolve an experiment file; a bare name is one that comes with the package (`config.shipped`).

    Raises ConfigError with file, line and key, and UnknownNameError for a name that is none.
    `settings` come on top of those in the file; those of a section in an experiment on backends as ``SECTION.NAME``.
    ``pythons`` is no setting but the experiment's own key, one of its entries ``pythons.BACKEND``.
    Cost: milliseconds, plus the import of the named backends' modules (not of the peers' packages), plus loading the
    tokenizers that are given as files.
    """
    path, settings = find_experiment(path), dict(settings or {})
    source = read_yaml(path)
    raw = _with_settings(source, checks.as_mapping(source, source.data, ()), settings)
    kind = raw.get("kind", "backends")
    checks.require_known(source, ("kind",), "kind of experiment", kind, targets())
    _check_keys(source, raw, kind)
    _check_given(source, kind, settings)
    fields = {**raw, "constraints": read_constraints(source, raw), "pythons": _pythons(source, raw, kind)}
    given = raw.get("settings")
    if isinstance(given, dict) and kind == "backends":
        fields["settings"] = {one: _settings(source, one, own, ("settings", one)) for one, own in given.items()}
    elif isinstance(given, dict):
        fields["settings"] = _settings(source, kind, given, ("settings",))
    if kind == "backends":
        backends = _backends(source, raw["backends"])
        fields |= {
            "backends": backends,
            "reference": raw.get("reference", backends[0].label),
            "workloads": _workloads(source, raw.get("workloads", [{"kind": "random_walk"}])),
            "measures": raw.get("measures", [*DEFAULT_MEASURES]),
            "known": read_constraints(source, raw, "known"),
            "way": raw.get("way", "served"),
        }
    config = checks.as_model(source, ExperimentConfig, fields, ())
    if kind == "backends":
        _check_together(source, config)
    _check_tokenizers(source, config.tokenizers, ("tokenizers",))
    for index, entry in enumerate(raw.get("constraints", [])):
        _check_tokenizers(source, entry.get("tokenizers", []), ("constraints", index, "tokenizers"))
    config._source, config._given = path, settings
    return config


def _with_settings(source: YamlSource, raw: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """`raw` with these settings in place of its own; ``SECTION.NAME`` is a setting of a section."""
    if not settings:
        return raw
    own = dict(checks.as_mapping(source, raw.get("settings", {}), ("settings",)))
    found = {"settings": own, "pythons": raw.get("pythons", {})}
    for name, value in settings.items():
        section, dot, inner = name.partition(".")
        place = found if section == "pythons" else own
        if not dot:
            place[name] = value
        else:
            place[section] = {**checks.as_mapping(source, place.get(section, {}), ("settings", section)), inner: value}
    return {**raw, **found}


def _pythons(source: YamlSource, raw: dict[str, Any], kind: str) -> dict[str, str]:
    """Backend -> the whole path of its interpreter; a link stays one, as those of environments are."""
    given = checks.as_mapping(source, raw.get("pythons", {}), ("pythons",))
    if given and kind != "backends" and not starts_engines(kind):
        raise source.error(f"an experiment of kind {kind} starts no process for each engine", ("pythons",))
    for name in given:
        checks.require_known(source, ("pythons", name), "backend", name, backend_names())
    return {str(name): str(Path(str(path)).expanduser().absolute()) for name, path in given.items()}


def _check_keys(source: YamlSource, raw: dict[str, Any], kind: str) -> None:
    """Refuse keys that do not go with the kind of experiment, and ask for those that it needs."""
    for key in raw:
        checks.require_known(source, (key,), "key", key, ExperimentConfig.model_fields)
    if kind != "backends":
        for key in _BACKEND_KEYS:
            if raw.get(key):
                said = f"an experiment of kind {kind} has no {key}; what it needs goes into settings"
                raise source.error(said, (key,))
        return
    for key in ("tokenizers", "constraints", "backends"):
        if not raw.get(key):
            raise source.error(f"an experiment on backends needs {key}", (key,))
    for section in raw["settings"] if isinstance(raw.get("settings"), dict) else ():
        if section == "backends" or section not in targets():
            sections = sorted(raw["settings"].keys() & targets())
            known = "; ".join(f"{one}. with {', '.join(_setting_names(one)) or 'any key'}" for one in sections)
            raise source.error(
                f"there is no setting {section!r}: settings of an experiment on backends are those of the special "
                f"kinds that it measures beside them, SECTION.KEY: {known or 'this one has none'}; other keys are "
                "changed in the file",
                ("settings",),
            )


def _check_given(source: YamlSource, kind: str, settings: Mapping[str, Any]) -> None:
    """Refuse what is given beside the file and is no setting of its special kind."""
    known = _setting_names(kind) if kind != "backends" else []
    for name in settings:
        if known and name.partition(".")[0] not in (*known, "pythons"):
            said = f"there is no setting {name!r}: settings of {kind} are {', '.join(known)}"
            raise source.error(f"{said}; other keys are changed in the file", ("settings",))


def _setting_names(kind: str) -> list[str]:
    """The keys of a kind's settings."""
    model = find_kind(kind).settings
    return [] if model is None else sorted(model.model_fields)


def _check_together(source: YamlSource, config: ExperimentConfig) -> None:
    """What parts of an experiment on backends say of each other."""
    labels = [entry.label for entry in config.backends]
    checks.require_known(source, ("reference",), "backend label", config.reference, labels)
    for index, part in enumerate(config.parts):
        for key, label in (("with", part.having), ("without", part.without)):
            checks.require_known(source, ("parts", index, key), "backend label", label, labels)
    for needed, key in ((config.workloads, "workloads"), (config.measures, "measures")):
        if not needed:
            raise source.error(f"an experiment on backends needs {key}", (key,))
    places: list[Where] = [("workloads", index) for index in range(len(config.workloads))]
    checks.refuse_twice(source, "workload label", [workload.label for workload in config.workloads], places)
    for index, workload in enumerate(config.workloads):
        if workload.kind == "texts" and workload.texts:
            raise source.error(
                "the texts of this workload are those of the constraints; for others take the kind strings",
                ("workloads", index, "texts"),
            )
        for entry in config.constraints if workload.kind == "texts" else ():
            if not entry.texts:
                raise source.error(f"constraint {entry.label!r} has no texts", ("workloads", index))


def _check_tokenizers(source: YamlSource, names: list[str], place: Where) -> None:
    """Refuse tokenizers that are not known or not installed, or given twice; files are loaded."""
    from tokdfa.vocabulary.tokenizers import load_tokenizer, tokenizer_names

    known = tokenizer_names()
    places: list[Where] = [(*place, index) for index in range(len(names))]
    for name, where in zip(names, places, strict=True):
        whole = name if (subset := SUBSET.fullmatch(name)) is None else subset["whole"]
        try:
            if whole not in known:  # a file, or a mistake: loading tells
                load_tokenizer(whole)
        except TokdfaError as error:
            raise source.error(str(error), where) from None
        if whole in known and known[whole].missing:
            commands = " && ".join(install_commands(known[whole].missing))
            raise source.error(f"tokenizer {whole} needs packages that are not installed: {commands}", where)
    checks.refuse_twice(source, "tokenizer", names, places)


def _backends(source: YamlSource, raw: Any) -> list[BackendEntry]:
    entries: list[BackendEntry] = []
    places: list[Where] = []
    for index, given in enumerate(checks.as_list(source, raw, ("backends",))):
        where: Where = ("backends", index)
        grid = _grid(source, {"name": given} if isinstance(given, str) else given, where)
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


def _grid(source: YamlSource, raw: Any, where: Where) -> list[BackendEntry]:
    """One entry for each combination of the option values that are given as lists."""
    entry = checks.as_model(source, _Grid, raw, where)
    checks.require_known(source, (*where, "name"), "backend", entry.name, backend_names())
    options = checks.as_mapping(source, entry.options, (*where, "options"))
    known = {option.name: option for option in backend_class(entry.name).options}
    axes: dict[str, list[Any]] = {}
    for key, value in options.items():
        place = (*where, "options", key)
        checks.require_known(source, place, f"option of backend {entry.name}", key, known)
        axes[key] = _values(source, place, value if isinstance(value, list) else [value], known[key].check)
    shown = [key for key in options if not entry.label or isinstance(options[key], list)]
    combinations = list(itertools.islice(itertools.product(*axes.values()), MAX_GRID + 1))
    if len(combinations) > MAX_GRID:
        raise source.error(f"this grid has more than {MAX_GRID} combinations", (*where, "options"))
    defaults = {option.name: option.default for option in known.values()}
    entries = []
    for values in combinations:
        chosen = dict(zip(axes, values, strict=True))
        words = [entry.label or entry.name, *(f"{key}={_shown(chosen[key])}" for key in shown)]
        entries.append(BackendEntry(name=entry.name, label=" ".join(words), options={**defaults, **chosen}))
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


def _workloads(source: YamlSource, raw: Any) -> list[Any]:
    """The workloads as they are given, with the texts of files."""
    found = []
    for index, entry in enumerate(checks.as_list(source, raw, ("workloads",))):
        if isinstance(entry, dict) and "file" in entry:
            if "texts" in entry:
                raise source.error("give either texts or a file", ("workloads", index))
            texts = checks.texts_beside(source, entry["file"], ("workloads", index, "file"))
            entry = {**{key: value for key, value in entry.items() if key != "file"}, "texts": texts}
        found.append(entry)
    return found


def _settings(source: YamlSource, kind: str, given: Any, where: Where) -> dict[str, Any]:
    """The settings of a special kind, after it has looked at them and completed them.

    ``{file: NAME}`` stands for what that file, beside the experiment's, holds, ``{folder: NAME}`` for the whole path of
    that folder.
    """
    settings = dict(checks.as_mapping(source, given, where))
    if "pythons" in settings:
        raise source.error("pythons is a key of the experiment, beside its settings", (*where, "pythons"))
    for key, value in settings.items():
        if isinstance(value, dict) and set(value) == {"file"}:
            settings[key] = checks.read_beside(source, value["file"], (*where, key, "file")).data
        elif isinstance(value, dict) and set(value) == {"folder"}:
            folder = checks.path_beside(source, value["folder"], (*where, key, "folder"), "folder")
            settings[key] = str(folder.absolute())
    chosen = find_kind(kind)
    if chosen.settings is not None:
        checks.as_model(source, chosen.settings, settings, where)
    try:
        return settings if chosen.complete is None else chosen.complete(settings)
    except ConfigError:
        raise
    except TokdfaError as error:
        raise source.error(str(error), where) from None
