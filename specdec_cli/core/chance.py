"""Random numbers that are a function of their key, so that a seed means something.

Every number is a hash of (seed, purpose, positions): no generator is carried along, so a number
does not depend on how many were drawn before it. A rule asks its `Chance` three questions and
never sees a number; tests put an enumerator behind the same questions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from specdec_cli.core.distribution import Distribution, Floats, Ids

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, the increment of splitmix64
MANY = 1000  # ids from which on it pays to rule most of them out before taking logarithms
DRAW, ACCEPT, CHOOSE, SHARED = 1, 2, 3, 4  # purposes: no two of them ever share a number


class Chance(Protocol):
    """The randomness of one round. Positions are absolute indices into the token sequence."""

    def draw(self, position: int, draft: Distribution) -> int:
        """The drafter's guess for a position."""

    def accept(self, position: int, probability: float) -> bool:
        """Does the guess at a position stand, given the probability that it should?"""

    def choose(self, position: int, target: Distribution) -> int:
        """The target's own token for a position."""


@dataclass(frozen=True, slots=True)
class Independent:
    """For `rejection` and `block`: fresh numbers for every round, position and purpose.

    The key holds the round's first position because `block` looks at numbers that it then throws
    away: met again at the same position in the next round, they would bias it.
    """

    seed: int
    start: int

    def draw(self, position: int, draft: Distribution) -> int:
        return self._pick(draft, position, DRAW)

    def accept(self, position: int, probability: float) -> bool:
        return uniform(self.seed, ACCEPT, self.start, position) < probability

    def choose(self, position: int, target: Distribution) -> int:
        return self._pick(target, position, CHOOSE)

    def _pick(self, law: Distribution, position: int, purpose: int) -> int:
        if len(law.ids) == 1:
            return int(law.ids[0])
        cumulative = np.cumsum(law.probs)
        level = uniform(self.seed, purpose, self.start, position) * cumulative[-1]
        at = int(np.searchsorted(cumulative, level, side="right"))
        return int(law.ids[min(at, len(law.ids) - 1)])


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """For `coupled`: one Gumbel number per (seed, position, token id), for draft and target alike.

    argmax(log p + g) is a draw from p (Gumbel-max), and two distributions that see the same g
    often choose the same token. Daliri, Musco, Suresh 2024, arXiv 2408.07978.
    """

    seed: int

    def draw(self, position: int, draft: Distribution) -> int:
        return self.choose(position, draft)

    def accept(self, position: int, probability: float) -> bool:
        raise AssertionError("the coupled rule compares tokens and never asks this")

    def choose(self, position: int, target: Distribution) -> int:
        if len(target.ids) == 1:
            return int(target.ids[0])
        levels = _levels(self.seed, position, target.ids)
        probs, ids = target.probs, target.ids
        if len(ids) > MANY:
            contenders = _contenders(levels, probs)
            levels, probs, ids = levels[contenders], probs[contenders], ids[contenders]
        return int(ids[(np.log(probs) - np.log(-np.log(levels))).argmax()])


def uniform(seed: int, *key: int) -> float:
    """A number in the open interval (0, 1) that depends on the seed and the key alone."""
    return ((_hash(seed, *key) >> 12) + 0.5) * 2.0**-52  # half a step: never 0, never 1


def gumbel(seed: int, position: int, ids: Ids) -> Floats:
    """Standard Gumbel noise for each token id at one absolute position, shape of `ids`, float64.

    In float64 because a 24-bit uniform would cut the upper tail near 17, which a vocabulary of
    150,000 reaches every few tokens.
    """
    return -np.log(-np.log(_levels(seed, position, ids)))


def _levels(seed: int, position: int, ids: Ids) -> Floats:
    """The uniform number behind each Gumbel number, shape of `ids`."""
    base = np.uint64(_hash(seed, SHARED, position))
    bits = _mix_array(ids.astype(np.uint64) * np.uint64(GOLDEN) + base)
    return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def _contenders(levels: Floats, probs: Floats) -> Ids:
    """Indices that can still win log p - log(-log u), found without a logarithm.

    To beat the likeliest token's score s, a token needs -log u < p e^(-s); and 1 - u is never more
    than -log u. A whole vocabulary leaves a few dozen, the likeliest itself among them.
    """
    top = int(probs.argmax())
    bound = -math.log(levels[top]) / float(probs[top]) * (1 + 1e-9)
    return np.flatnonzero((1 - levels <= bound * probs) | (np.arange(len(probs)) == top))


def _hash(seed: int, *key: int) -> int:
    state = _mix(seed & MASK)
    for part in key:
        state = _mix((state + (part + 1) * GOLDEN) & MASK)
    return state


def _mix(bits: int) -> int:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    bits = (bits + GOLDEN) & MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


def _mix_array(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    bits = bits + np.uint64(GOLDEN)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
