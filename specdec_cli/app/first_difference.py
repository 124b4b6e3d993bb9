"""Two runs that should have been the same text part at some token: rounding, or a bug?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from specdec_cli.core.chance import Chance
from specdec_cli.core.distribution import Row, distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.engine.language_model import LanguageModel
from specdec_cli.engine.recording import replay

Class = Literal["identical", "tie", "different"]
CHUNKS = (512, 32)
# Set by hand. A run mixes widths in its own way and may lie just outside a handful of fresh
# evaluations: honest rows were 0.7 to 1.1 times their spread from the nearest (Q4_K_M, 9 runs),
# rows over one wrong cell of the cache, about 15 tokens back, 1.8 to 8.4 times (16 runs).
SLACK = 1.5


@dataclass(frozen=True, slots=True)
class Difference:
    """The first token at which a speculative run left the plain one.

    Attributes:
        position: index into the answer.
        tokens: what plain and what speculative decoding chose.
        gaps: how far the likeliest token led in the row that each of them saw.
        noise: how far a logit may honestly be off: the largest difference between fresh
            evaluations of the same prefix, and half of it more.
        distances: how far each of the two rows is from the nearest fresh evaluation.
        follows: does each choice follow from the row that its run saw?
    """

    position: int
    tokens: tuple[int, int]
    gaps: tuple[float, float]
    noise: float
    distances: tuple[float, float]
    follows: tuple[bool, bool]

    @property
    def verdict(self) -> Class:
        """A tie only if both choices follow from their rows, and both rows are such as the model
        gives for this prefix. A small gap alone excuses nothing: a corrupt cache can flip it too.
        """
        return "tie" if all(self.follows) and max(self.distances) <= self.noise else "different"

    @property
    def reason(self) -> str:
        for name, follows in zip(("plain", "speculative"), self.follows, strict=True):
            if not follows:
                return f"the {name} token does not follow from the row that was seen"
        for name, distance in zip(("plain", "speculative"), self.distances, strict=True):
            if distance > self.noise:
                return (
                    f"the {name} row is {distance:.3g} away from every fresh evaluation of the "
                    f"same text; rounding explains {self.noise:.3g}"
                )
        return f"both rows are near fresh evaluations of the same text (within {self.noise:.3g})"


def judge(
    model: LanguageModel,
    prompt: Sequence[int],
    answer: Sequence[int],
    *,
    tokens: tuple[int, int],
    rows: tuple[Row, Row],
    sampling: SamplingOptions,
    chance: Chance,
    width: int,
) -> Difference:
    """Weigh a first difference.

    Args:
        answer: the tokens that both runs agreed on.
        tokens, rows: what plain and speculative decoding chose next, and the logits they saw.
        chance: the randomness of that position, the same for both.
        width: rows in a speculative pass, k + 1.
    """
    prefix = [*prompt, *answer]
    position = len(prefix)
    follows = [
        chance.choose(position, distribution(row, sampling, prefix)) == token
        for row, token in zip(rows, tokens, strict=True)
    ]
    fresh = [
        replay(model, prefix, len(prompt), chunk=chunk, width=rows_at_once, alone=alone)
        for chunk in CHUNKS
        for rows_at_once, alone in {(1, False), (2, False), (width, False), (width, True)}
    ]
    noise = SLACK * max(_distance(a, b) for a, b in combinations(fresh, 2))
    distances = [min(_distance(row, other) for other in fresh) for row in rows]
    return Difference(
        position=len(answer),
        tokens=tokens,
        gaps=(_gap(rows[0]), _gap(rows[1])),
        noise=noise,
        distances=(distances[0], distances[1]),
        follows=(follows[0], follows[1]),
    )


def _distance(left: Row, right: Row) -> float:
    return float(np.abs(left - right).max())


def _gap(row: Row) -> float:
    second, first = np.partition(row, -2)[-2:]
    return float(first - second)
