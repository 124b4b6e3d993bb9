"""The noise behind every draw: uniform, independent over whatever it is keyed by, in float64."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import PLAIN, Policy, random_model

from specdec_cli.core import chance
from specdec_cli.core.chance import (
    ACCEPT,
    CHOOSE,
    DRAW,
    SHARED,
    Independent,
    SharedNoise,
    gumbel,
    uniform,
)
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.verification import RULES
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafters import ModelDrafter
from specdec_cli.engine.enumeration import PROMPT

SEEDS = (0, 1, 2, 42, 2**32, 2**63 - 1, -1)


def kolmogorov(sample: np.ndarray) -> float:
    """sqrt(n) times the largest distance to the uniform cdf; above 1.95 with p = 0.001."""
    size = len(sample)
    ordered = np.sort(sample)
    above = np.arange(1, size + 1) / size - ordered
    return float(np.sqrt(size) * max(above.max(), (1 / size - above).max()))


def level(noise: np.ndarray) -> np.ndarray:
    """Gumbel noise back to the uniform numbers it came from."""
    return np.exp(-np.exp(-noise))


@pytest.mark.parametrize("seed", SEEDS)
def test_gumbel_noise_has_the_gumbel_law(seed: int) -> None:
    over_ids = gumbel(seed, 7, np.arange(50_000))
    over_positions = np.array([gumbel(seed, at, np.array([3]))[0] for at in range(3000)])
    assert kolmogorov(level(over_ids)) < 1.95
    assert kolmogorov(level(over_positions)) < 1.95


@pytest.mark.parametrize("purpose", [DRAW, ACCEPT, CHOOSE])
def test_uniform_numbers_are_uniform_over_seeds_starts_and_positions(purpose: int) -> None:
    by_seed = [uniform(seed, purpose, 5, 6) for seed in range(4000)]
    by_start = [uniform(1, purpose, start, 4000) for start in range(4000)]
    by_position = [uniform(1, purpose, 5, position) for position in range(4000)]
    for sample in (by_seed, by_start, by_position):
        assert kolmogorov(np.array(sample)) < 1.95


def correlations(rows: np.ndarray) -> np.ndarray:
    """Correlation of every pair of rows, in standard deviations."""
    matrix = np.corrcoef(rows)
    return matrix[np.triu_indices(len(rows), 1)] * np.sqrt(rows.shape[1])


@pytest.mark.parametrize(
    "keys",
    [
        [(seed, 9) for seed in range(40)],
        [(3, position) for position in range(40)],
        [(seed + step, 100 - step) for seed in (0, 1000) for step in range(20)],
        [(1 << bit, 1 << bit) for bit in range(40)],
    ],
    ids=["adjacent seeds", "adjacent positions", "seed + 1, position - 1", "single bits"],
)
def test_noise_of_neighbouring_keys_is_uncorrelated(keys: Sequence[tuple[int, int]]) -> None:
    rows = np.stack([level(gumbel(seed, at, np.arange(4000))) for seed, at in keys])
    pairs = np.concatenate([correlations(rows), correlations((rows - 0.5) ** 2)])
    assert np.abs(pairs).max() < 4.7  # 1560 pairs: one in 400 tables of good noise is beyond
    assert 0.9 < pairs.std() < 1.1


def test_noise_of_neighbouring_ids_is_uncorrelated() -> None:
    rows = np.stack([level(gumbel(3, at, np.arange(40))) for at in range(4000)]).T
    assert np.abs(correlations(rows)).max() < 4.7
    one = level(gumbel(1, 1, np.arange(50_000)))
    for lag in (1, 2, 3, 64, 4096):
        assert abs(np.corrcoef(one[:-lag], one[lag:])[0, 1]) * np.sqrt(len(one) - lag) < 4


def test_no_two_keys_on_a_lattice_share_a_number() -> None:
    """Seed, position and id are not simply added up somewhere."""
    ids = np.arange(64)
    noise = [gumbel(seed, at, ids) for seed, at in product(range(-32, 32), range(64))]
    assert len(np.unique(np.concatenate(noise))) == 64**3


def test_purposes_never_share_a_number() -> None:
    places = list(product(range(8), range(12), range(12)))
    noise = [gumbel(seed, at, np.arange(12)) for seed, at in product(range(8), range(12))]
    numbers = [uniform(s, use, *at) for use in (DRAW, ACCEPT, CHOOSE) for s, *at in places]
    numbers += level(np.concatenate(noise)).tolist()
    assert SHARED not in (DRAW, ACCEPT, CHOOSE)
    assert len(np.unique(np.round(numbers, 11))) == 4 * len(places)


def test_every_bit_of_a_key_changes_half_of_the_bits() -> None:
    def bits(seed: int, position: int, token: int) -> int:
        ids = np.array([token])
        return int(level(gumbel(seed, position, ids))[0] * 2**32)

    flips = []
    for base, bit in product(range(60), range(40)):
        seed, position, token = base * 977, base * 31, base * 17
        start = bits(seed, position, token)
        flips.append(start ^ bits(seed ^ (1 << bit), position, token))
        flips.append(start ^ bits(seed, position ^ (1 << bit), token))
        flips.append(start ^ bits(seed, position, token ^ (1 << bit % 20)))
    shares = [np.mean([flip >> bit & 1 for flip in flips]) for bit in range(32)]
    assert np.abs(np.array(shares) - 0.5).max() < 4 * 0.5 / np.sqrt(len(flips))


def test_the_noise_of_an_id_does_not_depend_on_the_other_ids() -> None:
    whole = gumbel(4, 9, np.arange(1000))
    some = np.array([0, 3, 512, 999])
    assert np.array_equal(gumbel(4, 9, some), whole[some])


def test_a_number_depends_on_its_key_alone() -> None:
    """Pinned: another version of the hash would give every seed another text."""
    again = [uniform(1, ACCEPT, 2, 3), gumbel(1, 2, np.array([3]))[0]]
    assert again == [uniform(1, ACCEPT, 2, 3), gumbel(1, 2, np.array([3]))[0]]
    assert chance._hash(0) == 0xE220A8397B1DCDAF  # the first output of splitmix64 from state 0


def test_tails_reach_as_far_as_float64_does(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = gumbel(1, 1, np.arange(1_000_000))
    assert noise.dtype == np.float64
    assert len(np.unique(noise)) == len(noise)  # 24 bits would repeat thousands of times
    monkeypatch.setattr(chance, "_mix_array", lambda bits: np.array([0, chance.MASK], np.uint64))
    lowest, highest = gumbel(1, 1, np.arange(2))
    assert lowest < -3.5
    assert 34 < highest < np.inf  # a 24-bit uniform ends near 17


@pytest.mark.parametrize("bits", [0, chance.MASK])
def test_a_uniform_number_is_inside_the_open_interval(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chance, "_hash", lambda *key: bits)
    assert 0 < uniform(0) < 1


def test_independent_draws_follow_their_law() -> None:
    law = Distribution(np.array([2, 5, 9]), np.array([0.2, 0.5, 0.3]))
    for question in ("draw", "choose"):
        picks = [getattr(Independent(seed, 3), question)(4, law) for seed in range(5000)]
        ids, counts = np.unique(picks, return_counts=True)
        assert ids.tolist() == [2, 5, 9]
        sigma = np.sqrt(5000 * law.probs * (1 - law.probs))
        assert (np.abs(counts - 5000 * law.probs) < 3.5 * sigma).all()
    accepted = sum(Independent(seed, 3).accept(4, 0.3) for seed in range(5000))
    assert abs(accepted - 1500) < 3.5 * np.sqrt(5000 * 0.3 * 0.7)
    assert all(Independent(seed, 0).accept(0, 1.0) for seed in range(100))
    assert not any(Independent(seed, 0).accept(0, 0.0) for seed in range(100))


@pytest.mark.parametrize("rule", ["rejection", "block"])
def test_no_number_is_ever_used_twice_in_an_answer(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the exactness proof by enumeration takes for granted."""
    keys: list[tuple[int, ...]] = []
    real = chance.uniform

    def noted(seed: int, *key: int) -> float:
        keys.append((seed, *key))
        return real(seed, *key)

    monkeypatch.setattr(chance, "uniform", noted)
    drafter = ModelDrafter(random_model(2, 6), PLAIN, target_vocab=6, ends=frozenset())
    options = DecodeOptions(PLAIN, seed=8, max_tokens=200, ends=frozenset())
    rounds = list(decode(random_model(1, 6), Policy(drafter, 4), RULES[rule], PROMPT, options))
    assert len(rounds) > 40
    assert len(keys) == len(set(keys)) > 200


@given(st.integers(0, 2**32), st.floats(0.05, 4.0), st.integers(chance.MANY + 1, 5000))
@settings(max_examples=60, deadline=None)
def test_ruling_out_tokens_never_changes_the_choice(seed: int, width: float, size: int) -> None:
    """Over many tokens most are ruled out before a logarithm is taken; the winner never is."""
    logits = np.random.default_rng(seed).normal(size=size) * width
    probs = np.exp(logits - logits.max())
    law = Distribution(np.arange(0, 2 * size, 2), probs / probs.sum())
    for position in range(5):
        noisy = np.log(law.probs) + gumbel(seed, position, law.ids)
        assert SharedNoise(seed).choose(position, law) == law.ids[noisy.argmax()]
