from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.measure.fakes import byte_vocabulary, ignore
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Regex
from tokdfa.lab.measure import batch
from tokdfa.lab.measure.batch import Batch, measure_batches, spread_places
from tokdfa.lab.measure.contenders import Contender, Outcome
from tokdfa.lab.measure.workloads import Walk

if TYPE_CHECKING:
    import pytest

WORD = Regex("[a-z]{1,9}")


def contenders(*names: str) -> list[Contender]:
    vocab = byte_vocabulary()
    return [Contender(place, create_backend(name, vocab), Outcome(name)) for place, name in enumerate(names)]


def measured(racing: list[Contender], rounds: int = 2, seconds: float = 60) -> None:
    walks = [Walk(tuple(b"tokens"), None, False, False), Walk(tuple(b"mask!"), None, False, False)]
    measure_batches(racing, WORD, walks, Batch(sizes=[3, 40], threads=[1, 2]), rounds, seconds, ignore)


def test_places_are_spread_and_repeat_if_there_are_too_few() -> None:
    assert spread_places([(1, 2, 3), (1, 5)], 3) == [(), (1,), (1, 2)]
    assert spread_places([(1, 2)], 5) == [(), (1,), (), (1,), ()]
    assert spread_places([tuple(range(100))], 4) == [tuple(range(n)) for n in (0, 25, 50, 75)]


def test_calls_sizes_and_phases_have_a_sample_each_round() -> None:
    racing = contenders("token_index", "brute_force")
    measured(racing)
    for one, calls in zip(racing, ((0, 1, 2), (0,)), strict=True):  # brute force has no call of its own
        assert one.outcome.status == "ok"
        assert sorted({sample.measure for sample in one.outcome.samples}) == sorted(
            f"batch_{size}_{threads}_{phase}" for size in (3, 40) for threads in calls for phase in ("first", "seen")
        )
        assert len(one.outcome.samples) == 2 * 2 * 2 * len(calls)


def test_a_batch_with_other_masks_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(batch.BATCH_CALLS, "token_index", lambda matchers, out, threads: out.fill(0))
    (one,) = contenders("token_index")
    measured([one])
    assert one.outcome.status == "error"
    assert "not those of the loop" in one.outcome.message
