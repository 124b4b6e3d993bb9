"""Thoughts in an answer: text between tags such as <think> and </think>."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from specdec_cli.core.text import Piece


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
        inside: the prompt's end has opened the thoughts (`Started.thinking`).
    """

    def __init__(self, *, inside: bool = False) -> None:
        raise NotImplementedError

    def add(self, pieces: Sequence[Piece]) -> list[Passage]:
        raise NotImplementedError

    def finish(self) -> list[Passage]:
        """What is still held when the answer ends."""
        raise NotImplementedError
