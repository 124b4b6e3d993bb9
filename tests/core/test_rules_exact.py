"""`rejection` and `block` leave the law of the target untouched: every outcome is enumerated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import PLAIN, PointDrafter, Policy, TableModel, random_model, random_rows

from specdec_cli.core.distribution import Distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Guess, Proposal
from specdec_cli.core.verification import RULES, Rule
from specdec_cli.engine.drafters import Drafter, ModelDrafter
from specdec_cli.engine.drafting import FixedLength
from specdec_cli.engine.enumeration import (
    Setting,
    answer_law,
    distance,
    expected_accepted,
    law_by_rounds,
    outcomes,
    plain_law,
)

VOCAB = 3
EXACT = 1e-12
TOP_TWO = SamplingOptions(temp=1.0, top_k=2, top_p=1.0, min_p=0.0)
PENALISED = SamplingOptions(
    temp=0.9, top_k=0, top_p=1.0, min_p=0.0, repeat_penalty=1.7, presence_penalty=0.4
)

rules = pytest.mark.parametrize("rule", [RULES["rejection"], RULES["block"]], ids=lambda r: r.name)


def sampled(draft: TableModel, sampling: SamplingOptions = PLAIN) -> Drafter:
    return ModelDrafter(draft, sampling, target_vocab=VOCAB, ends=frozenset())


DRAFTS: dict[str, Callable[[int], tuple[Drafter, SamplingOptions]]] = {
    "sampled": lambda seed: (sampled(random_model(seed + 1, VOCAB)), PLAIN),
    "greedy": lambda seed: (PointDrafter(random_model(seed + 1, VOCAB)), PLAIN),
    "filtered": lambda seed: (sampled(random_model(seed + 1, VOCAB), TOP_TWO), TOP_TWO),
    "restricted": lambda seed: (
        sampled(TableModel(random_rows(seed + 1, VOCAB, banned=0.5), VOCAB)),
        PLAIN,
    ),
    "penalised": lambda seed: (sampled(random_model(seed + 1, VOCAB), PENALISED), PENALISED),
    "itself": lambda seed: (sampled(random_model(seed, VOCAB)), PLAIN),
}

POLICIES: dict[str, Callable[[Drafter], Policy]] = {
    "k=1": lambda drafter: Policy(drafter, 1),
    "k=2": lambda drafter: Policy(drafter, 2),
    "k=3": lambda drafter: Policy(drafter, 3),
    "until token 1": lambda drafter: Policy(drafter, 3, lambda guess: guess.token == 1),
    "until q < 0.3": lambda drafter: Policy(drafter, 3, lambda g: g.law.prob(g.token) < 0.3),
}


def setting(draft: str, policy: str, seed: int) -> Setting:
    drafter, sampling = DRAFTS[draft](seed)
    return Setting(lambda: random_model(seed, VOCAB), lambda: POLICIES[policy](drafter), sampling)


@rules
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("draft", DRAFTS)
def test_the_law_of_an_answer_is_the_targets(rule: Rule, draft: str, policy: str) -> None:
    length = 4 if policy in ("k=1", "k=2") else 3
    for seed in (10, 20) if policy == "k=2" else (10,):
        case = setting(draft, policy, seed)
        assert distance(law_by_rounds(case, rule, length), plain_law(case, length)) <= EXACT


@rules
def test_four_tokens_from_three_guesses_a_round(rule: Rule) -> None:
    case = setting("sampled", "k=3", 30)
    assert distance(law_by_rounds(case, rule, 4), plain_law(case, 4)) <= EXACT


@rules
@pytest.mark.parametrize(("vocab", "k", "length"), [(2, 2, 4), (3, 1, 3), (3, 2, 3)])
def test_whole_answers_of_the_shipped_loop(rule: Rule, vocab: int, k: int, length: int) -> None:
    """Several rounds in one run, the first of which drafts nothing, and an end token."""
    drafter = ModelDrafter(random_model(2, vocab), PLAIN, target_vocab=vocab, ends=frozenset({1}))
    case = Setting(
        lambda: random_model(1, vocab),
        lambda: FixedLength(drafter, k),
        ends=frozenset({1}),
    )
    law = answer_law(case, rule, length)
    assert sum(law.values()) == pytest.approx(1.0, abs=EXACT)
    assert distance(law, plain_law(case, length)) <= EXACT


probabilities = st.lists(st.floats(0, 1), min_size=4, max_size=4).filter(lambda w: sum(w) > 1e-3)


def law_of(weights: list[float]) -> Distribution:
    array = np.array(weights)
    ids = np.flatnonzero(array)
    return Distribution(ids, array[ids] / array.sum())


@rules
@given(targets=st.tuples(*[probabilities] * 3), drafts=st.tuples(*[probabilities] * 2))
@settings(max_examples=40, deadline=None)
def test_any_two_guesses_leave_the_law_of_the_first_token(
    rule: Rule, targets: tuple[list[float], ...], drafts: tuple[list[float], ...]
) -> None:
    """Zeros, near-zeros, disjoint supports: whatever hypothesis finds."""
    p, q = [law_of(weights) for weights in targets], [law_of(weights) for weights in drafts]
    found = np.zeros(4)

    def run(chances) -> int:
        chance = chances(0, 5)
        guesses = tuple(Guess(chance.draw(5 + i, law), law) for i, law in enumerate(q))
        verdict = rule.verify(Proposal(guesses), p.__getitem__, chance, 5)
        return (*[guess.token for guess in guesses][: verdict.accepted], verdict.token)[0]

    for token, probability in outcomes(run):
        found[token] += probability
    assert np.abs(found - p[0].probs_of(np.arange(4))).sum() / 2 <= EXACT


def accepted_of_two(rule: Rule, target: Distribution, draft: Distribution) -> float:
    def run(chances) -> int:
        chance = chances(0, 0)
        guesses = tuple(Guess(chance.draw(i, draft), draft) for i in range(2))
        return rule.verify(Proposal(guesses), lambda _: target, chance, 0).accepted

    return sum(accepted * probability for accepted, probability in outcomes(run))


def test_the_papers_example_of_block_verification() -> None:
    """Sun et al. 2024, arXiv 2403.10444: 10/9 token by token, 11/9 as a block."""
    target = Distribution(np.arange(2), np.array([1 / 3, 2 / 3]))
    draft = Distribution(np.arange(2), np.array([2 / 3, 1 / 3]))
    assert accepted_of_two(RULES["rejection"], target, draft) == pytest.approx(10 / 9, abs=EXACT)
    assert accepted_of_two(RULES["block"], target, draft) == pytest.approx(11 / 9, abs=EXACT)


@pytest.mark.parametrize("draft", DRAFTS)
def test_block_never_accepts_fewer(draft: str) -> None:
    gains = []
    for seed in range(40, 52):
        case = setting(draft, "k=3" if seed % 2 else "until q < 0.3", seed)
        tokenwise = expected_accepted(case, RULES["rejection"])
        gains.append(expected_accepted(case, RULES["block"]) - tokenwise)
    assert min(gains) >= -EXACT
    if draft in ("greedy", "itself"):  # a point mass, or nothing to reject: nothing to gain
        assert max(gains) <= EXACT
    else:
        assert max(gains) > 0.01


@rules
def test_a_draft_that_is_the_target_is_always_accepted(rule: Rule) -> None:
    assert expected_accepted(setting("itself", "k=3", 7), rule) == pytest.approx(3.0, abs=EXACT)
