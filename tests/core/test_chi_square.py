"""Pearson's test: its tail against closed forms, and how often it cries wolf."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from specdec_cli.core.chi_square import holm, p_value, upper_tail
from specdec_cli.core.distribution import Distribution


@pytest.mark.parametrize("x", [0.01, 0.5, 2.0, 9.0, 40.0, 300.0])
def test_the_tail_is_the_closed_form(x: float) -> None:
    assert upper_tail(x, 1) == pytest.approx(math.erfc(math.sqrt(x / 2)), rel=1e-9)
    for half in (1, 2, 5, 40):  # an even number of degrees of freedom: a Poisson sum
        terms = [math.exp(k * math.log(x / 2) - x / 2 - math.lgamma(k + 1)) for k in range(half)]
        assert upper_tail(x, 2 * half) == pytest.approx(math.fsum(terms), rel=1e-9)


def test_many_degrees_of_freedom_are_nearly_normal() -> None:
    for freedom in (200, 700, 3000):
        for sigma in (-2.0, 0.0, 3.0):
            root = 1 - 2 / (9 * freedom) + sigma * math.sqrt(2 / (9 * freedom))
            expected = math.erfc(sigma / math.sqrt(2)) / 2  # Wilson and Hilferty 1931
            assert upper_tail(freedom * root**3, freedom) == pytest.approx(expected, rel=0.02)


LAWS = {
    "flat": np.full(20, 1 / 20),
    "one rare token": np.array([0.6, 0.39999, 0.00001]),
    "a long tail": 0.5 ** np.arange(1, 31) / (1 - 0.5**30),
}


@pytest.mark.parametrize("name", LAWS)
def test_draws_from_the_law_itself_are_rarely_significant(name: str) -> None:
    """2000 experiments with a fixed seed; a cell that expects 0.01 draws must not decide one."""
    law = Distribution(np.arange(len(LAWS[name])), LAWS[name])
    generator = np.random.default_rng(1)
    tables = generator.multinomial(1000, LAWS[name], size=2000)
    values = np.array([p_value(Counter(dict(enumerate(row.tolist()))), law) for row in tables])
    for level, most in ((0.05, 145), (0.001, 9), (1e-5, 1)):
        assert (values < level).sum() <= most


def test_draws_from_another_law_are_significant() -> None:
    law = Distribution(np.arange(3), np.array([0.5, 0.3, 0.2]))
    assert p_value(Counter({0: 500, 1: 300, 2: 200}), law) == pytest.approx(1.0)
    assert p_value(Counter({0: 440, 1: 330, 2: 230}), law) < 0.001
    assert p_value(Counter({0: 500, 1: 300, 2: 199, 7: 1}), law) == 0.0  # impossible


def test_holm_asks_more_of_many_arms() -> None:
    assert holm([0.0009], 0.001)
    assert not holm([0.0009, 0.5], 0.001)
    assert not holm([], 0.001)
