"""The policy `auto`: exact whatever it decides, and what it decides when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from simulated import (
    AS_DEAR,
    BF16,
    LARGE,
    MOST,
    Q4_K_M,
    Q8_0,
    SMALL,
    Clock,
    Curve,
    Draft,
    Play,
    Timed,
    World,
    knowing,
    plain_time,
)
from toy import PLAIN, FailingModel, TableModel, random_model

from specdec_cli.core.chance import Chance
from specdec_cli.core.experience import Experience, Kind
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.core.rounds import NOTHING, Guess, Proposal, Round, Seconds
from specdec_cli.core.verification import RULES, Rule, TargetRows
from specdec_cli.engine import adaptive
from specdec_cli.engine.adaptive import Adaptive
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafters import ModelDrafter, SuffixDrafter
from specdec_cli.engine.drafting import Drafting, NoDrafting
from specdec_cli.engine.enumeration import Setting, answer_law, distance, outcomes, plain_law
from specdec_cli.engine.language_model import Interrupted, LanguageModel
from specdec_cli.engine.sources import Source
from specdec_cli.errors import EvaluationError

MANY = 12
PROMPT = (0, 3, 1, 2)
EXACT, LOSSY = 1e-12, 1e-3
ROWS = (1, 2, 4, 8, 16, 32)


def flat(rows: int) -> float:
    """Nearly as dear for many rows as for one."""
    return 0.1 + 0.001 * rows


def cheap(rows: int) -> float:
    return 0.004 * rows


def at_once(rows: int) -> float:
    """A draft that reads what it missed at once."""
    return 0.012


def seconds(curve: Curve) -> PassSeconds:
    return PassSeconds({rows: curve(rows) for rows in ROWS})


# Exactness, where the rule draws: every outcome is enumerated.


@dataclass
class OnPaper:
    """A policy whose rounds took exactly as long as expected: enumeration has no clock."""

    policy: Adaptive
    decision: str = ""
    plain_seconds: float | None = None

    def propose(self, tokens: Sequence[int], limit: int, chance: Chance) -> Proposal:
        return self.policy.propose(tokens, limit, chance)

    def learn(self, round: Round, target: TargetRows) -> None:
        rows = len(round.proposal) + 1
        took = Seconds(cheap(rows - 1), self.policy.verify(rows), 0.0)
        self.policy.learn(replace(round, seconds=took), target)


class DropsTheUnsure(Adaptive):
    """A known way to be silently lossy: an unlikely draw is not sent."""

    def propose(self, tokens: Sequence[int], limit: int, chance: Chance) -> Proposal:
        proposal = super().propose(tokens, limit, chance)
        sure = [guess for guess in proposal.guesses if guess.confidence >= 0.4]
        return replace(proposal, guesses=proposal.guesses[: len(sure)])


class LooksAtOnce(Adaptive):
    """Looks whenever it may, and lets what it sees decide about the very next guess."""

    def _look_back(self, *arguments: Any) -> None:
        for source in self.sources:
            source.acceptance.patience = 0.0
        super()._look_back(*arguments)


def on_paper(
    policy: type[Adaptive],
    ids: int = 3,
    *,
    overlaps: bool,
    suffix: bool = False,
    most: int = 3,
    savings: float = 0.0,
) -> Setting:
    def drafting() -> Drafting:
        experience = Experience()
        clock = Clock()
        draft = Timed(random_model(2, ids), cheap, clock)
        drafter = ModelDrafter(draft, PLAIN, target_vocab=ids, ends=frozenset())
        known = experience.of("model", "sampled", Kind.model)
        known.savings = savings
        looks = drafter.in_hindsight
        sources = [Source(drafter, known, seconds(cheap), drafter.behind, looks)]
        if suffix:
            repeated = SuffixDrafter(ends=frozenset(), min_match=1)
            known = experience.of("suffix", "sampled", Kind.suffix)
            sources.append(Source(repeated, known))
        return OnPaper(policy(sources, seconds(flat), most, overlaps=overlaps, clock=clock))

    return Setting(lambda: random_model(1, ids), drafting)


drawing = pytest.mark.parametrize(
    "rule", [RULES["rejection"], RULES["block"]], ids=lambda rule: rule.name
)


@drawing
@pytest.mark.parametrize("overlaps", [True, False], ids=["by overlap", "by bits"])
def test_answers_of_several_rounds_follow_the_targets_law(rule: Rule, overlaps: bool) -> None:
    case = on_paper(Adaptive, 2, overlaps=overlaps, most=2)
    law = answer_law(case, rule, 5)
    assert sum(law.values()) == pytest.approx(1.0, abs=EXACT)
    assert distance(law, plain_law(case, 5)) <= EXACT


@drawing
def test_so_do_answers_with_longer_drafts_and_with_repetitions(rule: Rule) -> None:
    for case in (
        on_paper(Adaptive, 2, overlaps=True),
        on_paper(Adaptive, 3, overlaps=True, suffix=True, most=2),
    ):
        assert distance(answer_law(case, rule, 3), plain_law(case, 3)) <= EXACT


@drawing
@pytest.mark.parametrize("overlaps", [True, False], ids=["by overlap", "by bits"])
def test_so_do_answers_in_which_a_draft_was_asked_what_it_would_have_said(
    rule: Rule, overlaps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptive, "LOOK", 1)
    case = on_paper(LooksAtOnce, 2, overlaps=overlaps, most=2, savings=100.0)
    law = answer_law(case, rule, 4)
    assert sum(law.values()) == pytest.approx(1.0, abs=EXACT)
    assert distance(law, plain_law(case, 4)) <= EXACT


def test_how_many_guesses_there_are_does_depend_on_them_in_these_checks() -> None:
    case = on_paper(Adaptive, overlaps=True)

    def lengths(chances) -> tuple[int, ...]:
        rounds = islice(case.rounds(RULES["rejection"], chances), 2)
        return tuple(len(round.proposal) for round in rounds)

    assert {length for length, _ in outcomes(lengths)} == {(0, 2), (0, 3)}


@drawing
def test_a_policy_that_drops_what_it_is_unsure_of_fails_these_checks(rule: Rule) -> None:
    case = on_paper(DropsTheUnsure, 2, overlaps=True)
    assert distance(answer_law(case, rule, 3), plain_law(case, 3)) > LOSSY


# Exactness with `coupled`: one seed, one text.

TARGET = random_model(5, MANY)
NEAR = TableModel(
    lambda tokens: (random_model(6, MANY) if sum(tokens) % 4 == 0 else TARGET).rows(tokens), MANY
)
FAR = random_model(7, MANY)
SAMPLED = SamplingOptions(temp=0.9, top_k=8, top_p=0.95, repeat_penalty=1.1)
TIMINGS: dict[str, tuple[Curve, Curve]] = {
    "free drafts": (flat, lambda rows: 1e-6),
    "cheap drafts": (BF16, SMALL),
    "dear passes": (Q8_0, SMALL),
    "steps": (lambda rows: 0.1 * (1 + (rows - 1) // 4), cheap),
    "no gain in sight": (Q4_K_M, AS_DEAR),
}
CHOICES = {
    "near": ["near"],
    "far": ["far"],
    "suffix": ["suffix"],
    "both models": ["far", "near"],
    "everything": ["near", "far", "suffix"],
}


def sampled_answer(
    seed: int, names: Sequence[str], timing: str, sampling: SamplingOptions
) -> list[Round]:
    target_seconds, draft_seconds = TIMINGS[timing]
    clock, experience = Clock(), Experience()
    sources = []
    for name in names:
        if name == "suffix":
            known = experience.of(name, "sampled", Kind.suffix)
            sources.append(Source(SuffixDrafter(ends=frozenset(), min_match=1), known))
            continue
        model = Timed({"near": NEAR, "far": FAR}[name], draft_seconds, clock)
        drafter = ModelDrafter(model, sampling, target_vocab=MANY, ends=frozenset(), source=name)
        known = experience.of(name, "sampled", Kind.model)
        sources.append(Source(drafter, known, seconds(draft_seconds), drafter.behind))
    policy = Adaptive(sources, seconds(target_seconds), MOST, clock=clock)
    target = Timed(TARGET, target_seconds, clock)
    return play(target, policy, seed, sampling, clock)


def play(
    target: LanguageModel, policy: Drafting, seed: int, sampling: SamplingOptions, clock: Clock
) -> list[Round]:
    options = DecodeOptions(sampling, seed, 60, frozenset())
    return list(decode(target, policy, RULES["coupled"], PROMPT, options, clock))


def text(rounds: Sequence[Round]) -> list[int]:
    return [token for round in rounds for token in round.emitted]


@pytest.mark.parametrize("sampling", [PLAIN, SAMPLED], ids=["open", "filtered"])
@pytest.mark.parametrize("names", CHOICES.values(), ids=CHOICES)
def test_one_seed_is_one_text_whatever_passes_take(
    names: list[str], sampling: SamplingOptions
) -> None:
    decisions = set()
    for seed in (1, 2):
        plain = text(play(TARGET, NoDrafting(""), seed, sampling, Clock()))
        for timing in TIMINGS:
            rounds = sampled_answer(seed, names, timing, sampling)
            assert text(rounds) == plain, timing
            decisions.add(tuple(len(round.proposal) for round in rounds))
    assert len(decisions) > 2  # it did decide differently


# What is drawn is sent.


@dataclass
class Counted:
    """Another drafter; counts what was drawn from it."""

    drafter: ModelDrafter
    drawn: int = 0
    source: str = "model"
    memoryless: bool = True

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        for guess in self.drafter.draft(tokens, chance):
            self.drawn += 1
            yield guess


@pytest.mark.parametrize("acceptance", [0.3, 0.6, 0.9])
def test_every_guess_that_was_drawn_is_proposed(acceptance: float) -> None:
    world = World(BF16, {"model": Draft(SMALL, lambda place: acceptance)})
    process = Play(world)
    policy = process.auto()
    assert isinstance(policy, Adaptive)
    counted = Counted(process.drafter("model"))
    policy.sources[0].drafter = counted
    rounds = list(process.rounds(policy))
    lengths = [len(round.proposal) for round in rounds]
    assert counted.drawn == sum(lengths) > 10
    assert len(set(lengths)) > 2


# The first round, the last one, and drafts that fail.


def test_the_first_token_waits_for_no_draft_and_the_last_has_none() -> None:
    process = Play(World(BF16, {"model": Draft(SMALL, lambda place: 1.0)}, suffix=True))
    left = process.world.length
    for i, round in enumerate(process.rounds(process.auto())):
        assert len(round.proposal) <= (0 if i == 0 else left - 1)
        left -= len(round.emitted)
    assert left == 0


@pytest.mark.parametrize("after", [0, 1, 2, 5, 30])
def test_a_draft_that_fails_leaves_the_answer_and_says_why(after: int) -> None:
    error = EvaluationError("no free cell", why="a test", fix="none")
    clock, known = Clock(), Experience().of("model", "sampled", Kind.model)
    drafter = ModelDrafter(
        FailingModel(TARGET, after, error), PLAIN, target_vocab=MANY, ends=frozenset()
    )
    policy = Adaptive([Source(drafter, known, seconds(cheap))], seconds(flat), MOST, clock=clock)
    rounds = play(Timed(TARGET, flat, clock), policy, 3, PLAIN, clock)
    assert text(rounds) == text(play(TARGET, NoDrafting(""), 3, PLAIN, Clock()))
    assert sum(len(round.proposal) for round in rounds) == after  # what was drawn is kept
    assert policy.decision == "drafting stopped: no free cell"


def test_another_source_takes_over_from_one_that_fails() -> None:
    error = EvaluationError("no free cell", why="a test", fix="none")
    clock, experience = Clock(), Experience()
    sources = []
    for name, model in (("bad", FailingModel(TARGET, 6, error)), ("good", TARGET)):
        drafter = ModelDrafter(model, PLAIN, target_vocab=MANY, ends=frozenset(), source=name)
        known = experience.of(name, "sampled", Kind.model)
        sources.append(Source(drafter, known, seconds(cheap)))
    policy = Adaptive(sources, seconds(flat), MOST, clock=clock)
    rounds = play(Timed(TARGET, flat, clock), policy, 3, PLAIN, clock)
    drafted = [round.proposal.source for round in rounds if round.proposal.guesses]
    assert set(drafted) == {"bad", "good"}
    assert drafted == sorted(drafted)


@pytest.mark.parametrize("error", [Interrupted(), RuntimeError("a bug")])
def test_other_errors_of_a_draft_are_not_swallowed(error: Exception) -> None:
    clock, known = Clock(), Experience().of("model", "sampled", Kind.model)
    drafter = ModelDrafter(
        FailingModel(TARGET, 4, error), PLAIN, target_vocab=MANY, ends=frozenset()
    )
    policy = Adaptive([Source(drafter, known, seconds(cheap))], seconds(flat), MOST, clock=clock)
    with pytest.raises(type(error)):
        play(Timed(TARGET, flat, clock), policy, 3, PLAIN, clock)


# What it tries, and how often.


def drafted_at(world: World, experience: Experience | None = None) -> list[int]:
    """Places in the answer behind rounds that drafted."""
    process = Play(world, experience)
    policy = process.auto()
    return [process.place for round in process.rounds(policy) if round.proposal.guesses]


def hopeless(world: World) -> Experience:
    """Costs are known, and that guesses are nearly always wrong."""
    experience = knowing(world)
    for name in world.drafts:
        known = experience.of(name, "greedy", Kind.model)
        for rate in (*known.stands, *known.follows):
            rate.prior = 0.02
    return experience


def test_what_could_not_pay_if_it_were_always_right_is_never_read() -> None:
    for target, draft in ((BF16, AS_DEAR), (Q4_K_M, LARGE)):
        world = World(target, {"model": Draft(draft, lambda place: 1.0)}, length=600)
        process = Play(world)
        policy = process.auto()
        assert not any(round.proposal.guesses for round in process.rounds(policy))
        assert process.drafts["model"].passes == []
        assert policy.decision == "plain: no guesses promised to pay"


def looked_at(world: World, experience: Experience | None = None) -> list[int]:
    """Places in the answer at which the draft read."""
    process = Play(world, experience)
    read, at = 0, []
    for _ in process.rounds(process.auto()):
        if len(process.drafts["model"].passes) > read:
            read = len(process.drafts["model"].passes)
            at.append(process.place)
    return at


def test_what_does_not_pay_is_looked_at_ever_more_rarely_and_never_used() -> None:
    world = World(BF16, {"model": Draft(at_once, lambda place: 0.0)}, prompt=8, length=4000)
    assert drafted_at(world, hopeless(world)) == []
    at = looked_at(world, hopeless(world))
    assert len(at) >= 4
    gaps = [later - sooner for sooner, later in pairwise([0, *at])]
    assert gaps[0] < 20
    assert all(later > 1.3 * sooner for sooner, later in pairwise(gaps[:5]))
    assert min(gaps[5:]) > 150


@pytest.mark.parametrize("prompt", [8, 40, 400, 4000])
def test_what_looking_costs_is_bounded_whatever_has_to_be_read(prompt: int) -> None:
    for length in (16, 64, 256, 1024):
        world = World(
            Q8_0, {"model": Draft(SMALL, lambda place: 0.0)}, prompt=prompt, length=length
        )
        experience = knowing(world)
        took = []
        for _ in range(8):
            process = Play(world, experience)
            took.append(process.seconds(process.auto()) / plain_time(world))
        assert max(took) <= 1.06
        assert sum(took) / len(took) <= 1.012


def test_what_one_would_not_expect_to_pay_is_found_within_some_answers() -> None:
    world = World(Q8_0, {"model": Draft(SMALL, lambda place: 0.95)})
    assert drafted_at(world) == []  # what is believed of any draft says no
    experience = knowing(world)
    gains = []
    for seed in range(6):
        process = Play(replace(world, seed=seed), experience)
        gains.append(plain_time(process.world) / process.seconds(process.auto()))
    assert min(gains) >= 0.97
    assert min(gains[-2:]) >= 1.3


def test_a_draft_that_fell_silent_is_heard_again() -> None:
    for seed in range(1, 5):
        right = lambda place: 0.02 if 64 <= place < 128 else 0.95  # noqa: E731
        world = World(BF16, {"model": Draft(SMALL, right)}, length=600, seed=seed)
        at = drafted_at(world)
        assert len([place for place in at if place > 300]) > 15  # of eight guesses or more
        process = Play(world)
        assert plain_time(world) / process.seconds(process.auto()) > 1.2


def test_a_look_judges_each_place_by_itself() -> None:
    known = Experience().of("model", "greedy", Kind.model)
    known.saw_each([0.9] * 16, [1.0] * 16)
    assert known.after(None) > 0.9
    assert known.after(0.9) > 0.9
    assert known.of(0.9) > 0.95
    other = Experience().of("model", "greedy", Kind.model)
    other.saw_each([0.9] * 16, [1.0, 0.0] * 8)
    assert other.after(None) == pytest.approx(0.58, abs=0.04)
    assert other.after(0.9) < 0.45  # after a guess that stood, the next never did


@pytest.mark.parametrize("rule", ["coupled", "rejection"])
def test_hindsight_is_what_the_drafter_would_have_guessed(rule: str) -> None:
    model = random_model(8, MANY)
    drafter = ModelDrafter(model, SAMPLED, target_vocab=MANY, ends=frozenset())
    tokens = [int(token) for token in np.random.default_rng(4).integers(0, MANY, 24)]
    chance = RULES[rule].chance(5, len(tokens))
    for place, guess in enumerate(drafter.in_hindsight(tokens, 16, chance), 8):
        (expected,) = islice(drafter.draft(tokens[:place], chance), 1)
        assert (guess.token, guess.confidence) == (expected.token, expected.confidence)


def test_a_free_source_learns_while_another_drafts() -> None:
    world = World(BF16, suffix=True, prompt=40, text=repeating(20))
    silent = knowing(world).of("suffix", "greedy", Kind.suffix)
    for rate in (*silent.stands, *silent.follows):
        rate.prior = 0.02
    policy = Adaptive([Source(SuffixDrafter(ends=frozenset()), silent)], seconds(BF16), MOST)
    play_world = Play(world)
    rounds = list(play_world.rounds(policy))
    assert rounds[1].proposal == NOTHING  # it is believed to be wrong
    assert sum(len(round.proposal) > 4 for round in rounds) > 5  # and was seen to be right


def test_a_look_that_turns_out_well_is_followed_up() -> None:
    world = World(BF16, {"model": Draft(at_once, lambda place: 0.95)}, prompt=8, length=1500)
    at = drafted_at(world, hopeless(world))
    later = [place for place in at if place > 1000]
    assert len(later) > 50  # most of the last 500 tokens come from drafts of several


def test_of_two_models_one_is_used_and_the_other_is_not_read_for_nothing() -> None:
    for model, copy in ((0.9, 0.6), (0.3, 0.95)):
        world = World(
            BF16,
            {
                "model": Draft(SMALL, lambda place, model=model: model),
                "self": Draft(LARGE, lambda place, copy=copy: copy, kind=Kind.self, modest=8),
            },
            length=192,
        )
        process = Play(world)
        rounds = [round for round in process.rounds(process.auto()) if round.proposal.guesses]
        used = [round.proposal.source for round in rounds]
        assert sum(sooner != later for sooner, later in pairwise(used)) <= 1
        loser = "self" if model > copy else "model"
        assert used.count(loser) <= 12  # how good it is shows when it is used
        lost = sum(map(world.drafts[loser].seconds, process.drafts[loser].passes))
        assert lost < 0.1 * process.clock()


def repeating(period: int) -> Callable[..., list[int]]:
    def made(dice, size: int) -> list[int]:
        once = dice.integers(1, 90, period).tolist()
        return (once * (size // period + 1))[:size]

    return made


def test_a_free_source_is_preferred_where_it_knows_and_left_where_it_does_not() -> None:
    draft = {"model": Draft(SMALL, lambda place: 0.8)}
    for period, source in ((20, "suffix"), (400, "model")):
        world = World(BF16, draft, suffix=True, text=repeating(period))
        process = Play(world)
        used = [round.proposal.source for round in process.rounds(process.auto())]
        assert used.count(source) > 0.9 * (len(used) - used.count("none") - 2)


# What it says.


def test_the_decision_names_sources_rounds_and_length() -> None:
    world = World(BF16, {"model": Draft(SMALL, lambda place: 0.9)}, length=64)
    process = Play(world)
    policy = process.auto()
    rounds = list(process.rounds(policy))
    drafted = [len(round.proposal) for round in rounds if round.proposal.guesses]
    plain = len(rounds) - len(drafted)
    mean = sum(drafted) / len(drafted)
    assert policy.decision == (
        f"{len(drafted)} rounds from model, {plain} plain; {mean:.1f} guesses a draft"
    )
    assert policy.plain_seconds == pytest.approx(BF16(1), rel=0.05)


def test_a_note_is_added_to_the_decision() -> None:
    policy = Adaptive([], seconds(flat), MOST, note="the draft is not loaded: too large")
    assert policy.decision.endswith("; the draft is not loaded: too large")
