"""Token bytes -> text that is safe to show now: whole characters, and no half of a stop text."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import NamedTuple


class Piece(NamedTuple):
    """Some text and the source of the token that completed it."""

    text: str
    source: str


class TextStream:
    """Turns the bytes of one token after another into text.

    A character split across tokens is shown when its last byte arrives. Text that might be the
    beginning of a stop text is held back until it is clear that it is not; a stop text itself,
    and whatever follows it, is never shown.
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self.stopped: str | None = None
        self._stops = tuple(stops)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held: list[Piece] = []

    def add(self, data: bytes, source: str) -> list[Piece]:
        """The text that the next token makes safe to show, oldest first."""
        return self._push(self._decoder.decode(data), source)

    def finish(self, source: str) -> list[Piece]:
        """What is still held when the answer ends; dead bytes become U+FFFD."""
        if self.stopped is not None:
            return []
        released = self._push(self._decoder.decode(b"", final=True), source)
        if self.stopped is None:
            released += self._take(sum(len(piece.text) for piece in self._held))
        return released

    def _push(self, text: str, source: str) -> list[Piece]:
        if text:
            self._held.append(Piece(text, source))
        held = "".join(piece.text for piece in self._held)
        found = [(at + len(stop), at, stop) for stop in self._stops if (at := held.find(stop)) >= 0]
        if found:  # the one that is complete first, however the text was cut into tokens
            _, at, self.stopped = min(found)
            return self._take(at)
        return self._take(len(held) - self._possible_stop(held))

    def _possible_stop(self, held: str) -> int:
        """Length of the longest tail that some stop text begins with."""
        longest = max((len(stop) for stop in self._stops), default=1) - 1
        for size in range(min(longest, len(held)), 0, -1):
            if any(stop.startswith(held[-size:]) for stop in self._stops):
                return size
        return 0

    def _take(self, count: int) -> list[Piece]:
        taken: list[Piece] = []
        while count > 0:
            text, source = self._held[0]
            taken.append(Piece(text[:count], source))
            if len(text) > count:
                self._held[0] = Piece(text[count:], source)
            else:
                self._held.pop(0)
            count -= len(taken[-1].text)
        return taken
