"""Memory that is handed out by page: zeros, of one process alone, and apart for each table."""

from __future__ import annotations

import os

import pytest

from tokdfa.backends.pushdown_trie.arrays import BY_ROW, ROW_BYTES, zeros_by_page, zeros_by_row


def test_tables_by_row_do_not_overlap():
    tables = zeros_by_row(1_001)
    for number, (table, (dtype, count)) in enumerate(zip(tables, BY_ROW.values(), strict=True)):
        assert (table.dtype, len(table)) == (dtype, 1_001 * count)
        assert table.flags.c_contiguous
        assert table.flags.writeable
        table[:] = number + 1
    assert all((table == number + 1).all() for number, table in enumerate(tables))
    assert sum(table.nbytes for table in tables) == 1_001 * ROW_BYTES


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked on this system")
def test_a_forked_process_has_its_own():
    numbers = zeros_by_page(10_000)
    numbers[3] = 1
    child = os.fork()
    if child == 0:
        numbers[:] = 9
        os._exit(0 if numbers[3] == 9 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert numbers[3] == numbers.sum() == 1
