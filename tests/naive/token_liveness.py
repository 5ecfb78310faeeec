"""The plain search for an end, token by token, one state at a time: the judge of masks where bytes are missing.

It knows a constraint by a matcher over single bytes, all of which are tokens there, so nothing that the package does
where a vocabulary lacks bytes is asked.
"""

from __future__ import annotations

from collections import deque


class TokenLiveness:
    """Whether tokens with these `texts` lead from a state to an end. `limit`: states that one search may meet."""

    def __init__(self, texts, limit=300):
        self.texts, self.limit = sorted({text for text in texts if text}), limit
        self._known = {}

    def is_live(self, matcher):
        """True, False, or None where the search meets too many states."""
        start = matcher.whereabouts()
        came_from, agenda = {start: start}, deque([matcher])
        found = None
        while agenda and found is None:
            here = agenda.popleft()
            place = here.whereabouts()
            if self._known.get(place) or here.can_end():
                found = place
                break
            if len(came_from) > self.limit:
                return None
            for text in self.texts:
                after = read(here, text)
                if after is not None and after.whereabouts() not in came_from:
                    came_from[after.whereabouts()] = place
                    if self._known.get(after.whereabouts()) is not False:
                        agenda.append(after)
        if found is None:
            self._known.update(dict.fromkeys(came_from, False))
            return False
        while found != start:
            self._known[found] = True
            found = came_from[found]
        self._known[start] = True
        return True

    def allows(self, matcher, text):
        """Whether a token with this text may come next; None: not known."""
        after = read(matcher, text) if text else None
        return False if after is None else self.is_live(after)


def read(matcher, text):
    """A matcher behind some bytes, which are tokens; None if they are not allowed."""
    after = matcher.fork()
    for byte in text:
        if not after.allows(byte):
            return None
        after.advance(byte)
    return after
