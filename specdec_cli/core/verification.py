"""Verification rules: which guesses of a proposal stand, and what the target adds.

A rule is a pure function of the proposal, the target's distributions and a source of chance. In
the papers p is the target's distribution and q the draft's; here they are named by role.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from specdec_cli.core.chance import Chance, Independent, SharedNoise
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.rounds import Guess, Proposal, Verdict

TargetRows: TypeAlias = Callable[[int], Distribution]
"""The target's distribution after the first i guesses, computed when asked for."""


class Verify(Protocol):
    def __call__(
        self, proposal: Proposal, target: TargetRows, chance: Chance, start: int
    ) -> Verdict:
        """Judge a proposal whose first guess stands at absolute position `start`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A named rule and the kind of chance that makes it exact."""

    name: str
    verify: Verify
    chance: Callable[[int, int], Chance]  # (seed, first position of the round) -> Chance


def rejection(proposal: Proposal, target: TargetRows, chance: Chance, start: int) -> Verdict:
    """Token by token: keep a guess with probability min(1, p/q), else draw from the residual.

    Leviathan et al. 2023, arXiv 2211.17192, algorithm 1; Chen et al. 2023, arXiv 2302.01318.
    """
    for i, guess in enumerate(proposal.guesses):
        law = target(i)
        if not chance.accept(start + i, min(1.0, ratio(law, guess))):
            return Verdict(i, chance.choose(start + i, residual(law, guess.law)))
    return Verdict(len(proposal), chance.choose(start + len(proposal), target(len(proposal))))


def ratio(target: Distribution, guess: Guess) -> float:
    """p(x)/q(x) for the guessed token x; q(x) > 0 because x was drawn from q."""
    draft = 1.0 if guess.distribution is None else guess.distribution.prob(guess.token)
    return target.prob(guess.token) / draft


def overlap(target: Distribution, draft: Distribution) -> float:
    """sum min(p, q) = 1 - TV: how often a guess drawn from the draft stands by `rejection`."""
    return float(np.minimum(target.probs, draft.probs_of(target.ids)).sum())


def residual(target: Distribution, draft: Distribution, scale: float = 1.0) -> Distribution:
    """norm(max(scale * p - q, 0)): what the draft gave too little of.

    Where floats leave nothing of it, the two agree and a rejection cannot really happen: p itself.
    """
    left = np.maximum(scale * target.probs - draft.probs_of(target.ids), 0.0)
    total = left.sum()
    if total <= 0:
        return target
    kept = left > 0
    return Distribution(target.ids[kept], left[kept] / total)


def block(proposal: Proposal, target: TargetRows, chance: Chance, start: int) -> Verdict:
    """The whole block at once: never fewer tokens than `rejection`, and more on average.

    The weight w_i = min(1, w_(i-1) p(x_i)/q(x_i)) of the first i guesses is the probability with
    which at least i of them stand. Prefix i passes with probability R / (R + 1 - w_i), where R is
    the mass of max(w_i p - q, 0) at the *next* position; the last prefix that passes wins, so a
    failure in between ends nothing. Sun et al., ICLR 2025, arXiv 2403.10444, algorithm 2.
    """
    accepted, kept, weight = 0, 1.0, 1.0
    for i, guess in enumerate(proposal.guesses):
        weight = min(1.0, weight * ratio(target(i), guess))
        if weight == 0:  # no longer prefix can pass, and the rows behind it need not be read
            break
        last = i + 1 == len(proposal)
        passing = weight if last else _passing(weight, target(i + 1), proposal.guesses[i + 1].law)
        if chance.accept(start + i, passing):
            accepted, kept = i + 1, weight
    if accepted == len(proposal):
        law = target(accepted)
    else:
        law = residual(target(accepted), proposal.guesses[accepted].law, kept)
    return Verdict(accepted, chance.choose(start + accepted, law))


def _passing(weight: float, target: Distribution, draft: Distribution) -> float:
    left = np.maximum(weight * target.probs - draft.probs_of(target.ids), 0.0).sum()
    whole = left + 1.0 - weight
    return float(left / whole) if whole > 0 else 1.0


def coupled(proposal: Proposal, target: TargetRows, chance: Chance, start: int) -> Verdict:
    """Choose each token as plain decoding would, and go on while the guesses foresaw it.

    With shared noise the draft foresees it often, and the text depends on the seed alone, not on
    what was drafted. Daliri, Musco, Suresh 2024, arXiv 2408.07978.
    """
    for i, guess in enumerate(proposal.guesses):
        token = chance.choose(start + i, target(i))
        if token != guess.token:
            return Verdict(i, token)
    return Verdict(len(proposal), chance.choose(start + len(proposal), target(len(proposal))))


RULES = {
    rule.name: rule
    for rule in (
        Rule("coupled", coupled, lambda seed, _start: SharedNoise(seed)),
        Rule("rejection", rejection, Independent),
        Rule("block", block, Independent),
    )
}
