"""`/why`: the last guesses that the target refused, and what both models thought."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from specdec_cli.app.chat.events import Proposed
from specdec_cli.app.session import SUFFIX, Session
from specdec_cli.core.chance import SharedNoise
from specdec_cli.core.distribution import Distribution, Row, distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Guess, Proposal, Round
from specdec_cli.engine.language_model import Logits, Vocabulary

KEPT = 8  # refusals; a row of logits each
TOP = 5
SHOWN_BEFORE = 24  # tokens


@dataclass(frozen=True, slots=True)
class Choice:
    """A token, as text, and the probability a model gave it before any sampling filter."""

    token: int
    text: str
    prob: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """One refusal.

    Attributes:
        before: the end of the text in front of the refused token.
        drafted: the draft's token, with the draft's own probability.
        drafted_by_target: the same token with the target's probability.
        chosen: the target's token, with the target's probability.
        chosen_by_draft: the same token with the draft's probability.
        draft_top, target_top: the five likeliest of each; the draft's are one where it is certain.
        drawn: chosen by chance and not because it was the likeliest.
    """

    source: str
    before: str
    drafted: Choice
    drafted_by_target: Choice
    chosen: Choice
    chosen_by_draft: Choice
    draft_top: tuple[Choice, ...]
    target_top: tuple[Choice, ...]
    drawn: bool


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """A guess that did not stand: what was before it, and the target's row there."""

    source: str
    before: list[int]
    guess: Guess
    chosen: int
    row: Row


class Witness:
    """Sees the rounds of an answer: shows proposals, and keeps what `/why` needs.

    A refusal costs the copy of one row; everything else waits until somebody asks.
    """

    def __init__(
        self, vocabulary: Vocabulary, on_proposal: Callable[[Proposed], None] | None
    ) -> None:
        self.refusals: deque[Refusal] = deque(maxlen=KEPT)
        self._vocabulary = vocabulary
        self._on_proposal = on_proposal

    def proposed(self, proposal: Proposal) -> None:
        if self._on_proposal is not None and proposal.guesses:
            decoder = codecs.getincrementaldecoder("utf-8")("ignore")
            texts = tuple(decoder.decode(self._vocabulary.piece(t)) for t in proposal.tokens)
            self._on_proposal(Proposed(texts, proposal.source))

    def judged(self, tokens: Sequence[int], rows: Logits, round: Round) -> None:
        at = round.accepted
        if at < min(len(round.proposal), len(round.emitted)):
            before = [*tokens, *round.proposal.tokens[:at]]
            guess = round.proposal.guesses[at]
            row = rows[at].copy()
            self.refusals.append(
                Refusal(round.proposal.source, before, guess, round.emitted[at], row)
            )


def explain(refusal: Refusal, session: Session, sampling: SamplingOptions) -> Explanation:
    """What both models thought. The draft is asked again: it keeps no rows.

    Raises:
        EvaluationError: it failed.
    """
    unfiltered = replace(sampling, temp=1.0, top_k=0, top_p=1.0, min_p=0.0)
    target = distribution(refusal.row, unfiltered, refusal.before)
    draft = _drafts_law(refusal, session, unfiltered)
    vocabulary = session.model.vocabulary

    def choice(law: Distribution, token: int) -> Choice:
        return Choice(token, _text(vocabulary, [token]), law.prob(token))

    def top(law: Distribution) -> tuple[Choice, ...]:
        best = np.argsort(-law.probs, kind="stable")[:TOP]
        return tuple(choice(law, int(law.ids[at])) for at in best)

    drafted, chosen = refusal.guess.token, refusal.chosen
    target_top = top(target)
    return Explanation(
        source=refusal.source,
        before=_text(vocabulary, refusal.before[-SHOWN_BEFORE:]),
        drafted=choice(draft, drafted),
        drafted_by_target=choice(target, drafted),
        chosen=choice(target, chosen),
        chosen_by_draft=choice(draft, chosen),
        draft_top=top(draft),
        target_top=target_top,
        drawn=chosen != target_top[0].token,
    )


def _drafts_law(refusal: Refusal, session: Session, unfiltered: SamplingOptions) -> Distribution:
    drafter = None if refusal.source == SUFFIX else session.drafter(unfiltered, refusal.source)
    guesses = iter(()) if drafter is None else drafter.draft(refusal.before, SharedNoise(0))
    return next(guesses, refusal.guess).law


def _text(vocabulary: Vocabulary, tokens: Sequence[int]) -> str:
    return b"".join(vocabulary.spelling(token) for token in tokens).decode("utf-8", "replace")
