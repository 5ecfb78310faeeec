"""Instructions that a trie node takes, counted by valgrind: ``python -m tests.vocabulary.count_instructions``.

Each loop runs under ``valgrind --tool=callgrind`` twice, with few walks and with more; the difference of the counts,
over the nodes that the walks between them visit, is what a node takes, start-up and Python cancelled. The counts do not
depend on what else the machine does.
Takes some minutes, most of it for starting Python under valgrind six times.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys

LOOPS = ("toktrie's loop", "toktrie's loop, all bytes", "ours, walk alone")
#: A JSON string: nearly everything is allowed.
PATTERN = r'[^"\\\x00-\x1f]*'
FEW, MORE = 1, 4


def walks(loop: str, tokenizer: str, count: int) -> int:
    """Walk `count` times, and say how many nodes a walk visits."""
    import numpy as np

    from tokdfa import mask as masks
    from tokdfa.constraint import Regex
    from tokdfa.regex.compile import compile_lazy
    from tokdfa.vocabulary.byte_table import walk
    from tokdfa.vocabulary.tokenizers import load_tokenizer
    from tokdfa.vocabulary.walk_layout import source_nodes, walk_source

    vocab = load_tokenizer(tokenizer).vocabulary
    trie, table = vocab.trie, compile_lazy(Regex(PATTERN))
    visited = walk(trie, table, 0, masks.allocate_mask(vocab.size)).nodes_visited  # the rows are filled
    flat, classes = np.array(table.transitions, dtype=np.int32), table.class_count
    by_byte = flat.reshape(-1, classes)[:, table.byte_class]
    by_byte = np.where(by_byte >= 0, by_byte // classes * 256, by_byte).astype(np.int32).ravel()
    nodes, words = source_nodes(trie), np.zeros(trie.size // 32 + 1, dtype=np.uint32)
    mask = masks.allocate_mask(vocab.size)
    for _ in range(count):
        if loop == LOOPS[0]:
            walk_source(trie, nodes, flat, table.byte_class, 0, words)
        elif loop == LOOPS[1]:
            walk_source(trie, nodes, by_byte, None, 0, words)
        else:
            walk(trie, table, 0, mask)
    return visited


def counted(loop: str, tokenizer: str, count: int) -> tuple[int, int]:
    """Nodes that a walk visits, and all instructions of a process that walks `count` times."""
    command = [
        *("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--smc-check=all"),
        sys.executable,
        "-m",
        "tests.vocabulary.count_instructions",
        "--walks",
        loop,
        str(count),
        "--tokenizer",
        tokenizer,
    ]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found
    return json.loads(done.stdout.splitlines()[-1]), int(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", default="llama3")
    parser.add_argument("--walks", nargs=2, metavar=("LOOP", "COUNT"), help="what runs under valgrind")
    given = parser.parse_args()
    if given.walks:
        print(json.dumps(walks(given.walks[0], given.tokenizer, int(given.walks[1]))))
        return
    print(f"{given.tokenizer}, {PATTERN}")
    for loop in LOOPS:
        (visited, few), (_, more) = (counted(loop, given.tokenizer, count) for count in (FEW, MORE))
        a_node = (more - few) / (MORE - FEW) / visited
        print(f"{loop:28} {a_node:6.2f} instructions a node, {visited:,} nodes a walk")


if __name__ == "__main__":
    main()
