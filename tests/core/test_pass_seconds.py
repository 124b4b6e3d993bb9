"""What passes cost, followed while the machine around them changes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle, islice

import pytest

from specdec_cli.core.pass_seconds import PassSeconds

POINTS = {1: 0.1, 2: 0.11, 4: 0.14, 8: 0.17, 16: 0.25}
MIXTURES = {
    "plain": [1],
    "one length": [4],
    "short drafts": [1, 2, 4],
    "long drafts": [4, 8, 6, 3],
    "now and then a long one": [1, 1, 1, 1, 8],
}
mixtures = pytest.mark.parametrize("rows", MIXTURES.values(), ids=MIXTURES)


def seconds() -> PassSeconds:
    return PassSeconds(POINTS)


def watch(known: PassSeconds, rows: Iterable[int], count: int, factor: float = 1.0) -> PassSeconds:
    """See passes that take `factor` times what was known of them at first."""
    truth = seconds()
    for each in islice(cycle(rows), count):
        known.saw(each, factor * truth(each))
    return known


def ratios(known: PassSeconds) -> list[float]:
    return [known(rows) / known(1) for rows in (2, 4, 8, 16)]


def test_what_was_measured_is_believed() -> None:
    assert [seconds()(rows) for rows in POINTS] == pytest.approx(list(POINTS.values()))
    assert POINTS[4] < seconds()(5) < POINTS[8]
    assert PassSeconds(POINTS, pace=2.0)(4) == pytest.approx(2 * POINTS[4])


@mixtures
def test_passes_that_take_as_long_as_expected_change_nothing(rows: list[int]) -> None:
    known = watch(seconds(), rows, 50)
    assert known.points == pytest.approx(POINTS | {each: seconds()(each) for each in rows[1:]})
    assert known.pace == pytest.approx(1.0)


@mixtures
@pytest.mark.parametrize("factor", [0.6, 1.5, 2.0])
def test_a_machine_that_slows_down_moves_the_pace_and_not_the_ratios(
    rows: list[int], factor: float
) -> None:
    known = seconds()
    for _ in range(12):  # at no time in between either
        watch(known, rows, 5, factor)
        for ratio, before in zip(ratios(known), ratios(seconds()), strict=True):
            assert ratio == pytest.approx(before, rel=0.25)
    assert known(rows[0]) == pytest.approx(factor * seconds()(rows[0]), rel=0.2)


def test_a_load_that_comes_and_goes_leaves_the_curve_as_it_was() -> None:
    known = seconds()
    watch(known, [1, 2, 4], 60, 2.0)
    watch(known, [1, 2, 4], 60, 1.0)
    assert ratios(known) == pytest.approx(ratios(seconds()), rel=0.06)


def test_kernels_with_other_steps_are_learned() -> None:
    """Of a curve measured at one and eight rows, what lies between was a straight line."""
    known = PassSeconds({1: 0.1, 8: 0.4})
    truth = {1: 0.1, 2: 0.1, 3: 0.1, 4: 0.1, 5: 0.38, 6: 0.38, 7: 0.4, 8: 0.4}
    for rows in islice(cycle(truth), 25 * len(truth)):
        known.saw(rows, truth[rows])
    assert [known(rows) for rows in truth] == pytest.approx(list(truth.values()), rel=0.06)


@pytest.mark.parametrize("rows", [1, 4, 200])
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_one_pass_however_strange_does_little(rows: int, factor: float) -> None:
    known = seconds()
    known.saw(rows, factor * known(rows))
    for each in (1, 2, 4, 8, 16, 32):
        assert 0.7 < known(each) / seconds()(each) < 1.4
    watch(known, [1, 2, 4, 8], 40)
    assert known(4) == pytest.approx(POINTS[4], rel=0.03)


def test_a_pass_without_duration_says_nothing() -> None:
    known = seconds()
    for nothing in (0.0, -1.0):
        known.saw(4, nothing)
    assert known.points == POINTS
    assert known.pace == 1.0


def test_long_passes_are_known_by_their_nearest_power_of_two() -> None:
    known = seconds()
    for rows in range(17, 200):
        known.saw(rows, 0.02 * rows)
    assert set(known.points) == {*POINTS, 32, 64, 128, 256}
    assert known(128) == pytest.approx(0.02 * 128, rel=0.1)
    assert known(100) == pytest.approx(0.02 * 100, rel=0.1)


def test_the_price_of_a_row_is_the_yardstick_of_the_pace() -> None:
    known = watch(seconds(), [1], 60, 1.7)
    assert known.points == POINTS
    assert known.pace == pytest.approx(1.7, rel=0.01)
