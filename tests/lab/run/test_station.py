from __future__ import annotations

import time

import psutil
import pytest

from tests.lab.run.experiments import children, experiment, trick
from tokdfa.lab.config.expand import expand_groups
from tokdfa.lab.run.station import Station


@pytest.fixture
def station():
    station = Station()
    yield station
    station.close()
    assert not children(recursive=True)


def finish(station, seconds=20.0):
    deadline = time.monotonic() + seconds
    while (measured := station.step()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return measured


def test_groups_one_after_the_other(tmp_path, station):
    constraints = [{"label": text, "choice": [text, text * 2]} for text in "ab"]
    config = experiment(tmp_path, "fake", trick("raise"), constraints=constraints)
    first, second = expand_groups(config)
    assert station.step() is station.tokenizer is station.pipe is None
    assert station.doing() == ""
    station.begin(config, first)
    pid = children()[0].pid
    assert station.tokenizer == "bytes"
    assert station.doing().startswith("bytes / a / random_walk 2x4: ")
    measured = finish(station)
    assert set(measured.statuses.values()) == {"ok", "error"}
    assert measured.failures == {"raise": "error: RuntimeError: on purpose"}
    assert (measured.vocab_size, len(measured.tables["items"])) == (257, 2)
    assert station.doing() == ""
    assert station.step() is None
    station.begin(config, second)
    assert list(finish(station).statuses) == [item.item_id for item in second.items]
    assert [child.pid for child in children()] == [pid]


def test_its_measuring_processes_stay_where_they_are_told(tmp_path, station):
    if not hasattr(psutil.Process(), "cpu_affinity"):
        pytest.skip("this system pins no processes")
    config = experiment(tmp_path, trick("sleep", "mask"))
    processor = psutil.Process().cpu_affinity()[-1]
    station.begin(config, expand_groups(config)[0], (processor,))
    deadline = time.monotonic() + 20
    while not station.doing().endswith("first mask"):
        assert time.monotonic() < deadline
        assert station.step() is None
    worker = children()[0]
    assert [one.cpu_affinity() for one in (worker, *worker.children())] == [[processor], [processor]]
