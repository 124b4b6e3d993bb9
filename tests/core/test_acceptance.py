"""How often guesses stand: what is believed, what is seen, and how fast one becomes the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_cli.core.acceptance import EDGES, PRIOR, START, WINDOW, Acceptance, Rate, bucket

PRIORS = tuple((i + 0.5) / START for i in range(START))
LOW, HIGH = 0.1, 0.99

shares = st.floats(0, 1)


def believing() -> Acceptance:
    return Acceptance.believing(PRIORS, 0.6)


def test_every_confidence_has_its_bucket() -> None:
    assert bucket(0.0) == 0
    assert bucket(1.0) == len(EDGES) == START - 1
    for i, edge in enumerate(EDGES):
        assert (bucket(edge - 1e-9), bucket(edge)) == (i, i + 1)


def test_before_anything_was_seen_the_priors_hold() -> None:
    known = believing()
    middles = [(a + b) / 2 for a, b in zip((0.0, *EDGES), (*EDGES, 1.0), strict=True)]
    assert [known.of(middle) for middle in middles] == pytest.approx(PRIORS)
    assert {known.after(each) for each in (None, *middles)} == {0.6}
    assert known.later == pytest.approx(0.6)


def test_the_first_sight_weighs_as_much_as_the_prior_allows() -> None:
    rate = Rate(0.5)
    rate.saw(1.0)
    assert rate.value == pytest.approx((1 + PRIOR * 0.5) / (1 + PRIOR))


@given(shares, st.lists(shares, max_size=200))
def test_a_rate_stays_between_what_was_believed_and_what_was_seen(
    prior: float, hits: list[float]
) -> None:
    rate = Rate(prior)
    for hit in hits:
        rate.saw(hit)
    assert min([prior, *hits]) - 1e-9 <= rate.value <= max([prior, *hits]) + 1e-9
    assert rate.seen <= WINDOW


@pytest.mark.parametrize("truth", [0.02, 0.5, 0.95])
def test_a_rate_comes_to_what_is_seen_and_follows_it_when_it_changes(truth: float) -> None:
    rate, dice = Rate(0.6), np.random.default_rng(3)
    for each in (truth, 1 - truth):
        for _ in range(400):
            rate.saw(float(dice.random() < each))
        assert rate.value == pytest.approx(each, abs=0.17)  # two deviations of 40 guesses


def test_probabilities_say_in_one_sight_what_accept_bits_say_in_many() -> None:
    rate = Rate(0.2)
    for _ in range(60):
        rate.saw(0.7)
    assert rate.value == pytest.approx(0.7, abs=0.12)  # eight guesses' worth of it is belief


def test_guesses_teach_their_own_bucket_and_what_follows_the_bucket_before_them() -> None:
    known = believing()
    for _ in range(50):
        known.saw([HIGH, LOW], [1.0, 0.0])
    assert known.of(HIGH) > 0.95
    assert known.of(LOW) < 0.15
    assert known.after(None) > 0.85
    assert known.after(HIGH) < 0.15
    assert known.after(LOW) == 0.6  # nothing ever followed a low one
    assert known.of(0.5) == pytest.approx(PRIORS[bucket(0.5)])


def test_guesses_behind_a_rejection_teach_nothing() -> None:
    known = believing()
    known.saw([HIGH, HIGH, LOW, LOW], [1.0, 0.0])
    assert [rate.seen for rate in known.stands] == [0.0] * (START - 2) + [
        pytest.approx(2, rel=0.02),
        0.0,
    ]
    assert known.follows[START].seen == 1.0
    assert known.after(LOW) == 0.6
    assert sum(rate.seen for rate in known.follows) == 2.0


def test_later_is_the_mean_over_what_was_seen_without_the_first() -> None:
    known = believing()
    for _ in range(200):
        known.saw([HIGH] * 5, [1.0, 1.0, 1.0, 1.0, 0.0])
    assert known.after(None) > 0.9
    assert known.later == pytest.approx(0.75, abs=0.06)
