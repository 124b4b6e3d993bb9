"""What the decode loop asks of a model, and what tokens mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Logits: TypeAlias = npt.NDArray[np.float32]
"""Rows of next-token logits, shape (rows, vocab)."""


class Interrupted(Exception):
    """The evaluation was stopped on request; the model is still consistent."""


class LanguageModel(Protocol):
    """A pure function from tokens to logits; the KV cache is only its memo.

    Rolling back a rejection, letting a draft lag, editing a chat: each is a call with other
    tokens. The model reuses the longest common prefix, drops the rest and evaluates what is new.
    """

    vocab_size: int
    context_size: int
    can_roll_back: bool  # False: every rejection costs a whole new evaluation (recurrent models)

    def logits(self, tokens: Sequence[int], *, last: int) -> Logits:
        """Next-token logits after each of the last `last` prefixes of `tokens`.

        Returns:
            Shape (last, vocab), float32, a view that is valid until the next call.

        Raises:
            Interrupted: the evaluation was asked to stop.
            EvaluationError: llama.cpp reported a failure.
        """

    def cached(self, tokens: Sequence[int]) -> int:
        """How many leading tokens of `tokens` the memo holds."""

    def forget(self) -> None:
        """Empty the memo."""


class Vocabulary(Protocol):
    """The token texts of one model file."""

    @property
    def size(self) -> int:
        """How many tokens there are."""

    @property
    def ends(self) -> frozenset[int]:
        """Ids that end a generation."""

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Ids of `text`, nothing added; with `special`, control tokens spelled in it are one id."""

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for in the output; empty for control tokens."""

    def spelling(self, token: int) -> bytes:
        """The same, but a control token's name where it has no bytes."""
