"""Fuzzing: every entry of the package is given inputs made to hurt.

`case` says what an entry is and what counts as a failure, `test_fuzz` draws cases, `mutations` changes valid inputs;
the other modules hold an entry each.
"""
