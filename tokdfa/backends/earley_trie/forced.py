"""What must come next: forced bytes, and the tokens that llguidance offers where bytes are forced.

Words. Bytes are *forced* if every completion of the text begins with them: as long as the text may not end and exactly
one byte can come, that byte is forced. A machine's situations know nothing of tokens, so neither do forced bytes.

A byte can come where the machine goes on with it. So it is certain that all completions begin with the forced bytes.
That no more bytes are forced holds where every text that goes on has a completion; if a lexeme can swallow all that
might follow it (see `tokdfa.backends.earley_trie.strategy`), a byte that can come may lead nowhere, and it counts all
the same. Where a special token may come nothing is forced, since it is no byte.

**Forced tokens.** No model is needed for forced bytes, but a model expects them in the tokens of its own tokenizer. So
llguidance encodes them and offers the first of these tokens alone, where the complete mask holds every token that
agrees with the forced bytes. That takes spellings away which the constraint allows, so our masks are complete; these
functions say what llguidance would do. The encoder sees too little on both sides:

- *Before.* The last token taken is encoded once more, together with the forced bytes. If the encoder gives it back,
  what stands behind it is offered; otherwise the forced bytes are encoded alone.
- *Behind.* The last tokens may become others when the text goes on. If the last bytes begin a longer token that may
  come here, all tokens that hold any of them are dropped. Looked at are at most four tokens, and no more bytes than the
  longest token has. This is a rule of thumb; `tokdfa.proper` has the exact theory.

Source: 000 and the engine's behaviour, which the tests compare with. Cost: a forced byte takes a step of the machine
for each class of bytes, 1 us if nothing is new; tokens take one or two calls of the encoder and 0.2 to 1 ms.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.earley_trie.machine import DEAD, OK, step_kernel
from tokdfa.core.jit import kernel
from tokdfa.vocabulary.tokenizers import encode_exactly

if TYPE_CHECKING:
    from tokdfa.backends.earley_trie.machine import Machine
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.trie import TokenTrie

#: Tokens at the end that may become others when the text goes on.
LOOK_BACK = 4
#: Bytes that are not UTF-8, as str.decode(errors="surrogateescape") has them.
_NOT_UTF_8 = re.compile("([\udc80-\udcff]+)")


def forced_bytes(machine: Machine, situation: int, limit: int = 256) -> bytes:
    """The bytes with which every text goes on from `situation`, up to `limit`; b"" where it may end.

    Raises LimitExceeded as the machine does. O(bytes x byte classes) steps of the machine.
    """
    forced, byte = bytearray(), np.zeros(1, dtype=np.uint8)
    class_sizes = np.bincount(machine.lexer.byte_class, minlength=machine.lexer.class_count)
    while len(forced) < limit:
        border = machine.row_at_border(situation)
        if border >= 0 and _allows_no_byte(machine, border):
            break
        arrays = machine.lexer.arrays, machine.rows.arrays, machine.arrays
        status, only = _only_byte_kernel(*machine.view(situation), class_sizes, *arrays)
        if status != OK:
            machine.supply(status)
            continue
        if only < 0:
            break
        byte[0] = only
        forced.append(only)
        situation = machine.run(situation, byte, 0, 1)
    return bytes(forced)


def forced_mask_tokens(
    machine: Machine, situation: int, tokenizer: Tokenizer, last: int | None = None, limit: int = 256
) -> list[int]:
    """The tokens of the forced bytes, as llguidance finds them; its mask would hold the first of them only.

    Empty where it would leave the mask complete. `last`: the token that led to `situation`, None if there was none, or
    if it spells no text. Forced bytes past `limit` are not seen.
    """
    forced = forced_bytes(machine, situation, limit)
    if not forced:
        return []
    trie = tokenizer.vocabulary.trie
    before = b"" if last is None else tokenizer.vocabulary.token_bytes(last)
    tokens = encode_bytes(tokenizer, before + forced)
    if before and tokens[:1] == [last]:
        del tokens[0]
    elif before:
        tokens = encode_bytes(tokenizer, forced)
    if tokenizer.spell(tokens) != forced:
        return []  # the tokenizer changes the text, so its tokens are none of the constraint's
    end = machine.run(situation, np.frombuffer(forced, dtype=np.uint8), 0, len(forced))
    return _without_open_end(tokens, machine, end, trie)


def encode_bytes(tokenizer: Tokenizer, data: bytes) -> list[int]:
    """The tokens of bytes that need not be UTF-8: what is none is cut into longest tokens, from the left.

    What no tokens spell is left out.
    """
    trie, tokens = tokenizer.vocabulary.trie, []
    for place, part in enumerate(_NOT_UTF_8.split(data.decode(errors="surrogateescape"))):
        if place % 2 == 0:
            tokens += encode_exactly(tokenizer, tokenizer.vocabulary, part) or []
            continue
        rest = part.encode(errors="surrogateescape")
        while rest:
            found = trie.prefixes_of(rest)
            tokens += found[-1:]
            rest = rest[len(tokenizer.vocabulary.token_bytes(found[-1])) if found else 1 :]
    return tokens


def begins_longer_token(machine: Machine, situation: int, trie: TokenTrie, begun: bytes) -> bool:
    """Whether some token begins with the bytes `begun`, is longer, and the machine reads the rest from `situation`.

    A search below a node of the trie that stops at the first token. Mostly no token begins so, which costs 10 us.
    """
    spell = trie.token_bytes.of
    place = bisect_right(trie.order, begun, key=spell)  # the tokens in the order of their bytes
    if place == len(trie.order) or not spell(int(trie.order[place])).startswith(begun):
        return False
    agenda = [(situation, child) for child in trie.children(trie.find(begun))]
    letter = np.zeros(1, dtype=np.uint8)
    while agenda:
        here, node = agenda.pop()
        letter[0] = trie.byte(node)
        target = machine.run(here, letter, 0, 1)
        if target >= 0:
            if trie.token(node) >= 0:
                return True
            agenda += [(target, child) for child in trie.children(node)]
    return False


def _without_open_end(tokens: list[int], machine: Machine, situation: int, trie: TokenTrie) -> list[int]:
    """`tokens` without those at the end that may become others when the text goes on from `situation`."""
    spelled = list(map(trie.token_bytes.of, tokens))
    sizes = list(map(len, spelled))
    tail = b"".join(spelled[-LOOK_BACK:])[-trie.depth_limit :]
    for size in range(len(tail), 0, -1):
        if begins_longer_token(machine, situation, trie, tail[-size:]):
            while size > 0:
                size -= sizes.pop()
            break
    return tokens[: len(sizes)]


def _allows_no_byte(machine: Machine, row: int) -> bool:
    """Whether something that is no byte may come in a row: the end of the text, or a special token."""
    start = machine.lexer.components.start_component
    return machine.rows.accepts(row) or any(start[lexeme] < 0 for lexeme in machine.rows.allowed(row))


@kernel
def _only_byte_kernel(row, state, fallback, class_sizes, lexer, rows, machine):  # type: ignore[no-untyped-def]
    """(status, the only byte with which the machine goes on, or -1 if there are none or several)."""
    only = np.int64(-1)
    for column in range(len(class_sizes)):
        status, _, _, _ = step_kernel(row, state, fallback, np.int64(column), lexer, rows, machine)
        if status > DEAD:
            return status, only
        if status == OK:
            if only >= 0 or class_sizes[column] > 1:
                return OK, np.int64(-1)
            only = np.int64(lexer.representatives[column])
    return OK, only
