"""Where has the end of this text been before, and what followed it there?

A suffix automaton over the tokens so far: every substring is a path from the root, and the state
that the text's own longest repeated suffix leads to is kept while tokens are added. Both the
automaton and that state cost O(1) amortised per token. Blumer et al. 1985; used for drafting in
SAM-Decoding, arXiv 2411.10666.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class SuffixAutomaton:
    """Grows by one token at a time.

    Attributes:
        tokens: what has been added.
        match: length of the longest suffix of `tokens` that also ends somewhere earlier.
    """

    def __init__(self, tokens: Iterable[int] = ()) -> None:
        self.tokens: list[int] = []
        self.match = 0
        self._next: list[dict[int, int]] = [{}]
        self._link = [-1]
        self._length = [0]
        self._end = [-1]  # index of the last token of an earlier occurrence
        self._whole = 0  # the state of the whole text
        self._matched = 0  # the state of its longest repeated suffix
        self.extend(tokens)

    def extend(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            if self.match:  # what was matched has now been seen here as well
                self._end[self._matched] = len(self.tokens) - 1
            self._matched, self.match = self.step(self._matched, self.match, token)
            self._add(token)

    def continuation(self) -> Iterator[int]:
        """The tokens that followed an earlier place of the longest match, endlessly: past the
        end of the text it goes on as if it had come true, so a loop is continued as a loop."""
        if self.match == 0:
            return
        after, size = self._end[self._matched] + 1, len(self.tokens)
        guessed: list[int] = []
        while True:
            token = self.tokens[after] if after < size else guessed[after - size]
            guessed.append(token)
            yield token
            after += 1

    def step(self, state: int, length: int, token: int) -> tuple[int, int]:
        """Extend a match by a token, or the longest shorter one that the token can extend."""
        while state > 0 and token not in self._next[state]:
            state = self._link[state]
            length = self._length[state]
        if token in self._next[state]:
            return self._next[state][token], length + 1
        return 0, 0

    def after(self, state: int) -> Iterator[int]:
        """The tokens from an occurrence of a match to the end of the text."""
        for at in range(self._end[state] + 1, len(self.tokens)):
            yield self.tokens[at]

    def _add(self, token: int) -> None:
        """The online construction: a state for the longer text, a clone where a path must part."""
        self.tokens.append(token)
        end = len(self.tokens) - 1
        new = self._state(self._length[self._whole] + 1, end, {})
        state = self._whole
        while state >= 0 and token not in self._next[state]:
            self._next[state][token] = new
            state = self._link[state]
        if state < 0:
            self._link[new] = 0
        else:
            old = self._next[state][token]
            if self._length[old] == self._length[state] + 1:
                self._link[new] = old
            else:
                clone = self._state(self._length[state] + 1, self._end[old], dict(self._next[old]))
                self._link[clone] = self._link[old]
                self._link[old] = self._link[new] = clone
                while state >= 0 and self._next[state].get(token) == old:
                    self._next[state][token] = clone
                    state = self._link[state]
                if self._matched == old and self.match <= self._length[clone]:
                    self._matched = clone
        self._whole = new

    def _state(self, length: int, end: int, following: dict[int, int]) -> int:
        self._next.append(following)
        self._link.append(-1)
        self._length.append(length)
        self._end.append(end)
        return len(self._next) - 1


class Trail:
    """Where has the end of a growing text been in another text, which grows no more?

    Attributes:
        match: length of the longest suffix of the growing text that stands in the other.
    """

    def __init__(self, other: SuffixAutomaton) -> None:
        self.match = 0
        self._other = other
        self._state = 0

    def extend(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            self._state, self.match = self._other.step(self._state, self.match, token)

    def continuation(self) -> Iterator[int]:
        """The tokens that followed a place of the longest match there."""
        return self._other.after(self._state) if self.match else iter(())
