"""Policies: which drafter to pull from, and how many guesses to pull, each round."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from specdec_cli.core.chance import Chance
from specdec_cli.core.rounds import NOTHING, Guess, Proposal, Round
from specdec_cli.core.verification import TargetRows
from specdec_cli.engine.drafters import Drafter
from specdec_cli.errors import EvaluationError


class Drafting(Protocol):
    @property
    def decision(self) -> str:
        """Why it drafts or not, for people."""

    def propose(self, tokens: Sequence[int], limit: int, chance: Chance) -> Proposal:
        """At most `limit` guesses for what follows `tokens`; none is always correct."""

    @property
    def plain_seconds(self) -> float | None:
        """What a plain pass would take now, where that is known."""

    def learn(self, round: Round, target: TargetRows) -> None:
        """See what became of the last proposal.

        Args:
            target: the target's distributions of this round, valid until its next pass.
        """


class NoDrafting:
    """Plain decoding: the same loop, an empty proposal."""

    plain_seconds = None

    def __init__(self, decision: str) -> None:
        self.decision = decision

    def propose(self, tokens: Sequence[int], limit: int, chance: Chance) -> Proposal:
        return NOTHING

    def learn(self, round: Round, target: TargetRows) -> None:
        pass


class FixedLength:
    """The same number of guesses in every round but the first.

    The first round is the prompt's: guesses there would put the draft's own reading of the prompt
    before the first token. `at_once` guesses there too.
    """

    plain_seconds = None

    def __init__(self, drafter: Drafter, length: int, *, at_once: bool = False) -> None:
        self._drafter = drafter
        self._length = length
        self._prompt_read = at_once
        self._asked = self._proposed = 0  # rounds
        self._failure = ""

    @property
    def decision(self) -> str:
        if self._failure:
            return self._failure
        if not self._asked:
            return "the answer ended before a draft was due"
        if not self._proposed:
            return f"the {self._drafter.source} drafter found nothing to guess"
        return f"{self._length} guesses a round from the {self._drafter.source} drafter"

    def propose(self, tokens: Sequence[int], limit: int, chance: Chance) -> Proposal:
        if not self._prompt_read:
            return NOTHING
        guesses: list[Guess] = []
        try:
            for guess in islice(self._drafter.draft(tokens, chance), min(self._length, limit)):
                guesses.append(guess)  # kept even if the next one fails: it was drawn
        except EvaluationError as error:  # the answer goes on without the draft
            self._length = 0
            self._failure = f"drafting stopped: {error.message}"
        self._asked += limit > 0
        self._proposed += bool(guesses)
        return Proposal(tuple(guesses), self._drafter.source) if guesses else NOTHING

    def learn(self, round: Round, target: TargetRows) -> None:
        self._prompt_read = True
