"""How many guesses are worth it: the shipped search against trying every length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_cli.core.policy import (
    LOOK_AHEAD,
    Seconds,
    Worth,
    best_known,
    best_unknown,
    one_more,
    plain,
)

MOST = 8
NEARLY = 1e-9

chances = st.floats(0, 1)
rates = st.floats(0, 40)
steps = st.lists(st.floats(0, 0.2), min_size=40, max_size=40)  # what each further row adds


def rising(first: float, further: Sequence[float]) -> Seconds:
    """A cost curve that never falls, with steps wherever there are any."""
    costs = [0.0, *accumulate(further, initial=first)]
    return lambda rows: costs[rows]


curves = st.builds(rising, st.floats(0.01, 0.2), steps)


def straight(rows: int) -> float:
    return 0.1 + 0.02 * (rows - 1)


def staircase(rows: int) -> float:
    """Kernels of four rows: the fifth costs as much again, the next three nothing."""
    return 0.1 * (1 + (rows - 1) // 4)


def known(chance: Sequence[float], count: int, verify: Seconds) -> Worth:
    tokens, stands = 1.0, 1.0
    for each in chance[:count]:
        stands *= each
        tokens += stands
    return Worth(count, tokens, verify(count + 1))


def unknown(
    first: float, later: float, count: int, draft: Seconds, behind: float, verify: Seconds
) -> Worth:
    tokens = 1 + sum(first * later**i for i in range(count))
    drafting = behind + (count - 1) * draft(1) if count else 0.0
    return Worth(count, tokens, drafting + verify(count + 1))


@given(st.lists(chances, max_size=MOST), curves, rates)
def test_of_known_guesses_no_other_number_is_worth_more(
    chance: list[float], verify: Seconds, rate: float
) -> None:
    found = best_known(chance, verify, rate)
    tried = [known(chance, count, verify) for count in range(len(chance) + 1)]
    assert found.over(rate) == pytest.approx(max(worth.over(rate) for worth in tried), abs=NEARLY)
    same = tried[found.guesses]
    assert (found.tokens, found.seconds) == pytest.approx((same.tokens, same.seconds))


@given(chances, chances, st.integers(0, MOST), curves, st.floats(0, 0.5), curves, rates)
def test_of_guesses_to_come_no_other_number_is_worth_more(
    first: float, later: float, most: int, draft: Seconds, behind: float, verify: Seconds,
    rate: float,
) -> None:  # fmt: skip
    found = best_unknown(first, later, most, draft, behind, verify, rate)
    tried = [unknown(first, later, count, draft, behind, verify) for count in range(most + 1)]
    assert found.over(rate) == pytest.approx(max(worth.over(rate) for worth in tried), abs=NEARLY)
    same = tried[found.guesses]
    assert (found.tokens, found.seconds) == pytest.approx((same.tokens, same.seconds))


@given(chances, chances, st.integers(1, MOST), st.integers(0, 20), curves, curves, rates)
def test_one_more_is_drawn_if_any_number_of_further_guesses_pays(
    stands: float, later: float, drawn: int, further: int, draft: Seconds, verify: Seconds,
    rate: float,
) -> None:  # fmt: skip
    def gain(count: int) -> float:
        won = sum(stands * later**i for i in range(1, count + 1))
        spent = count * draft(1) + verify(drawn + 1 + count) - verify(drawn + 1)
        return won - rate * spent

    gains = [gain(count) for count in range(1, min(further, LOOK_AHEAD) + 1)]
    found = one_more(stands, later, drawn, drawn + further, draft, verify, rate)
    best = max(gains, default=-1.0)
    if abs(best) > NEARLY:  # at a tie floats decide
        assert found == (best > 0)


@given(st.lists(chances, max_size=MOST), curves, rates, st.floats(1, 3))
def test_a_higher_rate_never_asks_for_more_guesses(
    chance: list[float], verify: Seconds, rate: float, factor: float
) -> None:
    few, many = (best_known(chance, verify, each).guesses for each in (rate * factor, rate))
    assert few <= many or known(chance, few, verify).over(rate) == pytest.approx(
        known(chance, many, verify).over(rate), abs=NEARLY
    )


@given(st.lists(chances, min_size=1, max_size=MOST), chances, curves, rates)
def test_surer_guesses_are_never_worth_less(
    chance: list[float], share: float, verify: Seconds, rate: float
) -> None:
    surer = [each + share * (1 - each) for each in chance]
    low, high = (best_known(each, verify, rate).over(rate) for each in (chance, surer))
    assert high >= low - NEARLY


@given(chances, chances, chances, curves, curves, rates)
def test_a_likelier_source_is_never_worth_less(
    first: float, later: float, share: float, draft: Seconds, verify: Seconds, rate: float
) -> None:
    worth = [
        best_unknown(each, later, MOST, draft, draft(2), verify, rate).over(rate)
        for each in (first, first + share * (1 - first))
    ]
    assert worth[1] >= worth[0] - NEARLY


def test_a_stop_is_final_the_less_likely_it_is_that_what_was_drawn_stands() -> None:
    asked = [
        one_more(stands / 20, 0.8, 2, 8, lambda rows: 0.01, straight, 10.0) for stands in range(21)
    ]
    assert asked == sorted(asked)
    assert len(set(asked)) == 2


def test_a_step_is_taken_where_the_whole_flight_pays() -> None:
    """Four rows are full; the next alone costs a whole step, four more share it."""

    def draft(rows: int) -> float:
        return 0.001

    alone = one_more(0.95, 0.95, 3, 4, draft, staircase, 11.0)
    flight = one_more(0.95, 0.95, 3, 7, draft, staircase, 11.0)
    assert (alone, flight) == (False, True)
    assert best_known([0.95] * 4, staircase, 11.0).guesses == 3
    assert best_known([0.95] * 7, staircase, 11.0).guesses == 7


def test_steps_are_filled_and_no_row_behind_them_is_started() -> None:
    found = {best_known([0.7] * 12, staircase, rate).guesses for rate in range(1, 30)}
    assert found <= {3, 7, 11, 12}


def test_nothing_is_worth_it_where_nothing_stands_or_nothing_may_be_guessed() -> None:
    assert best_known([0.0] * 4, straight, 10.0) == plain(straight)
    assert best_known([], straight, 10.0) == plain(straight)
    assert best_unknown(1.0, 1.0, 0, straight, 0.0, straight, 10.0) == plain(straight)
    assert not one_more(1.0, 1.0, 4, 4, lambda rows: 0.0, straight, 10.0)


def test_what_it_costs_to_catch_up_decides() -> None:
    def found(behind: float) -> int:
        return best_unknown(0.8, 0.8, 8, lambda rows: 0.01, behind, straight, 10.0).guesses

    asked = [found(behind / 100) for behind in range(0, 40, 2)]
    assert asked[0] > 0
    assert asked[-1] == 0
    assert all(after in (before, 0) for before, after in pairwise(asked))
