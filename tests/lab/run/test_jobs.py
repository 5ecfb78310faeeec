from __future__ import annotations

import os
import sys

import pytest

from tests.lab.run.experiments import experiment
from tests.lab.run.fake_backends import Fake, FakePeer, journal
from tokdfa.constraint import Choice
from tokdfa.core import jit
from tokdfa.lab.config.experiment import BackendEntry
from tokdfa.lab.measure.limits import Board, Failure, Limits
from tokdfa.lab.run.jobs import MemoryJob, SpecialJob, Workbench
from tokdfa.lab.run.kernel_steps import steps_of_experiment


@pytest.fixture
def board():
    board, descriptor = Board.create()
    os.close(descriptor)
    return board


def job(*entries, tokenizer="bytes"):
    return MemoryJob(tokenizer, Choice(["a"]), entries, (), Limits())


def test_a_backend_is_built_once_and_a_peer_is_not_warmed_up_before_the_fork(board):
    bench = Workbench()
    entries = [
        BackendEntry(name="fake", label="own", options={"tag": 1}),
        BackendEntry(name="fake_peer", label="peer", options={"tag": 2}),
        BackendEntry(name="fake", label="broken", options={"how": "raise", "where": "init"}),
    ]
    journal.clear()
    bench.prepare(job(*entries), board)
    own, peer = bench.backends["own"], bench.backends["peer"]
    assert isinstance(own, Fake)
    assert isinstance(peer, FakePeer)
    assert bench.backends["broken"] == Failure("error", "RuntimeError: on purpose")
    assert {tag for tag, _ in journal} == {"1"}
    assert not bench.warm  # none of them uses any
    journal.clear()
    bench.prepare(job(*entries), board)
    assert bench.backends["own"] is own
    assert not journal
    assert (board.read().contender, board.read().phase) == (-1, "prepare")


def test_a_special_job_finds_its_module_imported(board):
    bench = Workbench()
    bench.prepare(SpecialJob("tests.lab.run.fake_kind:KIND", {}, 0, Limits(), "bytes"), board)
    assert "tests.lab.run.fake_kind" in sys.modules
    assert bench.tokenizer is None  # it loads what it needs itself
    with pytest.raises(ModuleNotFoundError):
        bench.prepare(SpecialJob("no.such.module:KIND", {}, 0, Limits()), board)


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
