from __future__ import annotations

import os
import sys
from dataclasses import replace

import pytest

from tests.lab.run.experiments import experiment, trick
from tests.lab.run.fake_backends import Fake, FakePeer, journal
from tokdfa.core import jit
from tokdfa.lab.config.expand import expand
from tokdfa.lab.measure.limits import Board, Failure
from tokdfa.lab.run.jobs import Job, SpecialJob, Workbench
from tokdfa.lab.run.kernel_steps import steps_of_experiment


@pytest.fixture
def board():
    board, descriptor = Board.create()
    os.close(descriptor)
    return board


def test_a_backend_is_built_once_and_a_peer_is_not_warmed_up_before_the_fork(tmp_path, board):
    bench = Workbench()
    own = {"name": "fake", "label": "own", "options": {"tag": 1}}
    peer = {"name": "fake_peer", "label": "peer", "options": {"tag": 2}}
    config = experiment(tmp_path, own, peer, trick("raise", "init", "broken"))
    job = Job(config, tuple(expand(config)))
    journal.clear()
    bench.prepare(job, board)
    own, peer = bench.backends["own"], bench.backends["peer"]
    assert isinstance(own, Fake)
    assert isinstance(peer, FakePeer)
    assert bench.backends["broken"] == Failure("error", "RuntimeError: on purpose")
    assert {tag for tag, _ in journal} == {"1"}
    assert not bench.warm  # none of them uses any
    journal.clear()
    bench.prepare(job, board)
    assert bench.backends["own"] is own
    assert not journal
    assert (board.read().contender, board.read().phase) == (-1, "prepare")


def test_a_special_job_finds_its_module_imported(tmp_path, board):
    bench = Workbench()
    config = experiment(tmp_path, "fake")
    job = SpecialJob(config, (*expand(config),), "tests.lab.run.fake_kind:KIND")
    bench.prepare(job, board)
    assert "tests.lab.run.fake_kind" in sys.modules
    assert bench.tokenizer is None  # it loads what it needs itself
    with pytest.raises(ModuleNotFoundError):
        bench.prepare(replace(job, target="no.such.module:KIND"), board)


def test_which_experiments_need_kernels(tmp_path):
    own, peers = experiment(tmp_path, "fake", "token_index"), experiment(tmp_path, "fake", "llguidance")
    steps = steps_of_experiment(own)
    assert "token index" in steps
    assert not {"grammars", "pushdown automata"} & set(steps)
    assert steps_of_experiment(peers) == ()
    special = own.model_copy(update={"backends": [], "kind": "saved_calls"})  # does not say what it needs
    assert steps_of_experiment(special) == tuple(jit.WARMUP_STEPS)
    engines = [{"backend": "llguidance"}, {"backend": "pushdown_trie", "options": {"proper": True}}]
    schemas = special.model_copy(update={"kind": "maskbench", "settings": {"engines": engines}})
    assert {"JSON numbers", "proper grammars"} < set(steps_of_experiment(schemas)) < set(jit.WARMUP_STEPS)
