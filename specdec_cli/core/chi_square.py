"""Do counted draws fit a distribution? Pearson's test, and Holm's correction for many of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from specdec_cli.core.distribution import Distribution

SMALLEST_CELL = 5.0  # expected count below which cells are pooled


def p_value(counts: Mapping[int, int], law: Distribution) -> float:
    """Probability of a fit at least this bad, if the draws are from `law`.

    Args:
        counts: how often each token was drawn; a token outside the law's support makes it 0.
        law: the exact distribution; tokens expected fewer than five times are pooled.
    """
    draws = sum(counts.values())
    expected = {int(i): draws * float(p) for i, p in zip(law.ids, law.probs, strict=True)}
    if any(count and token not in expected for token, count in counts.items()):
        return 0.0
    cells: list[tuple[float, int]] = []
    pooled, pooled_count = 0.0, 0
    for token, mean in expected.items():
        if mean >= SMALLEST_CELL:
            cells.append((mean, counts.get(token, 0)))
        else:
            pooled, pooled_count = pooled + mean, pooled_count + counts.get(token, 0)
    if cells and pooled < SMALLEST_CELL:  # the pool itself must be large enough to judge
        smallest, count = cells.pop(cells.index(min(cells)))
        pooled, pooled_count = pooled + smallest, pooled_count + count
    cells.append((pooled, pooled_count))
    if len(cells) < 2:
        return 1.0
    statistic = sum((count - mean) ** 2 / mean for mean, count in cells)
    return upper_tail(statistic, len(cells) - 1)


def upper_tail(statistic: float, freedom: int) -> float:
    """P(X >= statistic) for a chi-square with `freedom` degrees of freedom.

    The regularised incomplete gamma function Q(a, x), by its series below a + 1 and by its
    continued fraction above (Lentz). Abramowitz and Stegun 6.5.29 and 6.5.31.
    """
    a, x = freedom / 2, statistic / 2
    if x <= 0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while abs(term) > abs(total) * 1e-15:
            n += 1
            term *= x / n
            total += term
        return max(0.0, 1 - scale * total)
    b = x + 1 - a
    c, d = 1e300, 1 / b
    fraction = d
    for i in range(1, 1000):
        step = -i * (i - a)
        b += 2
        d = 1 / (step * d + b)
        c = b + step / c
        fraction *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return scale * fraction


def holm(values: Sequence[float], level: float) -> bool:
    """Is any of these p-values significant at `level`, all of them together?"""
    ordered = sorted(values)
    return bool(ordered) and ordered[0] * len(ordered) < level
