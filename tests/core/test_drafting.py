"""Drafters and policies on toy models: what they guess, where they stop, how they fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from greedy_loop import PROMPT, TARGET, VOCAB, answer, greedy_by_hand, model_drafter, tokens_of
from toy import PLAIN, FailingModel, TableModel, random_model

from specdec_cli.core.chance import Chance
from specdec_cli.core.rounds import Guess
from specdec_cli.core.verification import RULES
from specdec_cli.engine.drafters import ModelDrafter
from specdec_cli.engine.drafting import FixedLength
from specdec_cli.engine.language_model import Interrupted
from specdec_cli.errors import EvaluationError


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


@pytest.mark.parametrize("after", range(8))
def test_a_draft_that_fails_does_not_end_the_answer(after: int) -> None:
    drafting = FixedLength(
        model_drafter(
            FailingModel(TARGET, after, EvaluationError("no free cell", why="a test", fix="none"))
        ),
        3,
    )
    rounds = answer(drafting, max_tokens=20)
    assert tokens_of(rounds) == greedy_by_hand(20, frozenset())
    assert drafting.decision == "drafting stopped: no free cell"
    assert not len(rounds[-1].proposal)


@pytest.mark.parametrize("error", [Interrupted(), RuntimeError("a bug")])
def test_other_errors_of_a_draft_are_not_swallowed(error: Exception) -> None:
    with pytest.raises(type(error)):
        answer(FixedLength(model_drafter(FailingModel(TARGET, 2, error)), 3))


class Endless:
    source = "endless"
    memoryless = True

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
