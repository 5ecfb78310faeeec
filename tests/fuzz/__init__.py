"""Fuzzing: every entry of the package is given inputs made to hurt, in a process with limits.

``python -m tests.fuzz ENTRY --minutes 10 --seed 1`` runs one entry for long; the tests of `test_fuzz` run each for a
moment. `case` says what an entry is and what counts as a failure, `child` runs cases and limits them, `driver` draws
them and keeps what fails, `shrink` makes it small; the other modules hold an entry each.
"""
