"""The checked build: the extension modules with sanitizers and bounds checks, under tests on random input.

``python -m tests.checked`` copies the sources to ``build/checked``, compiles them there (``TOKDFA_CHECKED=1``, see
setup.py) and runs the tests that ``tests.txt`` lists. A second run compiles what has changed. Arguments go to pytest;
files among them are run instead.

- Address sanitizer: accesses outside heap blocks, stack frames and the used part of vectors; use after free.
- Undefined-behaviour sanitizer: overflows, shifts, null and misaligned pointers; the first ends the process.
- Cython's bounds checks of memoryviews, and whether one is set; libstdc++'s of containers.
- Compiler warnings are errors.

``planted.pyx`` has a fault of each kind, and ``test_planted.py`` tests that it is caught. Leaks are not looked for: the
interpreter itself leaks when it ends.
"""
