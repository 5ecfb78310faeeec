"""``kind: canonicity`` on small settings: its row, what must hold between its figures, and what the report says."""

import pytest

from tests.lab.kinds.telling import Told
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.errors import OptionError
from tokdfa.lab.kinds.canonicity import COUNTS, KIND, measure
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer

SMALL = {"repeats": 2, "masks": 5}


def test_the_row_and_what_is_told(tmp_path):
    name = trained_byte_level(tmp_path / "tokenizer.json")
    (row,) = measure({"tokenizer": name, **SMALL}, seed=2)
    made = load_canonicity(load_tokenizer(name))
    assert (row["rules"], row["states"]) == (len(made.rules), made.lists.state_count)
    assert row["largest_count"] == made.forbidden_counts.max()
    times = ("build_s", "load_s", "verify_s", "narrow_first_s", "narrow_again_s", "pair_s")
    assert all(row[name] > 0 for name in times)
    told = Told(KIND, [row])
    assert told.tables["canonicity_times"]["build"].tolist() == [row["build_s"]]
    assert told.tables["canonicity_sizes"]["rules"].tolist() == [row["rules"]]
    (said, *_) = Told(KIND, [row | {"tokenizer": "mistral-v1", "build_s": 0.209}]).sentences
    assert "built in 209 ms; Tran-Thien 2024 reports 20.9 s" in said
    assert said.endswith("100 times as long.")
    (plain,) = measure({"tokenizer": "bytes", **SMALL}, seed=0)  # no token forbids another
    assert plain["largest_count"] == 0
    assert "narrow_first_s" not in plain
    assert set(COUNTS) <= set(plain)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"repeats": 0}, "settings.repeats"),
        ({"label": "digits", "regex": "[0-9]"}, "takes tokenizers, and no constraints"),
    ],
)
def test_faults_name_the_key(settings, message):
    with pytest.raises(OptionError, match=message):
        measure({"tokenizer": "bytes", **settings}, seed=0)
