"""One logits row and the tokens before it -> the distribution that the next token is drawn from.

The same function serves plain decoding, the target's rows and the draft's rows; speculation is
exact only because there is no second one. The order is llama.cpp's: logit bias, penalties, top-k,
top-p, min-p, temperature last.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from specdec_cli.core.options import SamplingOptions
from specdec_cli.errors import EvaluationError

Row: TypeAlias = npt.NDArray[np.float32]
"""Logits of one position, shape (vocab,)."""
Ids: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

BLOCKS = 64  # rows are cut into this many strips to find a threshold for top-k without sorting


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """A probability distribution over token ids, stored where it is not zero.

    Attributes:
        ids: ascending token ids, shape (support,).
        probs: their probabilities, shape (support,), float64, summing to 1.
    """

    ids: Ids
    probs: Floats

    @staticmethod
    def point(token: int) -> Distribution:
        """All the mass on one token."""
        return Distribution(np.array([token], dtype=np.int64), np.ones(1))

    def prob(self, token: int) -> float:
        """Probability of one token, 0 outside the support."""
        at = int(np.searchsorted(self.ids, token))
        return float(self.probs[at]) if at < len(self.ids) and self.ids[at] == token else 0.0

    def probs_of(self, ids: Ids) -> Floats:
        """Probabilities of ascending `ids`, shape of `ids`."""
        if len(ids) == len(self.ids) and (ids is self.ids or np.array_equal(ids, self.ids)):
            return self.probs
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, self.probs[at], 0.0)


def distribution(row: Row, options: SamplingOptions, history: Sequence[int]) -> Distribution:
    """The law of the token that follows `history`, given the model's logits after it.

    Args:
        row: logits, shape (vocab,), float32; not modified.
        options: filters, penalties and temperature.
        history: every token before this position, drafted ones included.

    Raises:
        EvaluationError: the row holds no usable number.
    """
    row = _adjusted(row, options, history)
    best = int(row.argmax())  # the first of equals, so the lowest id wins a tie; a NaN beats all
    _check_finite(float(row[best]))
    if options.greedy:
        return Distribution.point(best)
    ids = _largest(row, options.top_k)
    logits = (row if len(ids) == len(row) else row[ids]).astype(np.float64)
    logits -= float(row[best])
    if options.top_p < 1:
        kept = _nucleus(logits, options.top_p)
        ids, logits = ids[kept], logits[kept]
    if options.min_p > 0:
        kept = np.flatnonzero(logits >= math.log(options.min_p))
        ids, logits = ids[kept], logits[kept]
    weights = np.exp(logits / options.temp)
    if weights.min() == 0:  # banned, or underflown: outside the support for good
        kept = np.flatnonzero(weights)
        ids, weights = ids[kept], weights[kept]
    return Distribution(ids, weights / weights.sum())


def _adjusted(row: Row, options: SamplingOptions, history: Sequence[int]) -> Row:
    """Logit bias, then penalties, as llama.cpp's samplers of those names; copies only if needed."""
    if not options.logit_bias and not (options.penalises and history):
        return row
    row = row.copy()
    for token, bias in options.logit_bias:
        if token < len(row):  # a draft may be narrower than the target
            row[token] += bias
    if options.penalises and history:
        last = options.penalty_last_n
        window = history if last < 0 else history[-last:]
        counts = Counter(token for token in window if token < len(row))
        ids = np.fromiter(counts.keys(), dtype=np.int64, count=len(counts))
        times = np.fromiter(counts.values(), dtype=np.float32, count=len(counts))
        logits = row[ids]
        logits = np.where(
            logits <= 0, logits * options.repeat_penalty, logits / options.repeat_penalty
        )
        row[ids] = logits - times * options.frequency_penalty - options.presence_penalty
    return row


def _largest(row: Row, k: int) -> Ids:
    """Ids of the k largest entries, ascending; the lower id first where the k-th place is tied.

    Each of the strips' maxima is some entry of the row, so the k-th largest maximum bounds the
    k-th largest entry from below: one cheap pass leaves a few dozen candidates to look at.
    """
    if k == 0 or k >= len(row):
        return _all_ids(len(row))
    columns = len(row) // BLOCKS
    if columns > 2 * k:
        maxima = row[: columns * BLOCKS].reshape(BLOCKS, columns).max(axis=0)
        candidates = np.flatnonzero(row >= np.partition(maxima, columns - k)[columns - k])
    else:
        candidates = _all_ids(len(row))
    values = row[candidates]
    threshold = np.partition(values, len(values) - k)[len(values) - k]
    above = candidates[values > threshold]
    tied = candidates[values == threshold][: k - len(above)]
    return np.sort(np.concatenate([above, tied]))


@lru_cache(maxsize=4)
def _all_ids(size: int) -> Ids:
    ids = np.arange(size, dtype=np.int64)
    ids.setflags(write=False)
    return ids


def _nucleus(logits: Floats, top_p: float) -> Ids:
    """Indices, ascending, of the fewest largest logits whose share reaches `top_p`."""
    weights = np.exp(logits)
    shares = weights / weights.sum()
    # Entries below (1 - p)/n add up to less than 1 - p: the nucleus is complete without them.
    candidates = np.flatnonzero(shares >= (1 - top_p) / len(shares))
    descending = candidates[np.argsort(-logits[candidates], kind="stable")]
    reached = int(np.searchsorted(np.cumsum(shares[descending]), top_p))
    return np.sort(descending[: reached + 1])


def _check_finite(peak: float) -> None:
    if not math.isfinite(peak):
        raise EvaluationError(
            "no token is left to choose from",
            why="every logit is NaN or minus infinity",
            fix="look at --logit-bias, or check the model file",
        )
