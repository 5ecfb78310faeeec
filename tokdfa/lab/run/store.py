"""The run folder: Parquet files that appear whole or not at all, one set a group, and what is needed to read them.

    NAME-FINGERPRINT/
        config.yaml          the resolved experiment
        provenance.json      versions, commit, machine, times, seeds
        items/FILE.parquet   one row per item
        samples/FILE.parquet one row per timed call
        results/FILE.parquet rows of special kinds of experiments

A file holds what was measured of one group at a time; it is named after its place in the experiment and its items, so
backends that join later get files of their own. Each is written beside its place and renamed into it, the items
last: what is in ``items`` is finished. What a killed run leaves behind of an unfinished group is ignored when reading,
so rows are neither lost nor doubled. To have a group measured again, delete its file in ``items``.

Every file is sealed (`tokdfa.core.stored_file`): these in their footer, the others in a comment or key. Files of
versions that did not seal are read as they are.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tokdfa.core.locks import cached_property
from tokdfa.core.stored_file import BLANK, check_seal, seal, write_atomically
from tokdfa.errors import StoreError
from tokdfa.lab.measure.workloads import canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pandas as pd
    import pyarrow as pa

    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig

T = TypeVar("T")

TABLES = ("items", "samples", "results")
CONFIG, PROVENANCE, LOCK = "config.yaml", "provenance.json", "run.lock"

#: The key of a file's digest, in a footer or a JSON object.
_SEAL = "seal"

#: column -> Parquet type. JSON columns hold text.
COLUMNS: dict[str, dict[str, str]] = {
    "items": {
        **dict.fromkeys(("item_id", "experiment", "tokenizer"), "string"),
        "vocab_size": "int64",
        **dict.fromkeys(("backend", "label", "options", "constraint", "constraint_kind", "workload"), "string"),
        "seed": "int64",
        **dict.fromkeys(("status", "message"), "string"),
        **dict.fromkeys(("set_up_s", "compile_s", "first_mask_s"), "float64"),
        **dict.fromkeys(("states", "transitions", "bytes"), "int64"),
        **dict.fromkeys(("memory_peak_bytes", "memory_retained_bytes", "steps"), "int64"),
        **dict.fromkeys(("counters", "phases", "sizes"), "string"),
        "seconds": "float64",
        "measured_at": "string",
    },
    "samples": {
        **dict.fromkeys(("item_id", "measure"), "string"),
        **dict.fromkeys(("repeat", "step"), "int32"),
        "ns": "int64",
        **dict.fromkeys(("allowed", "differs"), "int32"),
    },
}


class RunStore:
    """The writing side of a run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def locate(cls, config: ExperimentConfig, parent: str | Path | None = None) -> RunStore:
        """The store of a config's run below `parent` (default: `config.results_folder`). Creates nothing."""
        return cls((Path(parent) if parent is not None else config.results_folder) / config.folder_name)

    def create(self, config: ExperimentConfig, fresh: bool = False) -> None:
        """Make the folder, or check that nobody has edited the config in it; `fresh` drops what it holds."""
        with _writing(self.folder):
            for table in TABLES:
                (self.folder / table).mkdir(parents=True, exist_ok=True)
            for left_behind in [*self.folder.glob("*.tmp"), *self.folder.glob("*/*.tmp")]:
                left_behind.unlink()
            if fresh:
                (self.folder / PROVENANCE).unlink(missing_ok=True)
                for file in itertools.chain.from_iterable(_files(self.folder, table) for table in TABLES):
                    file.unlink()
        if (self.folder / CONFIG).exists() and not fresh:
            read_config(self.folder)
        _write_sealed(self.folder / CONFIG, config.to_yaml().encode() + b"# " + BLANK + b"\n")

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other runs out of the folder; StoreError if one is at work. The system frees it if we are killed."""
        from filelock import FileLock, Timeout

        with contextlib.ExitStack() as held:
            with _writing(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
                try:
                    held.enter_context(FileLock(self.folder / LOCK, blocking=False))
                except Timeout:
                    raise StoreError(f"another run is writing to {self.folder}; wait for it or stop it") from None
            yield

    def write_group(self, group: Group, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Store a finished group: ``{"items": rows, "samples": rows, "results": rows}``, items last."""
        for name in sorted(TABLES, key=lambda table: table == "items"):
            path = self.folder / name / f"{group.file_name}.parquet"
            if tables.get(name):
                _write_sealed(path, _to_parquet(tables[name], COLUMNS.get(name)))
            else:
                with _writing(path):
                    path.unlink(missing_ok=True)

    def progress(self) -> tuple[dict[str, str], float | None]:
        """Item id -> status of the finished items, and the mean seconds an item took (None before the first)."""
        statuses: dict[str, str] = {}
        seconds: list[float] = []
        for path in _files(self.folder, "items"):
            rows = read_rows(path)
            statuses |= zip(rows["item_id"].to_pylist(), rows["status"].to_pylist(), strict=True)
            seconds += [value for value in rows["seconds"].to_pylist() if value is not None]
        return statuses, sum(seconds) / len(seconds) if seconds else None

    def write_provenance(self, provenance: Mapping[str, Any]) -> None:
        """Replace provenance.json."""
        sealed = {**provenance, _SEAL: BLANK.decode()}
        _write_sealed(self.folder / PROVENANCE, json.dumps(sealed, indent=2, ensure_ascii=False).encode())

    def read_provenance(self) -> dict[str, Any] | None:
        """provenance.json, or None before the first start."""
        return read_json(self.folder / PROVENANCE) if (self.folder / PROVENANCE).exists() else None


@dataclass(frozen=True)
class Run:
    """The reading side of a run folder: what is finished when it is first read. Frames are in the order of the
    experiment, without backends that are not in it any more. StoreError names a damaged file.
    """

    folder: Path

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved experiment, as plain data."""
        return read_config(self.folder)

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Versions, commit, machine, times and seeds; empty if the run never started."""
        return RunStore(self.folder).read_provenance() or {}

    def items(self) -> pd.DataFrame:
        """One row per item, columns as in ``COLUMNS["items"]``; integers are nullable."""
        return self._items.copy()

    def samples(self) -> pd.DataFrame:
        """One row per timed call, columns as in ``COLUMNS["samples"]``."""
        frame = _to_frame(self._tables("samples"), "samples")
        ranks = frame["item_id"].map({item_id: rank for rank, item_id in enumerate(self._items["item_id"])})
        return frame.loc[ranks.sort_values(kind="stable").dropna().index].reset_index(drop=True)

    def results(self) -> pd.DataFrame:
        """The rows of a special kind of experiment: `item_id`, and the columns of that kind."""
        return _to_frame(self._tables("results"), "results")

    @cached_property
    def _finished(self) -> list[str]:
        """The names of the files of finished groups, in order."""
        return [path.name for path in _files(self.folder, "items")]

    @cached_property
    def _items(self) -> pd.DataFrame:
        tables = self._tables("items")
        positions = [
            name.partition("-")[0]
            for name, rows in zip(self._finished, tables, strict=True)
            for _ in range(rows.num_rows)
        ]
        rows = [row for rows in tables for row in rows.select(["tokenizer", "label", "options"]).to_pylist()]
        found = zip(positions, map(self._place, rows), itertools.count())
        order = [number for *_, number in sorted(one for one in found if one[1] is not None)]
        return _to_frame(tables, "items").iloc[order].reset_index(drop=True)

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        """Label and options of each backend of the experiment -> its place."""
        try:
            labels = [(one["label"], canonical_json(one["options"])) for one in self.config.get("backends") or []]
        except (KeyError, TypeError) as error:
            raise StoreError(
                f"{self.folder / CONFIG} is damaged or edited (backends: {error!r}); restore it, or start afresh"
            ) from None
        return {label: place for place, label in enumerate(labels)}

    def _place(self, row: dict[str, Any]) -> int | None:
        """Where an item stands in its group; None if its backend is not in the experiment."""
        if not self._places or row["tokenizer"] is None:  # of a special kind
            return 0
        return self._places.get((row["label"], canonical_json(json.loads(row["options"] or "null"))))

    def _tables(self, table: str) -> list[pa.Table]:
        paths = [self.folder / table / name for name in self._finished]
        return [read_rows(path) for path in paths if table == "items" or path.exists()]


def open_run(folder: str | Path) -> Run:
    """A stored run, finished or not. Raises StoreError if `folder` holds none; a damaged file is named when read."""
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        raise StoreError(f"{folder} is not a run folder: it has no {CONFIG}")
    return Run(folder)


def read_config(folder: Path) -> dict[str, Any]:
    """The resolved experiment of a run folder, as plain data."""
    import yaml

    return _read(
        folder / CONFIG, lambda content: _object(yaml.safe_load(content)), "restore it, or start the run afresh"
    )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; StoreError if the file is damaged."""
    data = _read(path, lambda content: _object(json.loads(content)), "delete it and start the run again")
    data.pop(_SEAL, None)
    return data


def read_rows(path: Path) -> pa.Table:
    """One Parquet file, its digest verified. StoreError names a damaged file and the remedy."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def parse(content: bytes) -> pa.Table:
        with pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True) as file:
            return file.read().replace_schema_metadata(None)

    of_items = path.parent.parent / "items" / path.name
    remedy = f"delete {of_items} and start the run again: only the items of this file are measured anew"
    return _read(path, parse, remedy)


def _read(path: Path, parse: Callable[[bytes], T], remedy: str) -> T:
    """What a sealed file holds. StoreError if it is damaged, with the remedy."""
    try:
        content = path.read_bytes()
        check_seal(content, required=False)
        return parse(content)
    except Exception as error:  # whatever strange content makes yaml, json or pyarrow stumble over
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise StoreError(f"{path} is damaged or edited ({said}); {remedy}") from None


def _object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ValueError("it holds no keys")
    return data


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """StoreError with the remedy for whatever keeps us from writing to `path`, such as a full disk."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written ({error.strerror or error}); make room, or let this user write there, and start "
            "the run again: what is finished is kept"
        ) from None


def _write_sealed(path: Path, content: bytes) -> None:
    with _writing(path):
        write_atomically(path, seal(content))


def _files(folder: Path, table: str) -> list[Path]:
    return sorted((folder / table).glob("*.parquet")) if (folder / table).is_dir() else []


def _to_parquet(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str] | None) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    if columns:
        table = pa.Table.from_pylist(list(rows), schema=_schema(columns))
    else:
        names = dict.fromkeys(name for row in rows for name in row)
        table = pa.table({name: _free_column([row.get(name) for row in rows]) for name in names})
    with pq.ParquetWriter(buffer, table.schema, compression="zstd", write_page_checksum=True) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({_SEAL: BLANK.decode()})
    return buffer.getvalue()


def _free_column(values: Sequence[Any]) -> pa.Array:
    """A column whose type follows its values; JSON text where values are nested or of mixed types."""
    import pyarrow as pa

    if not any(isinstance(value, dict | list | tuple) for value in values):
        with contextlib.suppress(pa.ArrowException):
            return pa.array(values)
    return _texts(values)


def _texts(values: Sequence[Any]) -> pa.Array:
    """Text as it is, everything else as JSON."""
    import pyarrow as pa

    texts = [one if one is None or isinstance(one, str) else json.dumps(one, default=str) for one in values]
    return pa.array(texts, pa.string())


def _to_frame(tables: Sequence[pa.Table], table: str) -> pd.DataFrame:
    """The tables, one below the other; none of them is a frame with the columns of the table, and no rows."""
    import pandas as pd
    import pyarrow as pa

    if not tables:
        known = _schema(COLUMNS[table]) if table in COLUMNS else pa.schema([("item_id", pa.string())])
        tables = [known.empty_table()]
    nullable = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}
    return pa.concat_tables(_agreed(tables), promote_options="permissive").to_pandas(types_mapper=nullable.get)


def _agreed(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """The tables with text in every column on whose type they do not agree, so that they can be put together."""
    import pyarrow as pa

    types: dict[str, set[str]] = {}
    for column in itertools.chain.from_iterable(rows.schema for rows in tables):
        if not pa.types.is_null(column.type):
            number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
            types.setdefault(column.name, set()).add("number" if number else str(column.type))
    unequal = {name for name, found in types.items() if len(found) > 1}
    return [
        pa.table(
            {name: _texts(rows[name].to_pylist()) if name in unequal else rows[name] for name in rows.column_names}
        )
        for rows in tables
    ]


def _schema(columns: Mapping[str, str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in columns.items()])
