from __future__ import annotations

from tests.lab.run.experiments import experiment
from tokdfa.core import jit
from tokdfa.lab.run.kernel_steps import steps_of_experiment


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
