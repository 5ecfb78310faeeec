from __future__ import annotations

import time
from datetime import date
from pathlib import Path

import pytest
import yaml

from tokdfa.errors import ConfigError
from tokdfa.lab.config import yaml_source
from tokdfa.lab.config.yaml_source import read_text, read_yaml


def write(tmp_path, text):
    path = tmp_path / "e.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_data_is_what_pyyaml_reads(tmp_path):
    text = "a: [1, 2.5, yes, null, text]\nb: {c: 'ä', d: [x, {e: 1}]}\n"
    assert read_yaml(write(tmp_path, text)).data == yaml.safe_load(text)
    assert read_yaml(write(tmp_path, "")).data is None


def test_an_error_names_the_line_of_the_deepest_part_that_is_there(tmp_path):
    source = read_yaml(write(tmp_path, "a:\n  - 1\n  - b: 2\n    c:\n      d: 3\n"))
    places = {"a": 1, "a[0]": 2, "a[1].c.d": 5, "a[1].c.missing": 4, "a[7]": 1}
    for (shown, line), where in zip(
        places.items(), (("a",), ("a", 0), ("a", 1, "c", "d"), ("a", 1, "c", "missing"), ("a", 7)), strict=True
    ):
        assert str(source.error("wrong", where)) == f"{source.path}:{line}: {shown}: wrong"
    assert str(source.error("wrong")) == f"{source.path}: wrong"
    assert str(source.error("wrong", (3, "label"))) == f"{source.path}: [3].label: wrong"


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("a: [1, 2\nb: 3\n", 2, 2, "expected ',' or ']'"),
        ("a: b: c\n", 1, 5, "mapping values are not allowed"),
        ("a:\n\t- 1\n", 2, 1, "cannot start any token"),
        ("a: 'x\n", 2, 1, "end of stream"),
        ("a: 1\n---\nb: 2\n", 2, 1, "another document"),
        ("a: !!python/object:os.system x\n", 1, 4, "could not determine a constructor"),
        ("a: *nobody\n", 1, 4, "undefined alias"),
        ("a: &x [1, *x]\n", 1, 4, "contains itself"),
    ],
)
def test_broken_yaml_names_line_and_column(tmp_path, text, line, column, said):
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    assert str(caught.value).startswith(f"{path}:{line}:{column}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "e.yaml:3: key 'a' was given already in line 1"),
        ("x:\n- {a: 1, a: 2}\n", "key 'a' was given already in line 2"),
        ("? [1, 2]\n: 3\n", "a key must be a plain word"),
        (b"a: \xff\n", "not UTF-8: byte 3 is 0xff"),
        ("a: \x00\n", "this is not YAML"),
        ("[" * 50_000, "nested too deep: more than 200"),
        ("a: " + "[" * 200 + "]" * 200, ":1:203: values are nested too deep: more than 200"),
        ("a: 2024-99-99\n", "a value cannot be read"),
    ],
)
def test_what_pyyaml_lets_pass_or_lets_crash_is_refused_by_name(tmp_path, text, said):
    with pytest.raises(ConfigError, match=r"e\.yaml") as caught:
        read_yaml(write(tmp_path, text))
    assert said in str(caught.value)


def test_a_small_file_that_stands_for_billions_of_values_is_refused_quickly(tmp_path):
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    started = time.monotonic()
    with pytest.raises(ConfigError, match="stands for more than 1000000 values"):
        read_yaml(write(tmp_path, "\n".join(lines)))
    assert time.monotonic() - started < 5  # not the hours that walking it would take
    assert read_yaml(write(tmp_path, "\n".join(lines[:4]))).data["a1"] == [[1] * 10] * 10


def test_files_that_are_not_there_or_no_files_or_too_large(tmp_path):
    with pytest.raises(ConfigError, match=r"missing.yaml: there is no such file"):
        read_yaml(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match="a folder"):
        read_yaml(tmp_path)
    path = write(tmp_path, "")
    with path.open("wb") as handle:
        handle.truncate(17 * 2**20)
    with pytest.raises(ConfigError, match="too large"):
        read_yaml(path)


def test_a_device_is_not_read():
    """It may never end."""
    with pytest.raises(ConfigError, match="not a regular file"):
        read_text(Path("/dev/zero"))


def test_what_others_do_to_the_loader_does_not_matter(tmp_path, monkeypatch):
    """lm-format-enforcer has dates read as text, for the whole process."""
    as_text = yaml.SafeLoader.yaml_constructors["tag:yaml.org,2002:str"]
    monkeypatch.setitem(yaml.SafeLoader.yaml_constructors, "tag:yaml.org,2002:timestamp", as_text)
    yaml_source._loader_class.cache_clear()
    assert read_yaml(write(tmp_path, "a: 2024-09-09\n")).data == {"a": date(2024, 9, 9)}
    assert yaml.safe_load("a: 2024-09-09\n") == {"a": "2024-09-09"}
