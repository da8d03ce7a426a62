"""Break a room in every way that a machine can, and check that it keeps what it promised.

`python -m tests.chaos --help` says how it is run. A part (`kills`, `files`, ...) draws cases from a seed;
each case has a room of its own and returns what it found wrong. Case N of a seed is always the same case.
"""
