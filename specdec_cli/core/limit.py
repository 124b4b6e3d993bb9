"""The oracle: how fast could a finished text have been written with these sources of guesses?

An oracle that knows which guesses will be accepted never drafts one in vain, and chooses the
source and the number of guesses of every round so that the whole answer takes least. That is a
shortest path over the text: places are nodes, possible rounds are edges, measured costs their
lengths. No policy that drafts from one of these sources a round can be faster, so the distance to
it is what better decisions could still gain. (A guess in vain would leave a draft one token behind
instead of two, but costs a pass of its own: it never pays while read(2) <= 2 read(1).)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from specdec_cli.core.cost_curve import CostCurve
from specdec_cli.core.distribution import Floats, Ids

LONGEST_LAG = 48  # tokens; a model further behind is charged for these alone
LAG_AFTER_USE = 2  # a round accepted whole leaves its last guess and the bonus token unread
UNUSED = -1  # the last state of a model; before it stand the lags, from the shortest


@dataclass(frozen=True, slots=True)
class SourceOnText:
    """What a source of guesses would have done on one finished answer.

    Attributes:
        hits: entry i: how many guesses, drawn when i tokens of the answer are known, would all be
            accepted. An entry for every token of the answer.
        read: seconds in which its model reads so many new tokens and gives the guess after them;
            None: guesses are free.
        prompt_seconds: what its model pays to read the prompt, once, when it is first used.
    """

    hits: Sequence[int]
    read: CostCurve | None = None
    prompt_seconds: float = 0.0


def shortest_seconds(
    length: int, verify: CostCurve, sources: Sequence[SourceOnText], *, max_guesses: int
) -> float:
    """The least time from the first token of an answer to its last.

    With i tokens known, a round of a guesses from source s leads to i + a + 1. It costs
    verify(a + 1) and the drafting: the first guess takes reading what the source's model lags
    behind, every further one takes reading the guess before it. How far each model lags is part
    of the state, so the path is the shortest but for one thing: a lag beyond `LONGEST_LAG` costs
    what that one costs. The error is on the fast side, where a limit may err.

    Takes O(length * max_guesses * LONGEST_LAG ** models) time, `models` being the sources that
    are not free: seconds for two of them, too long for three.

    Args:
        length: tokens of the answer. The prompt's pass gives the first and is not counted here.
        verify: seconds of a target pass with so many rows.
        max_guesses: the most guesses of one round.
    """
    models = [_Reader(source, source.read) for source in sources if source.read is not None]
    free = [source.hits for source in sources if source.read is None]
    checked = [verify(guesses + 1) for guesses in range(max_guesses + 1)]
    states = LONGEST_LAG - LAG_AFTER_USE + 2
    # Backwards from the end. ahead[a]: the time that is left after a round of a guesses, by the
    # state of each model. It is as long as the rounds that the rest of the text has room for.
    ahead = deque([np.zeros((states,) * len(models))], maxlen=max_guesses + 1)
    for i in range(length - 1, 0, -1):
        room = len(ahead) - 1
        most = min(room, max((hits[i] for hits in free), default=0))
        rounds = [checked[a] + _aged(ahead[a], a + 1) for a in range(most + 1)]
        for axis, model in enumerate(models):
            drafted = [
                checked[a] + (a - 1) * model.again + _aged(ahead[a], a + 1, used=axis)
                for a in range(1, min(room, model.hits[i]) + 1)
            ]
            if drafted:
                first = model.first(i).reshape([-1 if d == axis else 1 for d in range(len(models))])
                rounds.append(first + reduce(np.minimum, drafted))
        ahead.appendleft(reduce(np.minimum, rounds))
    return float(ahead[0][(UNUSED,) * len(models)])


class _Reader:
    """What the model of a source costs."""

    def __init__(self, source: SourceOnText, read: CostCurve) -> None:
        self.hits = source.hits
        self.again = read(1)
        self._read = [read(lag) for lag in range(LONGEST_LAG + 1)]
        self._prompt_seconds = source.prompt_seconds

    def first(self, known: int) -> Floats:
        """Seconds until its first guess with so many tokens known, by its state."""
        unused = self._prompt_seconds + self._read[min(known, LONGEST_LAG)]
        return np.array([*self._read[LAG_AFTER_USE:], unused])


_USED: Ids = np.zeros(1, dtype=np.int64)  # from any state to the shortest lag


def _aged(rest: Floats, tokens: int, used: int | None = None) -> Floats:
    """`rest` after a round of so many tokens, by the states before it.

    The model that the round used has one state afterwards, whatever it was: its axis has length 1.
    """
    for axis, states in enumerate(rest.shape):
        rest = rest.take(_USED if axis == used else _older(states, tokens), axis)
    return rest


def _older(states: int, tokens: int) -> Ids:
    """The state that each state of an idle model turns into while so many tokens pass."""
    after = np.minimum(np.arange(states) + tokens, states - 2)
    after[UNUSED] = states - 1
    return after
