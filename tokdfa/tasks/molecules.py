"""Molecules as SMILES, after the molecular task of the AWRS paper (Lipkin et al. 2025), from a folder of yours.

``load_task("molecules", folder)`` reads ``molecules.smi``: a SMILES string a line, what stands behind a blank is left
out (the files of GDB-17 are such). A prompt shows `SHOWN` molecules of the file and asks for another one.

The constraint is the context-free part of SMILES: atoms, bonds, branches and numbers of rings. Whether rings close,
valences hold and aromatic rings exist is not context-free: so masks help, and do not make every answer valid. An answer
is valid if RDKit reads it as a molecule, and its score is RDKit's quantitative estimate of drug-likeness (QED). The
licence is that of your data.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tokdfa.constraint import Grammar
from tokdfa.core.packages import import_library
from tokdfa.errors import OptionError
from tokdfa.tasks.base import ITEMS, Item, Task, few_shot

#: Molecules of a prompt.
SHOWN = 8
SMILES = r"""
start: chain
chain: branched (BOND? branched)*
branched: ATOM RING* ("(" BOND? chain ")")*
ATOM: "B" | "C" | "N" | "O" | "P" | "S" | "F" | "Cl" | "Br" | "I" | "b" | "c" | "n" | "o" | "s" | "p" | BRACKET
BRACKET: /\[[0-9]{0,3}([A-Z][a-z]?|[bcnops]|se|as)@{0,2}(H[0-9]?)?([+-][0-9]?)?\]/
BOND: "-" | "=" | "#" | ":" | "/" | "\\"
RING: /[-=#:\/\\]?([0-9]|%[0-9]{2})/
"""


def molecules(folder: str) -> Task:
    """The task of a folder. Raises MissingDependency; OptionError, which names the file and the line."""
    chem = import_library("rdkit.Chem", "judging the task molecules")
    qed = import_library("rdkit.Chem.QED", "judging the task molecules")
    import_library("rdkit.RDLogger", "judging the task molecules").DisableLog("rdApp.*")
    path = Path(folder) / "molecules.smi"
    if not path.is_file():
        raise OptionError(f"molecules: there is no file {path}; give a folder with SMILES, one a line")
    known = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        if not word or _read(chem, word) is None:
            raise OptionError(f"molecules: {path}, line {number}: RDKit reads no molecule in {word!r}")
        known.append(word)
    if len(known) <= SHOWN:
        raise OptionError(f"molecules: {path} has {len(known)} molecules; a prompt shows {SHOWN} and asks for another")
    items = []
    for number in range(ITEMS):
        *shown, reference = random.Random(number).sample(known, SHOWN + 1)
        prompt = few_shot("Write a molecule as SMILES.", [("a molecule", one) for one in shown], "a molecule")
        items.append(Item(f"{number:03d}", prompt, Grammar(SMILES), reference))
    return Task(
        "molecules",
        "molecules as SMILES, judged by RDKit",
        "that of your data",
        tuple(items),
        lambda item, text: _read(chem, text) is not None,
        lambda item, text: float(qed.qed(_read(chem, text))),
        max_tokens=64,
    )


def _read(chem: Any, text: str) -> Any:
    """RDKit's molecule, None if there is none; it takes an empty text, and one with a blank, for one."""
    return chem.MolFromSmiles(text) if text and not any(map(str.isspace, text)) else None
