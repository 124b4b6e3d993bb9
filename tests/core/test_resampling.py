"""Speed-ups and their intervals: cases worked out by hand, and how often the truth is inside."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_cli.core.resampling import (
    geometric_mean,
    overall_interval,
    overall_speedup,
    speedup,
    speedup_interval,
)

ratios = st.lists(st.lists(st.floats(0.1, 10), max_size=4), max_size=5)


def test_twice_as_fast_and_half_as_fast_cancel_out() -> None:
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    assert speedup([[2.0], [0.5]]) == pytest.approx(1.0)


def test_a_prompt_counts_once_with_the_median_of_its_repetitions() -> None:
    assert speedup([[1.0, 2.0, 50.0], [8.0]]) == pytest.approx(4.0)
    assert speedup([[1.0, 3.0]]) == pytest.approx(2.0)  # between the middle two
    assert speedup([[], [3.0]]) == pytest.approx(3.0)


def test_a_category_counts_once_whatever_its_number_of_prompts() -> None:
    assert overall_speedup([[[2.0]] * 9, [[8.0]], []]) == pytest.approx(4.0)


@pytest.mark.parametrize("nothing", [[], [[]], [[], []]])
def test_without_a_ratio_there_is_no_speedup(nothing: list[list[float]]) -> None:
    assert speedup(nothing) is None
    assert overall_speedup([nothing]) is None
    assert speedup_interval(nothing) is None
    assert overall_interval([nothing]) is None


def test_a_single_ratio_has_no_interval() -> None:
    assert speedup_interval([[1.5]]) is None
    assert speedup_interval([[], [1.5]]) is None
    assert overall_interval([[[1.5, 1.6]], [[1.5]]]) is None
    assert overall_interval([[[1.5, 1.6]], []]) == speedup_interval([[1.5, 1.6]])


def test_ratios_that_agree_leave_no_doubt() -> None:
    assert speedup_interval([[1.5] * 3] * 4) == pytest.approx((1.5, 1.5))
    assert overall_interval([[[2.0] * 2], [[8.0]] * 3]) == pytest.approx((4.0, 4.0))


def test_two_prompts_give_the_range_between_them() -> None:
    assert speedup_interval([[2.0], [8.0]]) == pytest.approx((2.0, 8.0))


def test_repetitions_of_one_prompt_give_the_range_of_their_medians() -> None:
    assert speedup_interval([[2.0, 8.0]]) == pytest.approx((2.0, 8.0))


def test_repetitions_are_drawn_within_their_prompt() -> None:
    """Not from all ratios: prompts that agree leave only what each one's repetitions vary."""
    low, high = speedup_interval([[1.0, 1.0, 4.0]] * 50) or (0, 0)
    assert 1.0 <= low < high < 2.5  # all 150 mixed up as prompts of their own: 1.59
    one_value = speedup_interval([[1.0], [1.0], [4.0]] * 50) or (0, 0)
    assert one_value[0] > 1.3


def test_prompts_with_few_repetitions_are_drawn_as_they_are() -> None:
    """The places that a shorter prompt does not fill must never be drawn."""
    low, high = speedup_interval([[2.0], [2.0, 2.0, 2.0], [2.0, 2.0]]) or (0, 0)
    assert (low, high) == pytest.approx((2.0, 2.0))
    low, high = speedup_interval([[1.0], [9.0, 9.0, 9.0, 9.0]]) or (0, 0)
    assert (low, high) == pytest.approx((1.0, 9.0))


def test_a_prompt_is_drawn_as_often_as_it_was_repeated() -> None:
    """Two draws from (2, 8) have the medians 2, 5, 5, 8; a third draw would pull them down."""
    low, high = speedup_interval([*[[2.0, 8.0]] * 30, [5.0, 5.0, 5.0]]) or (0, 0)
    assert math.sqrt(low * high) == pytest.approx((2 * 5 * 5 * 8) ** 0.25, rel=0.02)


@given(ratios, st.integers(0, 3))
def test_an_interval_lies_within_the_ratios_and_is_repeatable(
    measured: list[list[float]], seed: int
) -> None:
    interval = speedup_interval(measured, resamples=50, seed=seed)
    values = [value for prompt in measured for value in prompt]
    assert (interval is None) == (len(values) < 2)
    if interval:
        assert min(values) * (1 - 1e-9) <= interval[0] <= interval[1] <= max(values) * (1 + 1e-9)
        assert interval == speedup_interval(measured, resamples=50, seed=seed)


@given(ratios, st.floats(0.5, 2))
def test_a_machine_twice_as_fast_moves_the_interval_alone(
    measured: list[list[float]], factor: float
) -> None:
    scaled = [[factor * value for value in prompt] for prompt in measured]
    before, after = (speedup_interval(each, resamples=50) for each in (measured, scaled))
    if before:
        assert after == pytest.approx([factor * end for end in before])


def synthetic(
    generator: np.random.Generator,
    prompts: int,
    repetitions: int,
    *,
    between: float,
    within: float = 0.05,
    middle: float = 0.4,
) -> list[list[float]]:
    """Ratios around e^middle that spread between prompts and within one."""
    centres = middle + between * generator.standard_normal((prompts, 1))
    noise = within * generator.standard_normal((prompts, repetitions))
    return np.exp(centres + noise).tolist()


@pytest.mark.parametrize(
    ("prompts", "repetitions", "between"),
    [(6, 1, 0.2), (6, 3, 0.2), (6, 3, 0.02), (10, 2, 0.3), (30, 3, 0.1), (1, 7, 0.0)],
)
def test_about_95_of_100_intervals_hold_the_truth(
    prompts: int, repetitions: int, between: float
) -> None:
    generator = np.random.default_rng(4)
    held = 0
    for _ in range(200):
        measured = synthetic(generator, prompts, repetitions, between=between)
        low, high = speedup_interval(measured, resamples=1000) or (0, 0)
        held += low <= math.exp(0.4) <= high
    assert 0.90 * 200 <= held <= 0.995 * 200


@pytest.mark.parametrize(("prompts", "repetitions"), [(2, 1), (2, 3), (6, 2)])
def test_so_do_those_of_the_mean_over_categories(prompts: int, repetitions: int) -> None:
    generator = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        categories = [
            synthetic(generator, prompts, repetitions, between=0.2, middle=middle / 10)
            for middle in range(8)
        ]
        low, high = overall_interval(categories, resamples=1000) or (0, 0)
        held += low <= math.exp(0.35) <= high
    assert 0.90 * 200 <= held <= 0.995 * 200


def test_a_lower_level_and_more_prompts_make_it_narrower() -> None:
    generator = np.random.default_rng(6)
    few, many = (synthetic(generator, count, 3, between=0.2) for count in (8, 80))
    width = [
        math.log(high / low)
        for interval in (
            speedup_interval(few),
            speedup_interval(few, level=0.5),
            speedup_interval(many),
        )
        for low, high in [interval or (0, 0)]
    ]
    assert width[1] < width[0] / 2
    assert width[2] < width[0] / 2
