"""`/why`: the last guesses that the target refused, and what both models thought."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """A token, as text, and the probability a model gave it before any sampling filter."""

    token: int
    text: str
    prob: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """One refusal.

    Attributes:
        before: the end of the text in front of the refused token.
        drafted: the draft's token, with the draft's own probability.
        drafted_by_target: the same token with the target's probability.
        chosen: the target's token, with the target's probability.
        chosen_by_draft: the same token with the draft's probability.
        draft_top, target_top: the five likeliest of each; the draft's are one where it is certain.
        drawn: chosen by chance and not because it was the likeliest.
    """

    source: str
    before: str
    drafted: Choice
    drafted_by_target: Choice
    chosen: Choice
    chosen_by_draft: Choice
    draft_top: tuple[Choice, ...]
    target_top: tuple[Choice, ...]
    drawn: bool
