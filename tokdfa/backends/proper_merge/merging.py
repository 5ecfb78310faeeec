"""DirectMerge: from an automaton of texts to that of their proper tokenizations, by merging all texts at once.

Source: 002 (Tran-Thien 2024), DirectMerge, and its technical appendix, algorithms 1 and 2. The idea is theirs: start
from the automaton over letters and carry out each merge rule on the automaton as the tokenizer does on one text. How
a rule is carried out is ours, because real tokenizers need more than 002 treats; the results are the same automata.

Words (see `tokdfa.proper`). *Letters* merge by *rules* in order of *rank*; the *level* of a token is the greatest rank
among the merges that make it; *stage* R is reached when everything of rank up to R has merged. Letters are level -1.

**One stage.** Let L be the set of token sequences that the texts have become before stage R: all rules of rank below R
are exhausted. Only tokens of level R are new, and each stands where its *parts* stood (`merging_stages`). So

1. beside every way that is spelled by the parts of a new token t, from state p to state q, put an edge p -t-> q;
2. take apart every pair (t, u) of tokens that a rule of this stage merges: where t leads into a state and u out of it,
   split the state, so that t leads into a copy without u (`merging_state`).

Why this is exact. (a) *Nothing is lost.* What a text is in stage R is a sequence of old and new tokens whose parts, in
a row, are what it was before: merges inside a token are those that its own letters make, since nothing merges across
its borders before it is complete. So the sequence is a path after step 1, and no adjacent pair in it is taken apart in
step 2. (b) *Nothing is too much.* A path after both steps spells, part by part, a sequence of L. Each of its tokens
is what its letters become by stage R, and no adjacent pair merges by stage R; then the whole is what its text becomes
by stage R. That is the pair theorem (002, appendix, section 4.1) for the tokenizer that has only the rules of rank up
to R. (c) *Still deterministic*: the path spelled by the parts of t is unique from each state, and t is new, so no state
gets two edges of one token; splitting gives copies the same edges.

**What falls out of it.**
- A rule (a, b) with a != b parts the pair (a, b) only, and step 2 is the table of four cases of 002 (its Figure 4).
- A rule (a, a) parts (a, a) and (a, aa), but neither (aa, a) nor (aa, aa): merging goes from the left. So after ``a``
  neither may follow, after ``aa`` both may: 002's algorithm 2 finds the same by splitting states by parity.
- Several rules of one rank that overlap (a run of spaces in Mistral v1 is (2, 1), (1, 2), ... in one rank): all their
  results are new in one stage, and the pairs say which of them stands where: the leftmost merge wins.
- Irregular tokens (a rule of lower rank that has to wait for a part of higher rank, and then acts at once): they are
  tokens of the stage of that part.

**Around it.** The marker of a pre-tokenizer is a letter without rules, so nothing merges across it, and states on its
two sides are told apart like others. At the end markers are erased (`merging_pieces`): a text has one marking
only, so this joins pieces and adds no sequence. Before, where a whole piece is an improper token (Llama 3 has 588), the
token takes the place of its encoding. Byte tokens are letters without rules, too (`letter_automaton`).

**Cost.** A stage whose tokens are not there costs 0.3 us; one that acts costs what it changes. The automaton can grow
to (states of the constraint) x (tokens), with rows that hold nearly all tokens: as soon as some text may stand
somewhere, such as inside a JSON string, it is far too large, which is why 002 also has CartesianMerge. Limits say so.
Mistral v1, from its automaton over letters: a date 5 ms, 35 states; complex_phone 0.05 s, 1,397 states and 15,721
transitions before minimisation; three million transitions take 1.3 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokdfa.backends.proper_merge.context import refuse_isolated
from tokdfa.backends.proper_merge.letter_automaton import letter_automaton
from tokdfa.backends.proper_merge.merging_pieces import join_pieces
from tokdfa.backends.proper_merge.merging_stages import MergeStages
from tokdfa.backends.proper_merge.merging_state import MergingAutomaton

if TYPE_CHECKING:
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.proper.pretokenizer_dfa import MarkedDfa
    from tokdfa.token_automata.token_rows import TokenRows

#: Default limits. A transition takes about 250 bytes while merging, so a million takes 0.25 GB.
MAX_STATES, MAX_TRANSITIONS = 100_000, 3_000_000


@dataclass(frozen=True)
class Merged:
    """What merging makes of an automaton over letters: `rows`, still with markers; how many rules found a place."""

    rows: TokenRows
    rules_applied: int


def merge_rows(
    letters: TokenRows,
    stages: MergeStages,
    max_states: int = MAX_STATES,
    max_transitions: int = MAX_TRANSITIONS,
) -> Merged:
    """Carry out all merges on `letters` (trimmed), whose rows are taken over. LimitExceeded past a limit."""
    automaton = MergingAutomaton(letters, max_states, max_transitions)
    entered = automaton.entered
    applied = 0
    for level, made in stages.spelled_with(list(entered)):
        # All ways first: they are those of before this stage.
        ways = [
            (token, found)
            for token, parts in made
            if parts[0] in entered and parts[1] in entered and (found := automaton.ways(parts))
        ]
        if ways:
            for token, found in ways:
                automaton.add_token(token, found)
            automaton.part(stages.forbidden(level, [token for token, _ in made], entered))
            applied += len(ways)
    return Merged(automaton.result(), applied)


def proper_tokenizations(
    marked: MarkedDfa,
    canonicity: Canonicity,
    *,
    minimal: bool = True,
    max_states: int = MAX_STATES,
    max_transitions: int = MAX_TRANSITIONS,
) -> TokenRows:
    """The automaton of the proper tokenizations of the texts of `marked`; without states if there are none.

    `marked`: texts with a marker at every border of pieces (no markers for a tokenizer without pre-tokenizer).
    `minimal`: minimise the result. Raises LimitExceeded, and UnsupportedConstraint if a text holds that of an isolated
    token.
    """
    refuse_isolated(marked, canonicity)
    letters = letter_automaton(marked, canonicity)
    merged = merge_rows(letters, MergeStages(canonicity), max_states, max_transitions)
    rows = join_pieces([(merged.rows, canonicity.whole_pieces.root)], canonicity, max_states)
    return rows.minimal() if minimal else rows
