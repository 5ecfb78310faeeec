from __future__ import annotations

import json
import os

from tokdfa.lab.measure.machine import machine_facts


def test_facts_are_json_and_agree_with_the_system():
    facts = json.loads(json.dumps(machine_facts()))
    assert facts["cpu"]
    assert 1 <= facts["cores_usable"] <= facts["cores_logical"] == os.cpu_count()
    assert facts["memory_bytes"] == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert len(facts["load_average"]) == 3
