"""Answer one prompt: rounds of tokens in, text and numbers out."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Literal

from specdec_cli.app.session import NO_ROLL_BACK, Session
from specdec_cli.app.speculation import drafting
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.statistics import Statistics
from specdec_cli.core.text import Piece, TextStream
from specdec_cli.core.verification import RULES
from specdec_cli.engine.decoding import DecodeOptions, Observer, decode
from specdec_cli.engine.language_model import Interrupted
from specdec_cli.errors import PromptTooLong, UsageError

AUTO = "auto"  # how a draft length of None is written
Finish = Literal["stop", "length", "context", "interrupted"]


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """How to answer. `seed` is a number by now: a random one is drawn where options are read."""

    sampling: SamplingOptions = field(default_factory=SamplingOptions)
    seed: int = 0
    rule: str = "coupled"
    drafter: str = "auto"  # a draft's name, `suffix`, or all there are
    draft_tokens: int | None = None  # guesses a round; None: as many as pay
    max_tokens: int | None = None
    stops: tuple[str, ...] = ()
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """One emitted token, and the text that it makes safe to show (often its own, never half)."""

    id: int
    source: str
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a stream of tokens: everything there is to know about it."""

    text: str
    rest: tuple[Piece, ...]  # text that no token event carried: held back when interrupted
    tokens: tuple[int, ...]
    finish: Finish
    stop: str | None  # the stop text that ended it
    prompt_tokens: int
    cached_tokens: int  # of the prompt, read from the cache
    statistics: Statistics
    first_token_seconds: float | None
    decision: str  # why it drafted or not


def random_seed() -> int:
    return secrets.randbits(32)


def answer(
    session: Session,
    prompt: Sequence[int],
    options: AnswerOptions,
    *,
    no_draft: str = "",
    observer: Observer | None = None,
) -> Iterator[Token | Statistics | Answer]:
    """Stream an answer: tokens, the running statistics after each round, the `Answer` at the end.

    Args:
        no_draft: a reason to decode plainly.
        observer: looks on at every round.

    Raises:
        PromptTooLong: the prompt leaves no room for a token.
        UsageError: the prompt is empty, or an option names a token the model does not have.
    """
    called = perf_counter()
    check_prompt(prompt, session.context_size)
    sampling = effective_sampling(session, options)
    policy = drafting(
        session,
        sampling,
        rule=options.rule,
        drafter=options.drafter,
        length=options.draft_tokens,
        off=no_draft,
    )
    stream = TextStream(options.stops)
    statistics = Statistics()
    tokens: list[int] = []
    shown: list[str] = []
    finish: Finish = "length"
    first_token: float | None = None
    cached = min(session.target.cached(prompt), len(prompt) - 1)

    def show(pieces: list[Piece]) -> tuple[Piece, ...]:
        nonlocal first_token
        if pieces and first_token is None:
            first_token = perf_counter() - called
        shown.extend(piece.text for piece in pieces)
        return tuple(pieces)

    decoding = DecodeOptions(
        sampling, options.seed, options.max_tokens, session.model.vocabulary.ends
    )
    rounds = (
        decode(session.target, policy, RULES[options.rule], prompt, decoding, observer=observer)
        if options.max_tokens != 0
        else iter(())
    )
    try:
        for round in rounds:
            events: list[Token] = []
            for i, token in enumerate(round.emitted):
                source = round.source(i)
                pieces = stream.add(session.model.vocabulary.piece(token), source)
                if stream.stopped is not None:
                    round = round.through(i + 1, "stop")
                if round.finish and i + 1 == len(round.emitted):
                    pieces += stream.finish(source)
                events.append(Token(token, source, show(pieces)))
                if stream.stopped is not None:
                    break
            statistics.add(round)
            statistics.plain_seconds = policy.plain_seconds
            tokens += round.emitted
            yield from events
            yield statistics
            if round.finish:
                finish = round.finish
                break
            if session.stop.is_set():
                finish = "interrupted"
                break
    except Interrupted:
        finish = "interrupted"
    rest = show(stream.finish("target"))
    yield Answer(
        text="".join(shown),
        rest=rest,
        tokens=tuple(tokens),
        finish=finish,
        stop=stream.stopped,
        prompt_tokens=len(prompt),
        cached_tokens=cached,
        statistics=statistics,
        first_token_seconds=first_token,
        decision=policy.decision if session.target.can_roll_back else NO_ROLL_BACK,
    )


def check_prompt(prompt: Sequence[int], context_size: int) -> None:
    """Raises:
    UsageError: there are no tokens.
    PromptTooLong: they leave no room for one more.
    """
    if not prompt:
        raise UsageError(
            "the prompt is empty", why="it has no tokens", fix="give some text to continue"
        )
    if len(prompt) >= context_size:
        raise PromptTooLong(
            f"the prompt has {len(prompt)} tokens, the context {context_size}",
            why="there is no room for an answer",
            fix=f"use -c {len(prompt) + 512} or more, or a shorter prompt",
        )


def effective_sampling(session: Session, options: AnswerOptions) -> SamplingOptions:
    """The request's sampling with `--ignore-eos` spelled out, checked against the vocabulary."""
    vocabulary = session.model.vocabulary
    for token, _ in options.sampling.logit_bias:
        if token >= vocabulary.size:
            raise UsageError(
                f"--logit-bias names token {token}",
                why=f"the model has {vocabulary.size} tokens, the last is {vocabulary.size - 1}",
                fix="run --json lists the token ids of an answer",
            )
    if not options.ignore_eos:
        return options.sampling
    banned = tuple((token, float("-inf")) for token in sorted(vocabulary.ends))
    return replace(options.sampling, logit_bias=(*options.sampling.logit_bias, *banned))
