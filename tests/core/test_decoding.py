"""The decode loop on toy models: where it stops, what it asks for, and what it survives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from toy import (
    GREEDY,
    PLAIN,
    CountingModel,
    FixedGuess,
    PointDrafter,
    Policy,
    TableModel,
    random_model,
)

from specdec_cli.core.chance import Chance
from specdec_cli.core.rounds import Guess, Round
from specdec_cli.core.verification import RULES
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafters import Drafter, ModelDrafter
from specdec_cli.engine.drafting import Drafting, FixedLength, NoDrafting
from specdec_cli.engine.language_model import Interrupted, LanguageModel
from specdec_cli.errors import EvaluationError

VOCAB = 6
PROMPT = (0, 3, 1)
TARGET = random_model(3, VOCAB, order=2)
ENDS = frozenset({5})

every_rule = pytest.mark.parametrize("rule", RULES)


def model_drafter(model: LanguageModel = TARGET, ends: frozenset[int] = ENDS) -> ModelDrafter:
    return ModelDrafter(model, GREEDY, target_vocab=VOCAB, ends=ends)


def disturbed() -> TableModel:
    """The target, wrong after every third token or so."""
    other = random_model(9, VOCAB, order=2)
    return TableModel(
        lambda tokens: (other if sum(tokens) % 3 == 0 else TARGET).rows(tokens), VOCAB
    )


DRAFTERS: dict[str, Callable[[], Drafter]] = {
    "itself": model_drafter,
    "nearly itself": lambda: model_drafter(disturbed()),
    "another": lambda: model_drafter(random_model(4, VOCAB, order=1)),
    "point": lambda: PointDrafter(disturbed()),
    "fixed": lambda: FixedGuess(2),
    "end token": lambda: FixedGuess(5),
}


def answer(
    drafting: Drafting,
    *,
    target: LanguageModel = TARGET,
    rule: str = "coupled",
    max_tokens: int | None = 12,
    ends: frozenset[int] = frozenset(),
    sampling=GREEDY,
    seed: int = 0,
) -> list[Round]:
    options = DecodeOptions(sampling, seed, max_tokens, ends)
    return list(decode(target, drafting, RULES[rule], PROMPT, options))


def tokens_of(rounds: list[Round]) -> list[int]:
    return [token for round in rounds for token in round.emitted]


def greedy_by_hand(count: int, ends: frozenset[int], context: int = 4096) -> list[int]:
    tokens = list(PROMPT)
    while len(tokens) - len(PROMPT) < count and len(tokens) < context:
        tokens.append(int(TARGET.rows(tuple(tokens)).argmax()))
        if tokens[-1] in ends:
            break
    return tokens[len(PROMPT) :]


@every_rule
@pytest.mark.parametrize("name", DRAFTERS)
def test_greedy_text_does_not_depend_on_the_drafter(rule: str, name: str) -> None:
    for k in range(9):
        for ends in (frozenset(), ENDS, frozenset(range(3)), frozenset(range(VOCAB))):
            for max_tokens in (1, 2, 3, 7, 20):
                rounds = answer(
                    FixedLength(DRAFTERS[name](), k), rule=rule, max_tokens=max_tokens, ends=ends
                )
                expected = greedy_by_hand(max_tokens, ends)
                assert tokens_of(rounds) == expected
                assert rounds[-1].finish == ("stop" if expected[-1] in ends else "length")
                assert all(round.finish is None for round in rounds[:-1])


@every_rule
@pytest.mark.parametrize("room", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("name", ["itself", "nearly itself", "fixed"])
def test_a_full_context_ends_the_answer_and_is_never_exceeded(
    rule: str, room: int, name: str
) -> None:
    size = len(PROMPT) + room
    for k in range(9):
        for always in (False, True):
            target = CountingModel(replace(TARGET, context_size=size))
            drafter = DRAFTERS[name]()
            drafting = Policy(drafter, k) if always else FixedLength(drafter, k)
            rounds = answer(drafting, target=target, rule=rule, max_tokens=None)
            assert tokens_of(rounds) == greedy_by_hand(room, frozenset())
            assert rounds[-1].finish == "context"
            assert max(length for length, _ in target.calls) <= size - 1


def test_which_limit_is_met_first_names_the_finish() -> None:
    for max_tokens, finish in ((3, "length"), (4, "length"), (5, "context"), (None, "context")):
        target = replace(TARGET, context_size=len(PROMPT) + 4)
        rounds = answer(NoDrafting(""), target=target, max_tokens=max_tokens)
        assert rounds[-1].finish == finish


def test_an_end_token_wins_over_a_limit_that_is_met_with_it() -> None:
    last = greedy_by_hand(4, frozenset())[3]
    rounds = answer(NoDrafting(""), max_tokens=4, ends=frozenset({last}))
    assert rounds[-1].finish == "stop"


@pytest.mark.parametrize("k", range(1, 9))
def test_the_first_round_drafts_nothing_and_later_ones_never_beyond_the_room(k: int) -> None:
    draft = CountingModel(TARGET)
    drafting = FixedLength(model_drafter(draft), k)
    options = DecodeOptions(GREEDY, 0, 11, frozenset())
    left = 11
    for i, round in enumerate(decode(TARGET, drafting, RULES["coupled"], PROMPT, options)):
        assert len(round.proposal) == (0 if i == 0 else min(k, left - 1))
        assert i > 0 or not draft.calls
        left -= len(round.emitted)
    assert left == 0


@pytest.mark.parametrize("k", [0, 1, 4])
def test_each_round_is_one_pass_of_the_target_with_one_row_per_guess_and_one(k: int) -> None:
    target = CountingModel(TARGET)
    rounds = answer(FixedLength(DRAFTERS["nearly itself"](), k), target=target)
    expected = []
    done = len(PROMPT)
    for round in rounds:
        expected.append((done + len(round.proposal), len(round.proposal) + 1))
        done += len(round.emitted)
    assert target.calls == expected


@every_rule
def test_an_end_token_inside_of_an_accepted_block_cuts_it(rule: str) -> None:
    plain = greedy_by_hand(12, frozenset())
    end = max(plain, key=plain.index)  # the one that comes up last, and not in the first round
    ends = frozenset({end})
    # This drafter does not know the end tokens, and drafts past them.
    rounds = answer(FixedLength(model_drafter(ends=frozenset()), 8), rule=rule, ends=ends)
    cut = plain.index(end) + 1
    assert tokens_of(rounds) == plain[:cut]
    last = rounds[-1]
    assert last.finish == "stop"
    assert last.accepted == len(last.emitted) < len(last.proposal)
    assert last.source(len(last.emitted) - 1) == "model"


def test_a_model_drafter_stops_behind_an_end_token() -> None:
    end = greedy_by_hand(2, frozenset())[1]
    drafter = model_drafter(ends=frozenset({end}))
    guesses = list(drafter.draft(PROMPT, RULES["coupled"].chance(0, len(PROMPT))))
    assert [guess.token for guess in guesses][-1] == end
    assert [guess.token for guess in guesses].count(end) == 1


def test_a_model_drafter_stops_where_its_own_context_is_full() -> None:
    draft = replace(TARGET, context_size=len(PROMPT) + 2)
    chance = RULES["coupled"].chance(0, len(PROMPT))
    assert len(list(model_drafter(draft, frozenset()).draft(PROMPT, chance))) == 3
    rounds = answer(FixedLength(model_drafter(draft, frozenset()), 4))
    assert tokens_of(rounds) == greedy_by_hand(12, frozenset())
    assert not len(rounds[-1].proposal)


def test_a_wider_draft_never_guesses_an_id_that_the_target_does_not_have() -> None:
    wide = TableModel(lambda tokens: np.arange(VOCAB + 3, dtype=np.float32), VOCAB + 3)
    chance = RULES["coupled"].chance(0, len(PROMPT))
    assert next(model_drafter(wide).draft(PROMPT, chance)).token == VOCAB - 1


def test_a_bias_on_an_id_that_only_the_target_has_leaves_a_narrower_draft_alone() -> None:
    narrow = random_model(4, VOCAB - 1, order=1)
    sampling = replace(PLAIN, logit_bias=((VOCAB - 1, -2.0),))
    drafter = ModelDrafter(narrow, sampling, target_vocab=VOCAB, ends=frozenset())
    rounds = answer(FixedLength(drafter, 2), sampling=sampling)
    assert len(tokens_of(rounds)) == 12


def test_a_penalty_on_an_id_that_only_the_target_has_leaves_a_narrower_draft_alone() -> None:
    narrow = random_model(4, VOCAB - 1, order=1)
    sampling = replace(PLAIN, repeat_penalty=1.1, logit_bias=((VOCAB - 1, 50.0),))
    drafter = ModelDrafter(
        narrow, replace(sampling, logit_bias=()), target_vocab=VOCAB, ends=frozenset()
    )
    rounds = answer(FixedLength(drafter, 2), sampling=sampling)
    assert VOCAB - 1 in tokens_of(rounds)


class Fails:
    """A draft that breaks at its n-th evaluation."""

    vocab_size, context_size, can_roll_back = VOCAB, 4096, True

    def __init__(self, after: int, error: Exception) -> None:
        self.left, self.error = after, error

    def logits(self, tokens: Sequence[int], *, last: int):
        if self.left == 0:
            raise self.error
        self.left -= 1
        return TARGET.logits(tokens, last=last)


@pytest.mark.parametrize("after", range(8))
def test_a_draft_that_fails_does_not_end_the_answer(after: int) -> None:
    drafting = FixedLength(model_drafter(Fails(after, EvaluationError("no free cell"))), 3)
    rounds = answer(drafting, max_tokens=20)
    assert tokens_of(rounds) == greedy_by_hand(20, frozenset())
    assert drafting.decision == "drafting stopped: no free cell"
    assert not len(rounds[-1].proposal)


@pytest.mark.parametrize("error", [Interrupted(), RuntimeError("a bug")])
def test_other_errors_of_a_draft_are_not_swallowed(error: Exception) -> None:
    with pytest.raises(type(error)):
        answer(FixedLength(model_drafter(Fails(2, error)), 3))


def test_an_error_of_the_target_reaches_the_caller() -> None:
    with pytest.raises(EvaluationError, match="broken"):
        answer(NoDrafting(""), target=Fails(3, EvaluationError("broken")))


def test_time_is_split_between_draft_target_and_the_rest() -> None:
    """A clock that ticks once per look: four looks a round."""
    ticks = iter(range(10_000))
    options = DecodeOptions(GREEDY, 0, 5, frozenset())
    drafting = FixedLength(model_drafter(), 2)
    rounds = decode(TARGET, drafting, RULES["coupled"], PROMPT, options, lambda: next(ticks))
    for round in rounds:
        assert (round.seconds.draft, round.seconds.target, round.seconds.other) == (1, 1, 1)


class Remembers(NoDrafting):
    def __init__(self, guesses: int) -> None:
        super().__init__("")
        self.rounds: list[Round] = []
        self.seen: list[list[int]] = []
        self._policy = Policy(model_drafter(disturbed()), guesses)

    def propose(self, tokens: Sequence[int], limit: int, chance: Chance):
        self.seen.append(list(tokens))
        return self._policy.propose(tokens, limit, chance)

    def learn(self, round: Round) -> None:
        self.rounds.append(round)


def test_a_policy_sees_the_answer_so_far_and_each_round_once() -> None:
    drafting = Remembers(3)
    rounds = answer(drafting, max_tokens=15)
    assert drafting.rounds == rounds
    assert drafting.seen[0] == list(PROMPT)
    for (before, after), round in zip(pairwise(drafting.seen), rounds, strict=False):
        assert after == [*before, *round.emitted]


@every_rule
def test_the_same_seed_gives_the_same_rounds(rule: str) -> None:
    def play(seed: int) -> list[tuple[int, ...]]:
        drafter = ModelDrafter(disturbed(), PLAIN, target_vocab=VOCAB, ends=frozenset())
        drafting = FixedLength(drafter, 3)
        rounds = answer(drafting, rule=rule, sampling=PLAIN, seed=seed, max_tokens=30)
        return [round.emitted for round in rounds]

    assert play(4) == play(4)
    assert play(4) != play(5)


class Endless:
    source = "endless"

    def __init__(self) -> None:
        self.pulled = 0

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        while True:
            self.pulled += 1
            yield Guess(0)


def test_no_more_guesses_are_pulled_than_are_proposed() -> None:
    drafter = Endless()
    rounds = answer(FixedLength(drafter, 3), max_tokens=9)
    assert drafter.pulled == sum(len(round.proposal) for round in rounds)
