"""Which tokens both the text and the proper sequences allow such that both go on allowing some: in bulk.

Words. A *situation* is a state of the strategy that knows the text, as a number (`tokdfa.backends.situation_source`). A
*key* is a state of the proper sequences without the last token (`tokdfa.backends.proper_merge.proper_rows`). A matcher
of proper sequences holds the last token and a few keys; behind a border of pieces a key leads to another one, from
which the last token has no say.

A token *goes on* for n tokens iff the text may end after it, or a token that both allow follows and goes on for n - 1.
Whether v goes on depends on where it leads, (situation', key'), and on v being the last token, by nothing but the pairs
that may stand side by side. So for each (situation, key) there is one bit set, the tokens that can be read from both
and go on,

    B[n](s, k) = { v : v leads to (s', k'), and the text may end there, or B[n-1](s', border(k')) is not empty,
                       or some w of B[n-1](s', k') may follow v },

B[0] being what both allow; and the mask after the last token t is the union over the keys k of

    (B[n](s, k) AND NOT forbidden(t)) OR B[n](s, border(k)).

The second line is `tokdfa.backends.proper_merge.proper_states` with situations added. It holds because all keys have
the last token in common and to go on is a union over keys. So a bit set serves all last tokens: inside a JSON string
there are few pairs (situation, key), and nearly every mask is made of two bit sets that are there already.

How a bit set is made. The row of k and the walk of the text over the token trie (`SituationSource.targets`) say where
every token leads; `tokdfa.backends.token_groups` sorts the tokens by (s', k'), some hundreds of *groups* for 120,000
tokens. A group at which the text may end, or behind whose border some token goes on, is decided as one. Mostly a
*witness* settles it, a token that was seen to go on from another group lately. In any other group each token looks for
a *follower*: one that both allow, that does not merge with it, and that goes on for n - 1 tokens. Followers are tried
one at a time and remembered with the group, and the first one mostly serves all of it; so B[n - 1] is never made, and a
long look-ahead costs little more than one of a single token.

*Without a pre-tokenizer that cuts* (`to_an_end`) a text is one piece, there are no borders, and merges may reach back
as far as they like, so n tokens prove nothing. But every text is spelled by its own encoding. So v goes on to an end
iff it leads where the text may end, or v may be followed by the first token of the encoding of *some* text that ends
the text from there: the whole encoding may then follow, as pairs decide. One such token is easily found: take tokens
that the text allows, in any spelling, up to a place that no token of the vocabulary runs across (`Canonicity.is_cut`;
between a letter and a space, say). Whatever comes behind it, the text so far is encoded by itself, and something does
come, as strategies know no dead ends. That token is a follower that goes on; the others are tried as above, and are
decided in the same way a token later. A search that is exhausted proves a dead end, so masks are exact; one that is
not, within `lookahead` tokens, raises LimitExceeded. Source: ours; 002 treats regular constraints.

Cost: the first mask of a grammar inside a JSON string (Llama 3, 112,000 tokens allowed, 500 groups) takes 50 to 100 ms,
with a look-ahead of 1 or of 8; a new pair (situation, key) later 3 to 20 ms; a mask whose bit sets are kept 3 us.
Mistral v1, to an end, processor time: up to 0.5 s for a new mask of SQL, where thousands of names are tried in vain
behind half a keyword, up to 70 ms for a language like C, 10 ms for JSON.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.proper_merge.marked_product import ENDS
from tokdfa.backends.token_groups import Followers, group_tokens
from tokdfa.core.locks import new_lock
from tokdfa.errors import LimitExceeded
from tokdfa.vocabulary.mask_store import add_tokens

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.proper_merge.proper_states import ProperStates, SplitMask, State
    from tokdfa.backends.situation_source import SituationSource
    from tokdfa.mask import Mask

    Int32 = npt.NDArray[np.int32]

#: How many rows of keys and targets of situations are kept, 0.5 to 1 MB each.
RECENT = 16
#: How many witnesses are tried before all tokens are looked at that both allow.
WITNESSES = 12
#: How many keys' tokens are kept as masks, 16 kB each.
READABLE = 1_024
#: How many tokens of a text are looked at for a token with which its encoding begins for sure.
SURE_TOKENS = 32
#: What is kept of a group takes so many bytes, but for its followers.
GROUP_BYTES = 250


class _Undecided(LimitExceeded):
    """No end has been found within the look-ahead, and not every way has been followed to where it stops."""


class ProperLiveness:
    """The bit sets of one constraint. Immutable to its users, safe to share between threads.

    `texts` and `states` are the two sides; `lookahead`: for how many tokens a token has to go on, at least 1;
    `max_bytes` bounds the kept bit sets, past which they are made anew; `to_an_end`: see the module.
    """

    def __init__(
        self,
        texts: SituationSource,
        states: ProperStates,
        lookahead: int = 1,
        max_bytes: int = 256 << 20,
        to_an_end: bool = False,
    ) -> None:
        self.texts, self.states, self.lookahead = texts, states, lookahead
        self.to_an_end = to_an_end
        canonicity = states.canonicity
        self._size = canonicity.size
        self._lock = new_lock()
        self._row, self._targets = lru_cache(RECENT)(self._read_row), lru_cache(RECENT)(texts.targets)
        self._readable = lru_cache(READABLE)(self._read_mask)
        self._scratch = masks.allocate_mask(self._size)
        self._choices: dict[tuple[int, bool, tuple[int, ...]], SplitMask] = {}
        self._bits: dict[tuple[int, int], Mask] = {}
        self._groups: dict[tuple[int, int, int], Followers | None] = {}
        self._witnesses: list[int] = []
        self._kept_bytes, self._max_bytes = 0, max_bytes

    def fill(self, situation: int, proper: State, out: Mask) -> None:
        """Overwrite `out` with the mask of a situation and a state of the proper sequences, end tokens included."""
        last, keys = proper
        choices = self._choices.get((situation, last < 0, keys))
        if choices is None:
            choices = self._make_choices(situation, last < 0, keys)
        choices.fill(last, self.states.canonicity, out)

    def goes_on(self, situation: int, proper: State) -> bool:
        """Whether the last token of `proper`, which led to `situation`, goes on for `lookahead` tokens."""
        last, keys = proper
        with self._lock:
            return any(self._goes_on(situation, key, last, self.lookahead) for key in keys)

    def can_end(self, situation: int, proper: State) -> bool:
        """Whether the text may end here, for both sides."""
        return self.states.can_end(proper) and self.texts.can_end(situation)

    def _make_choices(self, situation: int, fresh: bool, keys: tuple[int, ...]) -> SplitMask:
        """What the last token has a say in, and what it has not; `fresh`: a piece has just begun."""
        with self._lock:

            def add_tokens(key: int, out: Mask) -> None:
                out |= self._find_bits(situation, key)

            choices = self.states.gather(fresh, keys, add_tokens, self.can_end(situation, (-1, keys)))
            self._make_room(choices.nbytes)
            self._choices[situation, fresh, keys] = choices
            return choices

    def _goes_on(self, situation: int, key: int, last: int, tokens: int) -> bool:
        if tokens == 0:
            if not self.to_an_end:
                return True
            raise _Undecided(
                f"{self.lookahead} tokens ahead do not tell whether a proper sequence ends the text: raise lookahead",
                limit="lookahead",
                value=self.lookahead,
            )
        followers = self._followers(situation, key, tokens)
        return followers is None or self._is_followed(situation, key, last, tokens, followers)

    def _followers(self, situation: int, key: int, tokens: int) -> Followers | None:
        """None if every token that leads here goes on for so many tokens; otherwise those go on that one of the
        followers, having gone on itself for one token less, may follow.
        """
        name = situation, key, tokens
        if name in self._groups:
            return self._groups[name]
        border = self.states.behind_border(key)
        found = None
        if not (self.can_end(situation, (0, (key,))) or (border >= 0 and self._has_any(situation, border, tokens - 1))):
            meeting = self._list_meeting(situation, key)
            known = np.full(len(meeting), tokens == 1)
            if self.to_an_end:
                known = meeting == self._sure_follower(situation, key)
            found = Followers(self.states.canonicity.pairs, meeting[known], meeting[~known])
        self._make_room(GROUP_BYTES + (0 if found is None else found.nbytes))
        self._groups[name] = found
        return found

    def _sure_follower(self, situation: int, key: int) -> int:
        """A token with which the encoding of some text begins that ends the text from here, -1 if none is found.

        Whatever token comes before, that one goes on to an end if this one may follow it. A few masks.
        """
        canonicity = self.states.canonicity
        lengths, text, choose = canonicity.vocabulary.lengths, b"", random.Random(situation)
        if not self.states.table.automaton.can_stop[key] & ENDS:  # inside a character
            return -1
        for _ in range(SURE_TOKENS):
            self.texts.fill(situation, self._scratch)
            allowed = masks.mask_to_ids(self._scratch)
            allowed = allowed[lengths[allowed] > 0]
            if not len(allowed):
                break
            token = int(choose.choice(allowed))
            known, text = len(text), text + canonicity.vocabulary.token_bytes(token)
            situation = self.texts.step(situation, token)
            cuts = (place for place in range(max(1, known), len(text)) if canonicity.is_cut(text, place))
            if cut := next(cuts, len(text) if self.texts.can_end(situation) else 0):
                return int(canonicity.source.encode_piece(text[:cut])[0])
        return -1

    def _is_followed(self, situation: int, key: int, last: int, tokens: int, followers: Followers) -> bool:
        """Whether a token of `followers` that goes on may follow `last`. What is tried is moved or dropped."""
        if followers.may_follow(last):
            return True
        place = 0
        while found := followers.next_untried(last, place):
            place, token = found
            try:
                is_live = self._can_follow(situation, key, token, tokens - 1)
            except _Undecided as undecided:
                is_live, followers.undecided = False, undecided
            followers.settle(place, is_live)
            if is_live:
                return True
        if followers.undecided is not None:
            raise followers.undecided
        return False

    def _can_follow(self, situation: int, key: int, token: int, tokens: int) -> bool:
        """Whether a token can be read from both and goes on for so many tokens."""
        target = self.states.table.step(key, token)
        following = self.texts.step(situation, token) if target >= 0 else -1
        return following >= 0 and self._goes_on(following, target, token, tokens)

    def _has_any(self, situation: int, key: int, tokens: int) -> bool:
        """Whether any token can be read from both and goes on for so many tokens."""
        tried = tuple(self._witnesses)
        for token in tried:
            if self._can_follow(situation, key, token, tokens):
                self._remember(token)
                return True
        for token in map(int, self._list_meeting(situation, key)):
            if token not in tried and self._can_follow(situation, key, token, tokens):
                self._remember(token)
                return True
        return False

    def _remember(self, witness: int) -> None:
        """Put a witness in front of the others."""
        if not self._witnesses or self._witnesses[0] != witness:
            self._witnesses = [witness, *(token for token in self._witnesses if token != witness)][:WITNESSES]

    def _list_meeting(self, situation: int, key: int) -> Int32:
        """The tokens that can be read from both."""
        self.texts.fill(situation, self._scratch)
        return masks.mask_to_ids(self._scratch & self._readable(key)).astype(np.int32, copy=False)

    def _find_bits(self, situation: int, key: int) -> Mask:
        """B[lookahead](situation, key), without end tokens, as a mask. Not to be changed."""
        found = self._bits.get((situation, key))
        if found is None:
            found = self._make_bits(situation, key)
            self._make_room(found.nbytes)
            self._bits[situation, key] = found
        return found

    def _make_bits(self, situation: int, key: int) -> Mask:
        row_tokens, row_keys = self._row(key)
        members, starts, pairs = group_tokens(row_tokens, row_keys, self._targets(situation))
        found = masks.allocate_mask(self._size)
        whole = np.zeros(len(pairs), dtype=np.bool_)
        for group, pair in enumerate(pairs.tolist()):
            target, target_key = pair >> 32, pair & 0xFFFFFFFF
            followers = self._followers(target, target_key, self.lookahead)
            whole[group] = followers is None
            if followers is None:
                continue
            left = followers.judge(members[starts[group] : starts[group + 1]], found)
            while len(left) and followers.has_untried:  # one looks for a follower, which may serve others as well
                token, left = int(left[0]), left[1:]
                if self._is_followed(target, target_key, token, self.lookahead, followers):
                    masks.set_token(found, token)
                    left = followers.judge(left, found)
        add_tokens(members[np.repeat(whole, np.diff(starts))], found)
        return found

    def _make_room(self, more: int) -> None:
        if self._kept_bytes > self._max_bytes:
            for kept in (self._choices, self._bits, self._groups):
                kept.clear()
            self._kept_bytes = 0
        self._kept_bytes += more

    def _read_row(self, key: int) -> tuple[Int32, Int32]:
        """The tokens that can be read from a key and lead to where proper sequences go on, and their keys."""
        tokens, keys, live = self.states.table.row(key)
        return tokens[live], keys[live]

    def _read_mask(self, key: int) -> Mask:
        found = masks.allocate_mask(self._size)
        self.states.table.add_live_tokens(key, found)
        return found
