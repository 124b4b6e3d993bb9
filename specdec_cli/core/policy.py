"""How many guesses are worth it: expected tokens against expected seconds.

A round that emits E tokens in T seconds is worth E - rate * T tokens, where `rate` is what the
time would earn otherwise: tokens per second in the long run. What maximises that in every round
maximises the long-run speed (renewal-reward). All functions are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

Seconds = Callable[[int], float]
"""Seconds of a pass with so many new rows."""

LOOK_AHEAD = 12  # guesses; kernels have steps, so that one more may only pay if several follow


@dataclass(frozen=True, slots=True)
class Worth:
    """The best that a source promises for one round."""

    guesses: int
    tokens: float
    seconds: float

    def over(self, rate: float) -> float:
        """Tokens won against spending the time at `rate`."""
        return self.tokens - rate * self.seconds


def plain(verify: Seconds) -> Worth:
    return Worth(0, 1.0, verify(1))


def best_known(chances: Sequence[float], verify: Seconds, rate: float) -> Worth:
    """Of guesses that are there already and cost nothing.

    Args:
        chances: of each to stand if those before it do.
    """
    best = plain(verify)
    tokens = 1.0
    for count, stands in enumerate(accumulate(chances, mul), 1):
        tokens += stands
        worth = Worth(count, tokens, verify(count + 1))
        if worth.over(rate) > best.over(rate):
            best = worth
    return best


def best_unknown(
    first: float, later: float, most: int, draft: Seconds, behind: float, verify: Seconds,
    rate: float,
) -> Worth:  # fmt: skip
    """Of guesses that have yet to be drawn, one by one.

    Args:
        first: chance of the first to stand.
        later: chance of each further one, if those before it do.
        most: guesses at most.
        draft: seconds of the draft's passes.
        behind: seconds in which the draft reads what it has missed and gives its first guess.
    """
    best = plain(verify)
    tokens, stands, drafting = 1.0, first, behind
    for count in range(1, most + 1):
        tokens += stands
        worth = Worth(count, tokens, drafting + verify(count + 1))
        if worth.over(rate) > best.over(rate):
            best = worth
        stands *= later
        drafting += draft(1)
    return best


def one_more(
    stands: float, later: float, drawn: int, most: int, draft: Seconds, verify: Seconds,
    rate: float,
) -> bool:  # fmt: skip
    """Is it worth drawing another guess, or several, after `drawn` of them?

    Args:
        stands: chance that all that were drawn stand.
        later: chance of each further one, if those before it do.
        most: guesses at most in this round.
    """
    won, checked = 0.0, verify(drawn + 1)
    for further in range(1, min(LOOK_AHEAD, most - drawn) + 1):
        stands *= later
        won += stands
        if won > rate * (further * draft(1) + verify(drawn + 1 + further) - checked):
            return True
    return False
