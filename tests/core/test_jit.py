from __future__ import annotations

import errno
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tokdfa.core import jit, kernel_store

CALLEE = "from tokdfa.core.jit import kernel\n@kernel\ndef inner(x):\n    return x + {added}\n"
CALLER = (
    "from tokdfa.core.jit import kernel\nfrom callee import inner\n@kernel\ndef outer(x):\n    return inner(x) * 2\n"
)


def test_a_changed_callee_in_another_file_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """numba alone would answer from the caller's cache."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(jit.__file__).parents[2]}")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "caller.py").write_text(CALLER)
    answers = []
    for added in (1, 10, 10):
        (tmp_path / "callee.py").write_text(CALLEE.format(added=added))
        code = "from caller import outer; print(outer(1), sum(outer.stats.cache_hits.values()))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        answers.append(done.stdout.split())
    assert [answer for answer, _ in answers] == ["4", "22", "22"]
    assert [hits for _, hits in answers] == ["0", "0", "1"]


def test_code_of_a_file_that_was_edited_since_its_import_is_not_taken_for_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(jit.__file__).parents[2]}")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "callee.py").write_text(CALLEE.format(added=1))
    edit = f"from pathlib import Path; Path('callee.py').write_text({CALLEE.format(added=10)!r})"
    for between, expected in ((edit, "4"), ("", "22")):
        code = f"from caller import outer; {between}\nprint(outer(1))"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected


OVERRUN = """
import numpy as np
from tokdfa.core.jit import kernel
@kernel
def plant(table, place):
    table[place] = 7
table = np.zeros(8, dtype=np.int64)[:4]
plant(table, 5)
print(sum(plant.stats.cache_hits.values()))
"""


def run_planted(folder: Path, cache: Path | str, **settings: str) -> subprocess.CompletedProcess[str]:
    (folder / "overrun.py").write_text(OVERRUN)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "TMPDIR": str(folder), **settings}
    environment["PYTHONPATH"] = f"{folder}:{Path(jit.__file__).parents[2]}"
    return subprocess.run(
        [sys.executable, "-c", "import overrun"], env=environment, capture_output=True, text=True, check=False
    )


def test_a_checked_run_finds_an_overrun_over_the_cache_of_a_plain_run(tmp_path: Path) -> None:
    for hits in "01":
        plain = run_planted(tmp_path, tmp_path / "cache")
        assert (plain.returncode, plain.stdout.strip(), plain.stderr) == (0, hits, "")
    for _ in range(2):  # from scratch and from its own cache
        assert "IndexError" in run_planted(tmp_path, tmp_path / "cache", NUMBA_BOUNDSCHECK="1").stderr


def test_the_same_sources_elsewhere_share_code(tmp_path: Path) -> None:
    for hits, place in enumerate(("here", "there")):
        (tmp_path / place).mkdir()
        assert run_planted(tmp_path / place, tmp_path / "cache").stdout.strip() == str(hits)


SORT = """
import os
import numpy as np
from tokdfa.core.jit import kernel
@kernel
def by_value(values):
    return np.argsort(values)
if os.environ.get("FORKED") and os.fork():
    os.wait()
else:
    by_value(np.arange(9)[::-1].copy())
"""


def test_code_of_two_processes_shares_no_name(tmp_path: Path) -> None:
    """A sort of one kernel once ran in place of another's, as numba numbers functions alike in each process."""
    (tmp_path / "sort.py").write_text(SORT)
    names: list[set[bytes]] = []
    for place, forked in (("one", ""), ("two", ""), ("three", "yes")):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / place), "FORKED": forked}
        environment["PYTHONPATH"] = f"{tmp_path}:{Path(jit.__file__).parents[2]}"
        subprocess.run([sys.executable, "-c", "import sort"], env=environment, check=True)
        (kept,) = (path for path in files_below(tmp_path / place) if path.name.startswith("by_value"))
        names.append(set(re.findall(rb"_ZN\w+quicksort\w+", kept.read_bytes())))
        assert names[-1]
    assert all(first.isdisjoint(second) for first, second in itertools.combinations(names, 2))


def test_other_optimization_is_other_code(tmp_path: Path) -> None:
    for value, hits in (("3", "0"), ("0", "0"), ("max", "0"), ("3", "1")):
        assert run_planted(tmp_path, tmp_path / "cache", NUMBA_OPT=value).stdout.strip() == hits


@pytest.mark.parametrize(("name", "value"), [("BOUNDSCHECK", 1), ("OPT", 1), ("DEBUG", 1)])
def test_a_warm_cache_is_warm_under_its_item_settings_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jit, "WARMUP_STEPS", {"one": "builtins:dict", "two steps": "builtins:dict"})
    assert list(jit.warm_up(["two steps"])) == [("two steps", 0, 1)]
    assert jit.is_warm(["two steps"])
    assert not jit.is_warm()
    assert [title for title, _, _ in jit.warm_up()] == ["one", "two steps"]
    assert jit.is_warm()
    monkeypatch.setattr(kernel_store.numba_config, name, value)
    assert not jit.is_warm()


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*.kernel") if "__pycache__" not in path.parts or folder.name == "tokdfa"}


def test_a_cache_that_cannot_be_written_is_replaced_by_a_folder_of_our_own(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    package = Path(jit.__file__).parents[1]
    before = files_below(package)
    own = tmp_path / f"tokdfa-{os.getuid()}"
    for hits in "01":
        done = run_planted(tmp_path, blocked / "below")
        assert (done.returncode, done.stdout.strip()) == (0, hits)
        assert done.stderr.count("RuntimeWarning") == 1
        assert "NUMBA_CACHE_DIR" in done.stderr
    assert list(own.rglob("*.kernel"))
    assert own.stat().st_mode & 0o077 == 0
    assert files_below(package) == before
    assert not list(tmp_path.rglob("__pycache__/*.kernel"))


def test_without_any_folder_kernels_are_compiled_each_time(tmp_path: Path) -> None:
    """Also where what has the name of our own folder could be anybody's."""
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"tokdfa-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    for _ in range(2):
        done = run_planted(tmp_path, blocked / "below")
        assert (done.returncode, done.stdout.strip()) == (0, "0")
        assert done.stderr.count("RuntimeWarning") == 1
    assert not list((tmp_path / "elsewhere").iterdir())
    assert not list(tmp_path.rglob("*.kernel"))


@pytest.mark.parametrize("fault", ["full disk", "damaged code"])
def test_trouble_with_the_disk_costs_the_time_of_compiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    kernel_store._warn.cache_clear()

    def double(x: int) -> int:
        return x * 2

    assert jit.kernel(double)(4) == 8
    (code,) = tmp_path.rglob("*.kernel")
    if fault == "full disk":
        code.unlink()

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(kernel_store, "write_atomically", full)
    else:
        code.write_bytes(code.read_bytes()[:-9])
    again = jit.kernel(double)
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR") as said:
        assert [again(5), again(np.int32(5))] == [10, 10]
    assert len(said) == 1
    assert code.exists() == (fault != "full disk")
    assert jit.kernel(double)(6) == 12


def test_an_empty_cache_is_not_warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not jit.is_warm()


def test_every_kernel_is_warmed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a cold start, which takes minutes; .ci/run does it when it compiles the kernels that all tests use."""
    if jit.is_warm():
        pytest.skip("the kernels are as they were when all were compiled; python -m tests.cold_kernels checks them")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    done = subprocess.run([sys.executable, "-m", "tests.cold_kernels"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert jit.is_warm()
