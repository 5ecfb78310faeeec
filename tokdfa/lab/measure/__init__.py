"""Measuring: what is timed, how it is kept fair, and what may go wrong on the way.

Words. A *contender* is a backend with its options, one of those compared. A *sample* is one timed call. A *walk* is a
sequence of tokens that every contender replays. The *reference* is the contender that ratios and differences refer to.

Columns that are never mixed:

- compile: from the constraint to a compiled constraint, for a vocabulary that is loaded and prepared already;
- first mask: compile + start + the first mask, what a user waits for (TTFM);
- mask: one `Matcher.fill_mask`; advance: one `Matcher.advance` (MaskBench's TBM is their sum);
- memory: the peak while compiling, and what is retained after the masks of the walks, in a process of their own.

How it is kept fair (each rule stands where it is applied): contenders take turns (A B C, B C A, ...), so that drift of
the machine hits all alike (`contenders`); one thread, garbage collection off, every call made once untimed before
(`clock`, `contenders`); every contender sees the same tokens, and its masks are compared on the way (`workloads`,
`contenders`); a contender that hangs, swallows the memory or dies gets a row that says so (`limits`).

Not done: no outlier is removed, no minimum is taken; every sample is stored, and reports have percentiles of all.
"""
