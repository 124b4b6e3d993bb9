"""The decode loop: propose, evaluate, verify, emit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Protocol

from specdec_cli.core.distribution import Distribution, distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Finish, Proposal, Round, Seconds, Verdict
from specdec_cli.core.verification import Rule, TargetRows
from specdec_cli.engine.drafting import Drafting
from specdec_cli.engine.language_model import LanguageModel, Logits


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """How to decode. `max_tokens` None means until an end token or a full context."""

    sampling: SamplingOptions
    seed: int
    max_tokens: int | None
    ends: frozenset[int]


class Observer(Protocol):
    """Looks on. The time it takes is in no round."""

    def proposed(self, proposal: Proposal) -> None:
        """Guesses, possibly none, that the target is about to judge."""

    def judged(self, tokens: Sequence[int], rows: Logits, round: Round) -> None:
        """What became of them.

        Args:
            tokens: what stood before the round.
            rows: the target's logits, shape (guesses + 1, vocab); a view, to be copied if kept.
        """


def decode(
    target: LanguageModel,
    drafting: Drafting,
    rule: Rule,
    prompt: Sequence[int],
    options: DecodeOptions,
    clock: Callable[[], float] = perf_counter,
    observer: Observer | None = None,
) -> Iterator[Round]:
    """Answer `prompt`, one target pass at a time; the last round says why it is the last.

    The prompt must leave room for one token. Time in which the consumer holds the generator is
    in no round. Closing the generator at any point leaves both models usable: their caches are
    memos, and the next call reconciles them.
    """
    tokens = list(prompt)
    while True:
        started = clock()
        room, at_the_limit = _room(target, tokens, len(tokens) - len(prompt), options)
        chance = rule.chance(options.seed, len(tokens))
        wanted = room - 1 if target.can_roll_back else 0
        proposal = drafting.propose(tokens, wanted, chance)
        drafted = clock()
        if observer is not None:
            observer.proposed(proposal)
        asked = clock()
        rows = target.logits([*tokens, *proposal.tokens], last=len(proposal) + 1)
        evaluated = clock()
        laws = _lazy_distributions(rows, tokens, proposal, options.sampling)
        verdict = rule.verify(proposal, laws, chance, len(tokens))
        emitted, finish = _through_end(proposal, verdict, room, at_the_limit, options.ends)
        drafting_time, target_time = drafted - started, evaluated - asked
        seconds = Seconds(drafting_time, target_time, clock() - evaluated)
        accepted = min(verdict.accepted, len(emitted))
        round = Round(emitted, proposal, accepted, seconds, finish)
        drafting.learn(round, laws)
        if observer is not None:
            observer.judged(tokens, rows, round)
        yield round
        if finish:
            return
        tokens += emitted


def _room(
    target: LanguageModel, tokens: Sequence[int], emitted: int, options: DecodeOptions
) -> tuple[int, Finish]:
    """How many tokens may still be emitted, and what to call it when they have been."""
    context = target.context_size - len(tokens)
    if options.max_tokens is not None and options.max_tokens - emitted <= context:
        return options.max_tokens - emitted, "length"
    return context, "context"


def _lazy_distributions(
    rows: Logits, tokens: Sequence[int], proposal: Proposal, sampling: SamplingOptions
) -> TargetRows:
    """The target's distribution after the first i guesses; rows past a rejection cost nothing."""

    @cache
    def row(i: int) -> Distribution:
        return distribution(rows[i], sampling, [*tokens, *proposal.tokens[:i]])

    return row


def _through_end(
    proposal: Proposal,
    verdict: Verdict,
    room: int,
    at_the_limit: Finish,
    ends: frozenset[int],
) -> tuple[tuple[int, ...], Finish | None]:
    """The round's tokens through the first end token, and why the answer ends there, if it does."""
    emitted = (*proposal.tokens[: verdict.accepted], verdict.token)
    for i, token in enumerate(emitted):
        if token in ends:
            return emitted[: i + 1], "stop"
    return emitted, at_the_limit if len(emitted) >= room else None
