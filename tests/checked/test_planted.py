"""The checked build catches a fault of each kind, and nothing where there is none."""

from __future__ import annotations

import subprocess
import sys

import pytest

planted = pytest.importorskip("tests.checked.planted", reason="only in the checked build: python -m tests.checked")

#: Call -> what is said of it. The arguments of three or two words are arrays of int64.
FAULTS = {
    "past_a_vector(3)": "heap-buffer-overflow",
    "past_the_size_of_a_vector(3)": "container-overflow",
    "past_a_vector_by_index(3)": "__n < this->size()",
    "past_a_memoryview(words, 3)": "IndexError: Out of bounds",
    "past_a_memoryview_by_pointer(words, 3)": "heap-buffer-overflow",
    "past_bytes(bytes(100), 101)": "heap-buffer-overflow",
    "past_an_array(4)": "out of bounds for type",
    "kept_while_it_grows(100)": "heap-use-after-free",
    "kept_longer_than_its_owner(True)": "heap-use-after-free",
    "unset_memoryview(True)": "Memoryview is not initialized",
    "overflow((1 << 63) - 1)": "signed integer overflow",
    "shift(64)": "shift exponent 64",
    "divide(0)": "division by zero",
}
FAULTLESS = (
    "past_a_vector(2)",
    "past_the_size_of_a_vector(2)",
    "past_a_vector_by_index(2)",
    "past_a_memoryview(words, 2)",
    "past_a_memoryview_by_pointer(words, 2)",
    "past_bytes(bytes(100), 100)",  # the zero that ends it
    "past_an_array(3)",
    "kept_while_it_grows(0)",
    "kept_longer_than_its_owner(False)",
    "unset_memoryview(False)",
    "overflow((1 << 63) - 2)",
    "shift(62)",
    "divide(1)",
)


def run(*calls: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which a fault ends."""
    begin = "from array import array; from tests.checked import planted; words = array('q', [1, 2, 3])"
    code = "; ".join([begin, *(f"planted.{call}" for call in calls)])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("call", FAULTS)
def test_caught(call: str) -> None:
    done = run(call)
    assert done.returncode != 0
    assert FAULTS[call] in done.stderr


def test_nothing_else_is() -> None:
    done = run(*FAULTLESS)
    assert (done.returncode, done.stderr) == (0, "")


def test_all_of_them_are_tried() -> None:
    functions = {name for name in vars(planted) if not name.startswith("_")} - {"Owner"}
    for calls in (FAULTS, FAULTLESS):
        assert {call.partition("(")[0] for call in calls} == functions
