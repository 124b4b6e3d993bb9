"""How fast the policy `auto` is in simulated worlds: against plain decoding, and fixed lengths."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from statistics import geometric_mean

import pytest
from simulated import (
    AS_DEAR,
    BF16,
    LARGE,
    Q4_K_M,
    Q8_0,
    SMALL,
    Curve,
    Draft,
    Play,
    World,
    best_fixed,
    guessing,
    knowing,
    plain_time,
)

from specdec_cli.core.experience import Experience, Kind
from specdec_cli.engine.first_use import BUDGET

ACCEPTANCE = (0.0, 0.3, 0.5, 0.7, 0.85, 0.95, 1.0)
SEEDS = range(1, 5)


def steps(rows: int) -> float:
    """Kernels of four rows."""
    return 0.06 * (1 + 0.6 * ((rows - 1) // 4) + 0.02 * (rows - 1))


def small(right: float) -> Draft:
    return Draft(SMALL, lambda place: right)


def low_bit(right: float) -> Draft:
    return Draft(LARGE, lambda place: right, kind=Kind.self, modest=8)


def too_dear(right: float) -> Draft:
    return Draft(AS_DEAR, lambda place: right)


SETTINGS: dict[str, tuple[Curve, Callable[[float], Draft]]] = {
    "BF16, small draft": (BF16, small),
    "BF16, low-bit copy": (BF16, low_bit),
    "BF16, too dear": (BF16, too_dear),
    "Q8_0, small draft": (Q8_0, small),
    "Q4_K_M, small draft": (Q4_K_M, small),
    "steps, small draft": (steps, small),
}
settings = pytest.mark.parametrize(("target", "draft"), SETTINGS.values(), ids=SETTINGS)


def speed(world: World, experience: Experience | None = None, length: int | None = None) -> float:
    """Against plain decoding, from the first token on."""
    process = Play(world, experience)
    return plain_time(world, length) / process.seconds(process.auto(), length)


def after_answers(world: World, count: int = 4, length: int | None = None) -> Experience:
    """What other answers of the same kind have taught."""
    experience = knowing(world)
    for seed in range(count):
        process = Play(replace(world, seed=100 + seed), experience)
        process.seconds(process.auto(), length)
    return experience


@settings
@pytest.mark.parametrize("right", ACCEPTANCE)
def test_an_answer_is_never_slower_than_plain(
    target: Curve, draft: Callable[[float], Draft], right: float
) -> None:
    speeds = []
    for seed in SEEDS:
        world = World(target, {"draft": draft(right)}, seed=seed)
        speeds.append(speed(world, after_answers(world)))
        # The very first answer pays for finding out, reading the prompt not the least of it.
        assert speed(world) >= 0.92
    assert min(speeds) >= 0.95  # one that looked, and was misled
    assert geometric_mean(speeds) >= 0.975


@settings
@pytest.mark.parametrize("right", [0.0, 0.5, 0.85, 1.0])
def test_nor_is_a_short_one_once_something_is_known(
    target: Curve, draft: Callable[[float], Draft], right: float
) -> None:
    for seed in SEEDS:
        world = World(target, {"draft": draft(right)}, seed=seed)
        assert speed(world, after_answers(world, length=16), 16) >= 0.97


@pytest.mark.parametrize("right", [0.5, 0.7, 0.85, 0.95, 1.0])
@pytest.mark.parametrize("draft", [small, low_bit])
def test_it_is_near_the_best_fixed_length_where_drafting_pays(
    draft: Callable[[float], Draft], right: float
) -> None:
    found, fixed = [], []
    for seed in SEEDS:
        world = World(BF16, {"draft": draft(right)}, seed=seed)
        found.append(speed(world, after_answers(world)))
        fixed.append(plain_time(world) / best_fixed(world)[0])  # the best for this very text
    assert geometric_mean(found) >= 0.9 * geometric_mean(fixed)


def test_noise_in_the_timings_costs_little() -> None:
    for right in (0.0, 0.5, 0.9):
        calm, noisy = [], []
        for seed in SEEDS:
            world = World(BF16, {"draft": small(right)}, seed=seed)
            calm.append(speed(world))
            noisy.append(speed(replace(world, noise=0.08)))
        assert geometric_mean(noisy) >= 0.95 * geometric_mean(calm)


@pytest.mark.parametrize("draft", [small(0), low_bit(0)], ids=["small draft", "low-bit copy"])
def test_a_collapse_in_mid_answer_costs_little(draft: Draft) -> None:
    for seed in SEEDS:
        collapsing = replace(draft, right=lambda place: 0.95 if place < 64 else 0.02)
        world = World(BF16, {"draft": collapsing}, seed=seed)
        assert speed(world) >= 0.97
        process = Play(world)
        began = place = 0.0
        for _ in process.rounds(process.auto()):
            if not began and process.place >= 64:
                began, place = process.clock(), process.place
        alone = process.clock() - began
        assert alone <= 1.2 * (world.length - place) * BF16(1)


def guesses_after(world: World, place: int) -> int:
    process = Play(world)
    count = 0
    for round in process.rounds(process.auto()):
        if process.place - len(round.emitted) >= place:
            count += len(round.proposal)
    return count


@pytest.mark.parametrize("right", [0.5, 0.7, 0.85])
def test_a_load_on_the_machine_changes_no_choices(right: float) -> None:
    calm = loaded = 0
    for seed in SEEDS:
        world = World(BF16, {"draft": small(right)}, seed=seed, length=192)
        calm += guesses_after(world, 64)
        slow = replace(world, slowed=lambda place: 2.0 if place >= 64 else 1.0)
        loaded += guesses_after(slow, 64)
        assert speed(slow) >= 0.8 * speed(world)
    assert loaded == pytest.approx(calm, rel=0.15)


@pytest.mark.parametrize(("factor", "least"), [(2.0, 1.1), (6.0, 0.93)])
def test_a_draft_that_becomes_dear_is_used_less(factor: float, least: float) -> None:
    for seed in SEEDS:
        steady = World(BF16, {"draft": small(0.85)}, seed=seed, length=256)
        slower = Draft(
            SMALL, lambda place: 0.85, slowed=lambda place: factor if place >= 64 else 1.0
        )
        world = replace(steady, drafts={"draft": slower})
        assert guesses_after(world, 64) < guesses_after(steady, 64)
        assert speed(world) >= least


def test_two_models_are_worth_about_what_the_better_one_is() -> None:
    for model, copy in ((0.9, 0.95), (0.95, 0.6), (0.3, 0.95)):
        first, later, better = [], [], []
        for seed in SEEDS:
            drafts = {"model": small(model), "self": low_bit(copy)}
            world = World(BF16, drafts, seed=seed, length=192)
            first.append(speed(world))
            later.append(speed(world, after_answers(world)))
            alone = [replace(world, drafts={name: draft}) for name, draft in drafts.items()]
            better.append(max(map(speed, alone)))
        assert geometric_mean(first) >= 0.75 * geometric_mean(better)
        assert geometric_mean(later) >= 0.88 * geometric_mean(better)


# The first answer of a pair measures.


@pytest.mark.parametrize("target", [BF16, Q8_0, Q4_K_M, steps], ids=["BF16", "Q8_0", "Q4", "steps"])
def test_measuring_takes_ten_plain_passes_at_most_and_is_done_once(target: Curve) -> None:
    world = World(target, {"draft": small(0.0)})
    experience = guessing(world, 0.2)
    process = Play(world, experience)
    passes = [len(process.target.passes) for _ in process.rounds(process.auto())]
    (measured,) = [
        (before, after) for before, after in itertools.pairwise(passes) if after > before + 1
    ]
    extra = process.target.passes[measured[0] : measured[1] - 1]
    assert extra
    assert sum(map(target, extra)) + 2 * target(1) <= BUDGET * target(1)
    again = Play(world, experience)
    rounds = list(again.rounds(again.auto()))
    assert len(again.target.passes) == len(rounds)


@pytest.mark.parametrize("right", [0.0, 0.5, 0.9])
def test_the_first_answer_gains_nearly_as_much(right: float) -> None:
    for seed in SEEDS:
        world = World(BF16, {"draft": small(right)}, seed=seed)
        measuring = speed(world, guessing(world, 0.15))
        assert measuring >= 0.9
        assert measuring >= 0.75 * speed(world)


def test_a_short_first_answer_does_not_pay_for_measuring() -> None:
    world = World(BF16, {"draft": small(0.9)}, length=8)
    experience = guessing(world, 0.15)
    process = Play(world, experience)
    policy = process.auto()
    list(process.rounds(policy))
    assert process.target.passes == [world.prompt, *[1] * 7]
    assert experience.verify is None
    assert policy.decision == "plain: the answer ended while measuring"
