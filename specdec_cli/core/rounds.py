"""What one round of speculative decoding is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from specdec_cli.core.distribution import Distribution

Finish = Literal["stop", "length", "context"]
TARGET = "target"  # the source of a token that the target chose itself


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """One drafted token and the distribution it was really drawn from; None is a point mass.

    Attributes:
        confidence: how sure its drafter is, 0 to 1, on a scale of the drafter's own: a policy
            learns what it is worth, and a rule never looks at it.
    """

    token: int
    distribution: Distribution | None = None
    confidence: float = 0.5

    @property
    def law(self) -> Distribution:
        return self.distribution or Distribution.point(self.token)


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """The guesses of one round, in order, and the drafter they came from."""

    guesses: tuple[Guess, ...] = ()
    source: str = "none"

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(guess.token for guess in self.guesses)

    def __len__(self) -> int:
        return len(self.guesses)


NOTHING = Proposal()


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many guesses stand, and the token the target adds after them."""

    accepted: int
    token: int


@dataclass(frozen=True, slots=True)
class Seconds:
    """Where the time of a round went: drafting, the target's pass, everything else."""

    draft: float = 0.0
    target: float = 0.0
    other: float = 0.0

    @property
    def total(self) -> float:
        return self.draft + self.target + self.other


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One target pass: what was proposed, how much of it stands, what was emitted.

    Attributes:
        emitted: the round's tokens, cut at the first end; `emitted[:accepted]` were drafted.
        accepted: accepted guesses among the emitted tokens (the bonus token is not one of them).
        seconds: time spent; in the first round `seconds.target` is the prefill.
        finish: why the answer ends here, None while it goes on.
    """

    emitted: tuple[int, ...]
    proposal: Proposal
    accepted: int
    seconds: Seconds
    finish: Finish | None = None

    def source(self, index: int) -> str:
        """Who chose `emitted[index]`."""
        return self.proposal.source if index < self.accepted else TARGET

    def through(self, count: int, finish: Finish) -> Round:
        """The same round ended after `count` tokens, as a stop text found later asks for."""
        return replace(
            self,
            emitted=self.emitted[:count],
            accepted=min(self.accepted, count),
            finish=finish,
        )
