"""What the policy `auto` chooses between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from specdec_cli.core.acceptance import Acceptance
from specdec_cli.core.chance import Chance
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.core.policy import Seconds, Worth, best_unknown
from specdec_cli.core.rounds import Guess
from specdec_cli.engine.drafters import Drafter

MEMORY = 0.9  # of a moving mean, a round
PROVEN = 8  # rounds after which a source's own record counts
HOPED = 0.85  # acceptance that a model is thought capable of, whatever it has shown
LEAST_PROMISE = 1.2  # what could not even then be so much faster is not looked at
Hindsight = Callable[[Sequence[int], int, Chance], list[Guess]]


@dataclass(slots=True)
class Source:
    """A drafter, and what is known of it.

    Attributes:
        seconds: of its model's passes; None: its guesses are there at once.
        behind: how many tokens its model has to read.
        unasked: how many tokens of the answer came since it last guessed.
        in_hindsight: what it would have guessed in place of the last so many tokens; None if
            that cannot be had in one pass.
        ready: what it would guess next, if that is known without a model.
        tokens, spent: of its rounds in this answer, without reading what was missed.
        failure: why it is out of the game for this answer.
    """

    drafter: Drafter
    acceptance: Acceptance
    seconds: PassSeconds | None = None
    behind: Callable[[Sequence[int]], int] = lambda tokens: 0
    in_hindsight: Hindsight | None = None
    unasked: int = 0
    ready: tuple[Guess, ...] = ()
    tokens: float = 0.0
    spent: float = 0.0
    rounds: int = 0
    failure: str = ""

    @property
    def proven(self) -> bool:
        """Is its own record to be believed? A free source needs none."""
        return self.seconds is None or self.rounds >= PROVEN

    def gave(self, tokens: int, seconds: float) -> None:
        """Learn what a round from it was worth: a mean, then a moving one."""
        self.rounds += 1
        share = max(1 / self.rounds, 1 - MEMORY)
        self.tokens += share * (tokens - self.tokens)
        self.spent += share * (seconds - self.spent)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a source promises for this round."""

    source: Source
    worth: Worth


def could_pay(source: Source, most: int, verify: Seconds, rate: float) -> bool:
    """Is it worth finding out what a model would guess, while tokens come at `rate`?"""
    assert source.seconds is not None
    one = source.seconds(1)
    dream = best_unknown(HOPED, HOPED, most, source.seconds, one, verify, rate)
    return dream.tokens / dream.seconds > LEAST_PROMISE * rate
