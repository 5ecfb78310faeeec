"""Set-up is timed by itself: nothing that another engine has made of the vocabulary is there, and nothing stays."""

from __future__ import annotations

from tests.packages import needs
from tokdfa.lab.measure.limits import Limits
from tokdfa.lab.measure.set_up import set_up_seconds
from tokdfa.vocabulary.vocabulary import Vocabulary

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], [256])


def test_what_a_set_up_makes_does_not_stay_here() -> None:
    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], [256])
    seconds = set_up_seconds("token_index", vocabulary, {"lazy": True}, "regex", Limits())
    assert seconds is not None
    assert 0 < seconds < 300
    assert "trie" not in vars(vocabulary), "the fork has made its trie, and this process has none"


@needs("llguidance")
def test_a_peers_set_up_is_timed_too() -> None:
    assert set_up_seconds("llguidance", VOCABULARY, {}, "json_schema", Limits()) is not None


def test_a_set_up_that_fails_has_no_time() -> None:
    assert set_up_seconds("token_index", VOCABULARY, {"no such option": 1}, "regex", Limits()) is None
