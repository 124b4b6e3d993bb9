"""One row -> one distribution, against a slow and obvious reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from toy import PLAIN

from specdec_cli.core.distribution import Distribution, Row, distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.errors import EvaluationError, UsageError

SIZES = (1, 2, 63, 64, 65, 127, 128, 129, 192, 5000, 49152)  # around the strips of the top-k search


def reference(row: Row, options: SamplingOptions, history: Sequence[int]) -> dict[int, float]:
    """The same law with sorted lists and dictionaries; penalties in float32 as llama.cpp's."""
    logits = [np.float32(value) for value in row]
    for token, bias in options.logit_bias:
        logits[token] = np.float32(logits[token] + np.float32(bias))
    window = list(history)
    if options.penalty_last_n >= 0:
        window = window[max(0, len(window) - options.penalty_last_n) :]
    for token in set(window):
        factor = np.float32(options.repeat_penalty)
        value = logits[token] * factor if logits[token] <= 0 else logits[token] / factor
        value -= np.float32(window.count(token)) * np.float32(options.frequency_penalty)
        logits[token] = value - np.float32(options.presence_penalty)
    best = max(logits)
    if options.temp == 0:
        return {logits.index(best): 1.0}
    ranked = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    if options.top_k:
        ranked = ranked[: options.top_k]
    shifted = {token: float(logits[token]) - float(best) for token in ranked}
    if options.top_p < 1:
        total, share, kept = math.fsum(map(math.exp, shifted.values())), 0.0, []
        for token in ranked:
            kept.append(token)
            share += math.exp(shifted[token]) / total
            if share >= options.top_p:
                break
        ranked = kept
    if options.min_p > 0:
        ranked = [token for token in ranked if shifted[token] >= math.log(options.min_p)]
    weights = {token: math.exp(shifted[token] / options.temp) for token in sorted(ranked)}
    total = math.fsum(weights.values())
    return {token: weight / total for token, weight in weights.items() if weight > 0}


def same(law: Distribution, expected: dict[int, float]) -> bool:
    return law.ids.tolist() == list(expected) and np.allclose(
        law.probs, list(expected.values()), rtol=1e-9, atol=0
    )


def row_of(seed: int, size: int) -> Row:
    return np.random.default_rng(seed).normal(0, 3, size).astype(np.float32)


coarse = st.integers(-6, 6).map(lambda level: level / 2)  # ties on purpose
# Where exp cannot tell two logits apart, either may be the one that is left out.
apart = st.floats(-30, 30, width=32).filter(lambda value: value == 0 or abs(value) > 1e-6)
entries = st.one_of(coarse, apart, st.just(-math.inf))
all_options = st.builds(
    SamplingOptions,
    temp=st.sampled_from([0.0, 0.05, 0.7, 1.0, 3.0]),
    top_k=st.integers(0, 9),
    top_p=st.sampled_from([0.01, 0.5, 0.937, 1.0]),
    min_p=st.sampled_from([0.0, 0.0503, 0.61, 1.0]),
    repeat_penalty=st.sampled_from([0.7, 1.0, 1.3]),
    presence_penalty=st.sampled_from([-0.3, 0.0, 1.1]),
    frequency_penalty=st.sampled_from([-0.2, 0.0, 0.7]),
    penalty_last_n=st.sampled_from([-1, 0, 1, 3, 64]),
    logit_bias=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([-math.inf, -2.5, 1.7])), max_size=3
    ).map(tuple),
)


@given(
    values=st.lists(entries, min_size=4, max_size=24),
    options=all_options,
    history=st.lists(st.integers(0, 3), max_size=8),
)
@example(  # so close to the best that exp cannot tell: the best must still win
    values=[-math.inf, -1e-38, 0.0, -math.inf],
    options=SamplingOptions(temp=1.0, top_k=0, top_p=0.01, min_p=1.0),
    history=[],
)
@settings(max_examples=400, deadline=None)
def test_it_is_the_reference_for_every_option(
    values: list[float], options: SamplingOptions, history: list[int]
) -> None:
    row = np.array(values, dtype=np.float32)
    banned = {token for token, bias in options.logit_bias if bias == -math.inf}
    if all(token in banned or value == -math.inf for token, value in enumerate(values)):
        return
    before = row.copy()
    law = distribution(row, options, history)
    assert np.array_equal(row, before)
    assert law.ids.dtype == np.int64
    assert law.probs.dtype == np.float64
    assert (np.diff(law.ids) > 0).all()
    assert (law.probs > 0).all()
    assert law.probs.sum() == pytest.approx(1.0, abs=1e-12)
    expected = reference(row, options, history)
    if options.top_p == 1.0:
        assert same(law, expected)
    else:  # a share that equals top_p up to rounding may fall on either side
        assert len(law.ids) - len(expected) in (-1, 0, 1)
        assert same(law, expected) or _on_the_edge(row, options, history)


def _on_the_edge(row: Row, options: SamplingOptions, history: Sequence[int]) -> bool:
    wider = replace(options, top_p=options.top_p + 1e-9)
    closer = replace(options, top_p=options.top_p - 1e-9)
    return reference(row, wider, history) != reference(row, closer, history)


@pytest.mark.parametrize("size", SIZES)
def test_top_k_keeps_the_largest_and_of_equals_the_lowest_ids(size: int) -> None:
    smooth, stepped = row_of(1, size), np.round(row_of(2, size))
    level = np.zeros(size, dtype=np.float32)
    ramp = np.arange(size, dtype=np.float32)
    tail = np.concatenate([level[:-1], [5]]).astype(np.float32)  # the best in the cut-off strip
    for row in (smooth, stepped, level, ramp, -ramp, tail):
        for k in (1, 2, 31, 32, 40, size - 1, size, size + 1):
            if k < 1:
                continue
            law = distribution(row, replace(PLAIN, top_k=k, temp=1e6), ())
            best = np.argsort(-row, kind="stable")[:k]
            assert law.ids.tolist() == sorted(best.tolist())


@pytest.mark.parametrize("top_p", [0.1, 0.5, 0.9, 0.95, 0.999, 0.9999999])
@pytest.mark.parametrize("size", [2, 63, 5000, 49152])
def test_top_p_keeps_the_smallest_nucleus(size: int, top_p: float) -> None:
    row = row_of(3, size)
    law = distribution(row, replace(PLAIN, top_p=top_p), ())
    shares = distribution(row, PLAIN, ()).probs
    kept = np.sort(shares[law.ids])[::-1]
    assert kept.sum() >= top_p - 1e-12
    assert kept[:-1].sum() < top_p  # one fewer is not enough
    dropped = np.delete(shares, law.ids)
    assert len(dropped) == 0 or dropped.max() <= kept.min()


def test_of_equal_shares_the_nucleus_takes_the_lowest_ids() -> None:
    row = np.array([0, 2, 0, 2, 2, 0], dtype=np.float32)
    law = distribution(row, replace(PLAIN, top_p=0.5), ())
    assert law.ids.tolist() == [1, 3]


@pytest.mark.parametrize("min_p", [0.001, 0.05, 0.5, 1.0])
def test_min_p_measures_against_the_best_before_the_temperature(min_p: float) -> None:
    row = row_of(4, 5000)
    for temp in (0.3, 1.0, 4.0):
        law = distribution(row, replace(PLAIN, min_p=min_p, temp=temp), ())
        shares = np.exp(row.astype(np.float64) - float(row.max()))
        assert law.ids.tolist() == np.flatnonzero(shares >= min_p).tolist()


def test_filters_see_what_the_filters_before_them_left() -> None:
    """top-p after top-k: the share is of the survivors. Temperature last: it moves no border."""
    row = np.log(np.array([0.4, 0.3, 0.2, 0.1])).astype(np.float32)
    assert distribution(row, replace(PLAIN, top_p=0.55), ()).ids.tolist() == [0, 1]
    two_thirds = distribution(row, replace(PLAIN, top_k=2, top_p=0.55), ())
    assert two_thirds.ids.tolist() == [0]
    hot = distribution(row, replace(PLAIN, top_k=3, top_p=0.7, min_p=0.7, temp=50.0), ())
    assert hot.ids.tolist() == [0, 1]
    assert hot.probs == pytest.approx([0.5, 0.5], abs=0.01)


def test_the_window_of_penalties_counts_back_from_the_last_token() -> None:
    row = np.zeros(4, dtype=np.float32)
    options = replace(PLAIN, frequency_penalty=1.0, penalty_last_n=2)
    law = distribution(row, options, [0, 1, 1, 2])
    weights = np.exp([0, -1, -1, 0])
    assert law.probs == pytest.approx(weights / weights.sum())
    everything = distribution(row, replace(options, penalty_last_n=-1), [0, 1, 1, 2])
    weights = np.exp([-1, -2, -1, 0])
    assert everything.probs == pytest.approx(weights / weights.sum())
    assert same(
        distribution(row, replace(options, penalty_last_n=0), [1]), dict.fromkeys(range(4), 0.25)
    )


def test_greedy_is_the_lowest_id_among_the_best_after_penalties() -> None:
    row = np.array([1, 3, 3, 2], dtype=np.float32)
    greedy = SamplingOptions(temp=0.0)
    assert distribution(row, greedy, ()).ids.tolist() == [1]
    assert distribution(row, replace(greedy, repeat_penalty=1.1), [1]).ids.tolist() == [2]
    assert distribution(row, replace(greedy, logit_bias=((3, 5.0),)), ()).ids.tolist() == [3]


def test_a_cold_temperature_leaves_no_zero_in_the_support() -> None:
    law = distribution(row_of(5, 5000), replace(PLAIN, temp=0.01), ())
    assert 0 < len(law.ids) < 5000
    assert (law.probs > 0).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("options", [PLAIN, SamplingOptions(), SamplingOptions(temp=0.0)])
def test_a_row_without_a_usable_number_is_an_error(size: int, options: SamplingOptions) -> None:
    nan = row_of(6, size)
    nan[size // 2] = np.nan
    for row in (nan, np.full(size, -np.inf, dtype=np.float32)):
        with pytest.raises(EvaluationError, match="no token is left"):
            distribution(row, options, ())


def test_a_bias_that_bans_everything_is_an_error() -> None:
    bias = tuple((token, -math.inf) for token in range(3))
    with pytest.raises(EvaluationError):
        distribution(np.zeros(3, dtype=np.float32), replace(PLAIN, logit_bias=bias), ())


@pytest.mark.parametrize(
    ("option", "values"),
    {
        "temp": [-0.1, math.inf, math.nan],
        "top_k": [-1],
        "top_p": [0.0, -1.0, 1.01, math.nan],
        "min_p": [-0.01, 1.01, math.nan],
        "repeat_penalty": [0.0, -1.0, math.inf, math.nan],
        "presence_penalty": [math.inf, math.nan],
        "frequency_penalty": [-math.inf, math.nan],
        "penalty_last_n": [-2],
        "logit_bias": [((-1, 0.0),), ((0, math.inf),), ((0, math.nan),)],
    }.items(),
)
def test_a_value_outside_its_range_is_named_as_the_command_line_spells_it(
    option: str, values: list
) -> None:
    for value in values:
        with pytest.raises(UsageError, match="--" + option.replace("_", "-")) as caught:
            SamplingOptions(**{option: value})
        assert caught.value.why


@given(st.dictionaries(st.integers(0, 30), st.floats(0.01, 1), min_size=1), st.data())
def test_probabilities_are_looked_up_by_id(weights: dict[int, float], data: st.DataObject) -> None:
    ids = np.array(sorted(weights))
    law = Distribution(ids, np.array([weights[token] for token in ids.tolist()]))
    asked = np.array(sorted(data.draw(st.sets(st.integers(0, 31)))), dtype=np.int64)
    expected = [weights.get(token, 0.0) for token in asked.tolist()]
    assert law.probs_of(asked).tolist() == expected
    assert [law.prob(token) for token in asked.tolist()] == expected
    assert law.probs_of(ids.copy()).tolist() == law.probs.tolist()


def test_a_point_is_certain() -> None:
    point = Distribution.point(7)
    assert (point.prob(7), point.prob(6), point.prob(8)) == (1.0, 0.0, 0.0)
