"""The first answer of a pair: a short calibration on its own text, then the policy `auto`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from specdec_cli.core.chance import Chance
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.core.rounds import NOTHING, Proposal, Round
from specdec_cli.core.verification import TargetRows
from specdec_cli.engine.drafting import Drafting
from specdec_cli.engine.language_model import LanguageModel

PLAIN = 2  # passes: one alone may have been disturbed
WIDTHS = (4, 8)  # rows; the steps between them show up when they are used
BUDGET = 10.0  # plain passes' time at most, those two included


@dataclass(slots=True)
class FirstUse:
    """Plain until a plain pass is known, then a few wider passes that are rolled back again.

    Args:
        target: where the passes are measured, on the text as it stands.
        then: builds the policy from what they cost.
        rows: that a pass of the target has room for.
    """

    target: LanguageModel
    then: Callable[[PassSeconds], Drafting]
    rows: int
    clock: Callable[[], float] = perf_counter
    _policy: Drafting | None = None
    _past: list[tuple[Round, TargetRows]] = field(default_factory=list)

    @property
    def decision(self) -> str:
        return self._policy.decision if self._policy else "plain: the answer ended while measuring"

    @property
    def plain_seconds(self) -> float | None:
        return self._policy.plain_seconds if self._policy else None

    def propose(self, tokens: Sequence[int], limit: int, chance: Chance) -> Proposal:
        if self._policy is None:
            if len(self._past) <= PLAIN or limit < max(WIDTHS):
                return NOTHING
            self._policy = self.then(self._measure(tokens))
            for past in self._past:
                self._policy.learn(*past)
        return self._policy.propose(tokens, limit, chance)

    def learn(self, round: Round, target: TargetRows) -> None:
        if self._policy is not None:
            self._policy.learn(round, target)
        else:
            self._past.append((round, target))

    def _measure(self, tokens: Sequence[int]) -> PassSeconds:
        _, *plain = (round.seconds.target for round, _ in self._past)
        one = min(plain)
        points = {1: one}
        spent = PLAIN * one
        for rows in (width for width in WIDTHS if width <= self.rows):
            widest = max(points)
            if spent + points[widest] * rows / widest > BUDGET * one:
                break
            wider = [*tokens, *tokens[-rows + 1 :]][: len(tokens) + rows - 1]
            started = self.clock()
            self.target.logits(wider, last=rows)
            points[rows] = self.clock() - started
            spent += points[rows]
        if len(points) == 1:  # a pass that grows with every row
            points[2] = 2 * one
        return PassSeconds(points)
