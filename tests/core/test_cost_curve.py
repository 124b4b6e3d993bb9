"""Cost curves between and beyond their points, and the formula against played-out rounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_cli.core.cost_curve import CostCurve, break_even, speedup

FLAT = CostCurve({1: 1.0})
VERIFY = CostCurve({1: 1.0, 2: 1.1, 4: 1.4, 5: 1.45, 8: 1.7, 16: 2.5})
DRAFT = CostCurve({1: 0.2, 2: 0.23})

points = st.dictionaries(st.integers(1, 40), st.floats(0.01, 9), min_size=1, max_size=6)


def test_between_points_it_is_straight_and_at_them_exact() -> None:
    curve = CostCurve({8: 3.0, 1: 1.0, 4: 2.0})
    assert [curve(rows) for rows in (1, 4, 8)] == [1.0, 2.0, 3.0]
    assert curve(6) == pytest.approx(2.5)
    assert curve(2) == pytest.approx(4 / 3)


def test_beyond_the_last_point_it_goes_on_as_steeply_and_before_the_first_it_is_level() -> None:
    curve = CostCurve({2: 1.0, 4: 2.0, 8: 3.0})
    assert curve(12) == pytest.approx(4.0)
    assert curve(1) == 1.0
    assert FLAT(50) == 1.0


def test_it_never_falls_below_its_last_point() -> None:
    noisy = CostCurve({1: 1.0, 15: 3.1, 16: 2.9})
    assert noisy(16) == noisy(17) == noisy(100) == 2.9


@given(points, st.integers(1, 100))
def test_it_stays_within_its_points_as_far_as_they_go(
    measured: dict[int, float], rows: int
) -> None:
    seconds = CostCurve(measured)(rows)
    assert seconds >= min(measured.values()) * (1 - 1e-12)
    if rows <= max(measured):
        assert seconds <= max(measured.values()) * (1 + 1e-12)


def test_no_points_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        CostCurve({})


def test_a_perfect_free_source_gains_what_the_rows_leave() -> None:
    assert speedup(VERIFY, None, 3, 1.0) == pytest.approx(4 / 1.4)
    assert speedup(VERIFY, None, 3, 0.0) == pytest.approx(1 / 1.4)
    assert speedup(VERIFY, DRAFT, 0, 0.7) == 1.0


def test_after_a_round_accepted_whole_the_draft_reads_two_tokens() -> None:
    assert speedup(VERIFY, DRAFT, 3, 1.0) == pytest.approx(4 / (0.23 + 0.4 + 1.4))
    assert speedup(VERIFY, DRAFT, 3, 0.0) == pytest.approx(1 / (0.6 + 1.4))


@pytest.mark.parametrize(("k", "acceptance"), [(1, 0.5), (3, 0.8), (7, 0.95), (4, 0.1)])
def test_the_formula_is_the_mean_of_many_rounds(k: int, acceptance: float) -> None:
    """Rounds are played with a draft that remembers which tokens it has read."""
    generator = np.random.default_rng(k)
    dear = CostCurve({1: 0.2, 2: 0.35})  # so that the second token can be seen
    known = read = 0
    seconds = 0.0
    for _ in range(40_000):
        seconds += dear(known - read if known > read else 1) + (k - 1) * dear(1) + VERIFY(k + 1)
        wrong = np.flatnonzero(generator.random(k) >= acceptance)
        accepted = int(wrong[0]) if len(wrong) else k
        read = min(known + k - 1, known + accepted)
        known += accepted + 1
    assert known * VERIFY(1) / seconds == pytest.approx(
        speedup(VERIFY, dear, k, acceptance), rel=0.01
    )


@given(st.integers(1, 16), st.floats(0, 1), st.floats(0, 1))
def test_more_acceptance_is_never_slower(k: int, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert speedup(VERIFY, DRAFT, k, low) <= speedup(VERIFY, DRAFT, k, high) * (1 + 1e-12)


@pytest.mark.parametrize("draft", [DRAFT, None])
@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_at_break_even_nothing_is_gained_or_lost(k: int, draft: CostCurve | None) -> None:
    acceptance = break_even(VERIFY, draft, k)
    assert acceptance is not None
    assert 0 < acceptance < 1
    assert speedup(VERIFY, draft, k, acceptance) == pytest.approx(1.0)


def test_break_even_of_one_guess_by_hand() -> None:
    # (1 + p) * 1 = 0.2 + 0.03 p + 1.1
    assert break_even(VERIFY, DRAFT, 1) == pytest.approx(0.3 / 0.97)


def test_a_target_that_is_dear_in_rows_has_no_break_even() -> None:
    dear = CostCurve({1: 1.0, 2: 1.9, 4: 3.2, 5: 4.1, 8: 6.5})
    assert break_even(dear, CostCurve({1: 0.35}), 4) is None
    assert break_even(dear, None, 1) == pytest.approx(0.9)


def test_guesses_that_cost_nothing_at_all_break_even_at_once() -> None:
    assert break_even(FLAT, None, 5) == 0.0
