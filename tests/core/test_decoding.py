"""The decode loop on a toy model: what it emits, what it asks for, and where it stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from greedy_loop import (
    ENDS,
    PROMPT,
    TARGET,
    VOCAB,
    answer,
    disturbed,
    greedy_by_hand,
    model_drafter,
    tokens_of,
)
from toy import (
    GREEDY,
    PLAIN,
    CountingModel,
    FailingModel,
    FixedGuess,
    PointDrafter,
    Policy,
    random_model,
)

from specdec_cli.core.chance import Chance
from specdec_cli.core.rounds import Proposal, Round
from specdec_cli.core.verification import RULES, TargetRows
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafters import Drafter, ModelDrafter, SuffixDrafter
from specdec_cli.engine.drafting import FixedLength, NoDrafting
from specdec_cli.engine.language_model import Logits
from specdec_cli.errors import EvaluationError

every_rule = pytest.mark.parametrize("rule", RULES)


DRAFTERS: dict[str, Callable[[], Drafter]] = {
    "itself": model_drafter,
    "nearly itself": lambda: model_drafter(disturbed()),
    "another": lambda: model_drafter(random_model(4, VOCAB, order=1)),
    "point": lambda: PointDrafter(disturbed()),
    "suffix": lambda: SuffixDrafter(ends=ENDS, min_match=1),
    "fixed": lambda: FixedGuess(2),
    "end token": lambda: FixedGuess(5),
}


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


def test_an_error_of_the_target_reaches_the_caller() -> None:
    with pytest.raises(EvaluationError, match="broken"):
        answer(
            NoDrafting(""),
            target=FailingModel(TARGET, 3, EvaluationError("broken", why="a test", fix="none")),
        )


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

    def learn(self, round: Round, target: TargetRows) -> None:
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


def test_a_target_that_turns_out_not_to_roll_back_is_decoded_plainly() -> None:
    """Found out in mid-answer, as when a cache refuses to drop a suffix: no more proposals."""

    class Stubborn(CountingModel):
        def logits(self, tokens, *, last):
            self.can_roll_back = len(self.calls) < 3
            return super().logits(tokens, last=last)

    target = Stubborn(random_model(1, 5))
    drafter = ModelDrafter(random_model(2, 5), GREEDY, target_vocab=5, ends=frozenset())
    options = DecodeOptions(GREEDY, 0, 20, frozenset())
    rounds = list(decode(target, FixedLength(drafter, 3), RULES["coupled"], (1,), options))
    assert [len(round.proposal) for round in rounds][:2] == [0, 3]
    assert {len(round.proposal) for round in rounds[4:]} == {0}
    plain = decode(random_model(1, 5), NoDrafting(""), RULES["coupled"], (1,), options)
    emitted = [token for round in rounds for token in round.emitted]
    assert emitted == [token for round in plain for token in round.emitted]


class Watcher:
    """Looks on slowly, and keeps what it saw."""

    def __init__(self) -> None:
        self.now = 0.0
        self.seen: list[tuple[str, int]] = []

    def clock(self) -> float:
        return self.now

    def proposed(self, proposal: Proposal) -> None:
        self.now += 100
        self.seen.append(("proposed", len(proposal)))

    def judged(self, tokens: Sequence[int], rows: Logits, round: Round) -> None:
        self.now += 100
        assert len(rows) == len(round.proposal) + 1
        assert int(rows[round.accepted].argmax()) == round.emitted[round.accepted]
        self.seen.append(("judged", len(tokens)))


def test_an_observer_sees_every_round_and_costs_it_nothing() -> None:
    watcher, target = Watcher(), CountingModel(TARGET)
    rounds = list(
        decode(
            target,
            FixedLength(model_drafter(disturbed()), 3),
            RULES["coupled"],
            PROMPT,
            DecodeOptions(GREEDY, 0, 12, frozenset()),
            clock=watcher.clock,
            observer=watcher,
        )
    )
    assert {round.seconds.total for round in rounds} == {0.0}
    lengths = [len(PROMPT)]
    for round in rounds[:-1]:
        lengths.append(lengths[-1] + len(round.emitted))
    assert watcher.seen == [
        event
        for round, length in zip(rounds, lengths, strict=True)
        for event in (("proposed", len(round.proposal)), ("judged", length))
    ]
