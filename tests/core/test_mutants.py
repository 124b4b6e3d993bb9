"""Silently lossy variants that others shipped: each fails the check that the shipped code passes.

Greedy tests catch almost none of them. Sources: the survey in the project's design notes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from toy import PLAIN, FixedGuess, Policy, TableModel, random_model

from specdec_cli.core.chance import Chance
from specdec_cli.core.distribution import Distribution, distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Guess, Proposal, Verdict
from specdec_cli.core.verification import RULES, Rule, TargetRows, Verify, ratio, residual
from specdec_cli.engine import decoding
from specdec_cli.engine.drafters import ModelDrafter
from specdec_cli.engine.enumeration import (
    Keys,
    Setting,
    answer_law,
    distance,
    fresh,
    law_by_rounds,
    plain_law,
)
from specdec_cli.engine.llama.context import common_prefix

EXACT, LOSSY = 1e-12, 1e-3
REJECTION, BLOCK = RULES["rejection"], RULES["block"]
VOCAB = 3


class Sampled(ModelDrafter):
    def __init__(self, sampling: SamplingOptions = PLAIN) -> None:
        super().__init__(random_model(2, VOCAB), sampling, target_vocab=VOCAB, ends=frozenset())


def target() -> TableModel:
    return random_model(1, VOCAB)


def setting(drafter=Sampled, sampling: SamplingOptions = PLAIN, ends=frozenset()) -> Setting:
    return Setting(target, lambda: Policy(drafter(), 2), sampling, ends)


def error(case: Setting, rule: Rule, length: int = 3) -> float:
    return distance(law_by_rounds(case, rule, length), plain_law(case, length))


def error_of_answers(case: Setting, rule: Rule, length: int, keys: Keys = fresh) -> float:
    return distance(answer_law(case, rule, length, keys), plain_law(case, length))


@pytest.mark.parametrize("rule", [REJECTION, BLOCK], ids=lambda rule: rule.name)
def test_the_shipped_rules_pass_every_check_that_the_mutants_fail(rule: Rule) -> None:
    assert error(setting(), rule) <= EXACT
    assert error_of_answers(setting(), rule, 3) <= EXACT
    assert error(setting(ends=frozenset({1})), rule) <= EXACT


# 1. vLLM (#47386, #54282): noise of the draft met again in the residual.
def one_number_per_position(purpose: int, start: int, position: int) -> Hashable:
    return start, position


@pytest.mark.parametrize("rule", [REJECTION, BLOCK], ids=lambda rule: rule.name)
def test_numbers_shared_between_draft_test_and_residual_are_lossy(rule: Rule) -> None:
    assert error_of_answers(setting(), rule, 3, one_number_per_position) > LOSSY


# 2. jaymody/speculative-sampling #3, Draft&Verify: the argmax as a guess, softmax in the ratio.
class ArgmaxCalledSample(Sampled):
    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        history = list(tokens)
        while True:
            law = distribution(self._draft.logits(history, last=1)[0], self._sampling, history)
            history.append(int(law.ids[law.probs.argmax()]))
            yield Guess(history[-1], law)


# 3. An early stop in the style of EAGLE's and DSpark's warnings: an unlikely draw is thrown away.
class DropsTheUnlikely(Sampled):
    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        for guess in super().draft(tokens, chance):
            if guess.law.prob(guess.token) < 0.4:
                return
            yield guess


@pytest.mark.parametrize("drafter", [ArgmaxCalledSample, DropsTheUnlikely])
@pytest.mark.parametrize("rule", [REJECTION, BLOCK], ids=lambda rule: rule.name)
def test_a_guess_that_was_not_drawn_from_its_law_is_lossy(rule: Rule, drafter: type) -> None:
    assert error(setting(drafter), rule) > LOSSY


# 4. Servers that filter logits in one place and verify in another: the two halves of the rule see
# different targets. Run without a filter; the law to reach is that of top-k 2.
TOP_TWO = replace(PLAIN, top_k=2)


def filtered(law: Distribution) -> Distribution:
    kept = np.sort(np.argsort(-law.probs)[:2])
    return Distribution(law.ids[kept], law.probs[kept] / law.probs[kept].sum())


def two_sided(tested: Callable, drawn: Callable) -> Verify:
    """Token by token, `tested` applied to the law in the ratio and `drawn` to that of the draw."""

    def verify(proposal: Proposal, target: TargetRows, chance: Chance, start: int) -> Verdict:
        for i, guess in enumerate(proposal.guesses):
            if not chance.accept(start + i, min(1.0, ratio(tested(target(i)), guess))):
                left = residual(drawn(target(i)), guess.law)
                return Verdict(i, chance.choose(start + i, left))
        last = len(proposal)
        return Verdict(last, chance.choose(start + last, filtered(target(last))))

    return verify


@pytest.mark.parametrize(
    ("tested", "drawn", "exact"),
    [
        (filtered, filtered, True),
        (filtered, lambda law: law, False),
        (lambda law: law, filtered, False),
    ],
    ids=["same on both sides", "residual unfiltered", "ratio unfiltered"],
)
def test_a_filter_on_one_side_only_is_lossy(tested: Callable, drawn: Callable, exact: bool) -> None:
    law = law_by_rounds(setting(), replace(REJECTION, verify=two_sided(tested, drawn)), 2)
    wrong = distance(law, plain_law(setting(sampling=TOP_TWO), 2))
    assert wrong <= EXACT if exact else wrong > LOSSY


# 4, second half. vLLM's and others' penalties: not advanced along the drafted prefix.
PENALISED = replace(PLAIN, repeat_penalty=1.8, presence_penalty=0.7)


def test_penalties_that_do_not_see_the_drafted_prefix_are_lossy(monkeypatch) -> None:
    case = setting(lambda: Sampled(PENALISED), PENALISED)
    assert error(case, REJECTION) <= EXACT
    monkeypatch.setattr(
        decoding,
        "_lazy_distributions",
        lambda rows, tokens, proposal, sampling: lambda i: distribution(rows[i], sampling, tokens),
    )
    assert error(case, REJECTION) > LOSSY


# 5. Block verification got wrong: vllm-ascend #7807 (rows of position i, the token rule's test and
# residual); "break at the first failure" was demanded in review of vllm-ascend #11985.
def block_variant(
    *, breaks: bool = False, forgets_weight: bool = False, ahead: int = 1, tokenwise: bool = False
) -> Verify:
    """The shipped rule where every argument has its default."""

    def verify(proposal: Proposal, target: TargetRows, chance: Chance, start: int) -> Verdict:
        accepted, kept, weight, last = 0, 1.0, 1.0, len(proposal) - 1
        for i, guess in enumerate(proposal.guesses):
            weight = min(1.0, weight * ratio(target(i), guess))
            passing = min(1.0, ratio(target(i), guess)) if tokenwise else weight
            if i < last and not tokenwise:
                ids = target(i + ahead).ids
                left = weight * target(i + ahead).probs
                left = left - proposal.guesses[i + ahead].law.probs_of(ids)
                mass = float(np.maximum(left, 0.0).sum())
                passing = mass / (mass + 1.0 - weight) if mass + 1.0 - weight > 0 else 1.0
            if chance.accept(start + i, passing):
                accepted, kept = i + 1, weight
            elif breaks:
                break
        law = target(accepted)
        if accepted < len(proposal):
            scale = 1.0 if forgets_weight else kept
            law = residual(law, proposal.guesses[accepted].law, scale)
        return Verdict(accepted, chance.choose(start + accepted, law))

    return verify


@pytest.mark.parametrize(
    "wrong",
    [{"breaks": True}, {"forgets_weight": True}, {"ahead": 0}, {"tokenwise": True}],
    ids=str,
)
def test_block_verification_got_wrong_is_lossy(wrong: dict) -> None:
    assert error(setting(), replace(BLOCK, verify=block_variant())) <= EXACT
    assert error(setting(), replace(BLOCK, verify=block_variant(**wrong))) > LOSSY


# 6. Bookkeeping, in many engines: rejected rows stay in the KV cache, ...
class KeepsRejectedRows(TableModel):
    """Knows which rows to reuse, but leaves the others where attention still sees them."""

    def __init__(self) -> None:
        super().__init__(target().rows, VOCAB)
        self._cells: list[int] = []
        self._seen: list[int] = []

    def logits(self, tokens: Sequence[int], *, last: int):
        done = min(common_prefix(self._seen, list(tokens)), len(tokens) - last)
        self._cells += tokens[done:]
        self._seen = list(tokens)
        return super().logits(self._cells, last=last)


# ... the bonus token comes from the row before its own, ...
def bonus_off_by_one(proposal: Proposal, target: TargetRows, chance: Chance, start: int) -> Verdict:
    return REJECTION.verify(proposal, lambda i: target(min(i, len(proposal) - 1)), chance, start)


# ... or guesses behind an end token are kept.
def past_the_end(proposal, verdict, room, at_the_limit, ends):
    emitted = (*proposal.tokens[: verdict.accepted], verdict.token)
    return emitted, "stop" if ends.intersection(emitted) else None


def test_rows_of_rejected_guesses_in_the_cache_are_lossy() -> None:
    def drafting() -> Policy:
        return Policy(FixedGuess(2), 2)

    assert error_of_answers(Setting(target, drafting), REJECTION, 3) <= EXACT
    assert error_of_answers(Setting(KeepsRejectedRows, drafting), REJECTION, 3) > LOSSY


def test_a_bonus_token_from_the_row_before_its_own_is_lossy() -> None:
    assert error(setting(), replace(REJECTION, verify=bonus_off_by_one)) > LOSSY


def test_tokens_kept_behind_an_end_token_are_lossy(monkeypatch) -> None:
    monkeypatch.setattr(decoding, "_through_end", past_the_end)
    assert error(setting(ends=frozenset({1})), REJECTION) > LOSSY


# 7. Copies of the paper's algorithm with a slip: accept a drawn guess with p(x), or correct from p.
def accepts_with_p(proposal: Proposal, target: TargetRows, chance: Chance, start: int) -> Verdict:
    for i, guess in enumerate(proposal.guesses):
        if not chance.accept(start + i, target(i).prob(guess.token)):
            return Verdict(i, chance.choose(start + i, residual(target(i), guess.law)))
    return Verdict(len(proposal), chance.choose(start + len(proposal), target(len(proposal))))


def corrects_from_p(proposal: Proposal, target: TargetRows, chance: Chance, start: int) -> Verdict:
    for i, guess in enumerate(proposal.guesses):
        if not chance.accept(start + i, min(1.0, ratio(target(i), guess))):
            return Verdict(i, chance.choose(start + i, target(i)))
    return Verdict(len(proposal), chance.choose(start + len(proposal), target(len(proposal))))


@pytest.mark.parametrize("verify", [accepts_with_p, corrects_from_p])
def test_a_slip_in_the_textbook_rule_is_lossy(verify: Verify) -> None:
    assert error(setting(), replace(REJECTION, verify=verify)) > LOSSY


# 8. Our own prototype: `block` looks at numbers that it throws away and meets them again.
def one_number_per_purpose_and_position(purpose: int, start: int, position: int) -> Hashable:
    return purpose, position


def test_block_keyed_by_position_alone_is_lossy_over_several_rounds_only() -> None:
    keys = one_number_per_purpose_and_position
    assert error_of_answers(setting(), BLOCK, 1, keys) <= EXACT  # one round cannot tell
    assert error_of_answers(setting(), BLOCK, 3, keys) > LOSSY
