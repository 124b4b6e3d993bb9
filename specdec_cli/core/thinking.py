"""Thoughts in an answer: text between tags such as <think> and </think>."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from specdec_cli.core.text import Piece

NAMES = ("think", "thinking", "thought", "thoughts", "reasoning")
OPENING = tuple(f"<{name}>" for name in NAMES)
CLOSING = tuple(f"</{name}>" for name in NAMES)


class Passage(NamedTuple):
    """Some text, the source of the token it came from, and whether the model only thought it."""

    text: str
    source: str
    thought: bool


class ThinkingStream:
    """Tells thoughts from the answer while text streams.

    Thoughts come first, if at all: a tag further on is text. Tags count as thoughts. Text that may
    be the beginning of a tag is held back until that is clear.

    Args:
        inside: the prompt's end has opened the thoughts.
    """

    def __init__(self, *, inside: bool = False) -> None:
        self._tags: Sequence[str] = CLOSING if inside else OPENING  # looked for; none at the end
        self._held: list[Piece] = []

    def add(self, pieces: Sequence[Piece]) -> list[Passage]:
        """What is clear now, oldest first."""
        self._held += [piece for piece in pieces if piece.text]
        passages: list[Passage] = []
        if self._tags is OPENING:
            passages += self._opening()
        if self._tags is CLOSING:
            passages += self._closing()
        if not self._tags:
            passages += self._take(len(self._text), thought=False)
        return passages

    def finish(self) -> list[Passage]:
        """What is still held when the answer ends."""
        return self._take(len(self._text), thought=self._tags is CLOSING)

    @property
    def thinking(self) -> bool:
        """Is the model in the middle of its thoughts?"""
        return self._tags is CLOSING

    @property
    def _text(self) -> str:
        return "".join(piece.text for piece in self._held)

    def _opening(self) -> list[Passage]:
        """An opening tag at the very beginning, blanks apart."""
        text = self._text
        begun = text.lstrip()
        if tag := next((tag for tag in OPENING if begun.startswith(tag)), None):
            self._tags = CLOSING
            return self._take(len(text) - len(begun) + len(tag), thought=True)
        if not any(tag.startswith(begun) for tag in OPENING):
            self._tags = ()
        return []

    def _closing(self) -> list[Passage]:
        """Thoughts up to the first closing tag, or as far as none can have begun."""
        text = self._text
        found = [(at, tag) for tag in CLOSING if (at := text.find(tag)) >= 0]
        if found:
            at, tag = min(found)
            self._tags = ()
            return self._take(at + len(tag), thought=True)
        begun = text.rfind("<")
        possible = begun >= 0 and any(tag.startswith(text[begun:]) for tag in CLOSING)
        return self._take(begun if possible else len(text), thought=True)

    def _take(self, count: int, *, thought: bool) -> list[Passage]:
        taken: list[Passage] = []
        while count > 0:
            text, source = self._held.pop(0)
            if len(text) > count:
                self._held.insert(0, Piece(text[count:], source))
            taken.append(Passage(text[:count], source, thought))
            count -= len(text)
        return taken


def opens_thoughts(prompt: str) -> bool:
    """Does a prompt end inside of thoughts that it has opened itself?"""
    return prompt.rstrip().endswith(OPENING)
