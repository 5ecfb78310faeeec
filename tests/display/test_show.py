"""What can be shown, what cannot, and how Jupyter is told."""

from __future__ import annotations

import subprocess
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell

import tokdfa
from tests.display.pages import Piece
from tokdfa import Regex, show
from tokdfa.errors import TokdfaError
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.vocabulary import Vocabulary

VOCAB = Vocabulary([b"a", b"b", b""], end_tokens=[2])


def test_other_things():
    with pytest.raises(TokdfaError, match="no view of a str"):
        show("a mask")
    with pytest.raises(TokdfaError, match="only a mask needs a vocabulary"):
        show(compile_dfa(Regex("a")), VOCAB)


class Tensor:
    """Stands for a tensor of torch."""

    def __init__(self, array):
        self._array = array

    def numpy(self):
        return self._array

    __array__ = numpy


def test_what_stands_for_what_is_shown():
    made = tokdfa.constrain(Regex("ab?"), "bytes")
    assert repr(show(made)) == repr(show(made.compiled))
    mask, vocab = tokdfa.allocate_mask(made.vocabulary.size), made.vocabulary
    made.start().fill_mask(mask)
    shown = {repr(show(given, of)) for given in (mask, Tensor(mask)) for of in (vocab, vocab.tokenizer, "bytes")}
    assert shown == {repr(show(mask, vocab))}
    assert repr(show(vocab.trie, prefix="t")) == repr(show(vocab.trie, prefix=b"t"))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: show(tokdfa.allocate_mask(3), VOCAB, limit="x"), "limit takes a whole number"),
        (lambda: show(tokdfa.allocate_mask(3), 5), "tokenizer is a"),
        (lambda: show(VOCAB.trie, limit=-1), "limit must be at least 0"),
        (lambda: show(VOCAB.trie, prefix=5), "prefix takes a str"),
        (lambda: show(tokdfa.compile(Regex("a"), VOCAB).start(), after="abc"), "after takes a sequence of token ids"),
        (lambda: show(tokdfa.compile(Regex("a"), VOCAB).start(), limit="x"), "limit takes a whole number"),
        (lambda: show(compile_dfa(Regex("a")), highlight="x"), "highlight takes a sequence of states"),
    ],
)
def test_wrong_arguments_are_named(call, said):
    with pytest.raises(TokdfaError, match=said):
        call()


def test_jupyter_shows_them_unasked():
    shell = InteractiveShell()
    compiled = tokdfa.compile(Regex("ab?"), VOCAB)
    subjects = [compile_dfa(Regex("ab?")), compiled, compiled.start(), VOCAB.trie]
    assert all("text/html" not in shell.display_formatter.format(subject)[0] for subject in subjects)
    shell.extension_manager.load_extension("tokdfa.display")
    for subject in subjects:
        content = shell.display_formatter.format(subject)[0]["text/html"]
        assert Piece(content).text == Piece(show(subject)._repr_html_()).text


def test_showing_a_mask_loads_nothing_heavy():
    code = (
        "import sys, numpy, tokdfa\n"
        "vocab = tokdfa.Vocabulary([b'a', b''], end_tokens=[1])\n"
        "repr(tokdfa.show(numpy.ones(1, numpy.int32), vocab)._repr_html_())\n"
        "print(*{'matplotlib', 'networkx', 'pandas', 'IPython'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
