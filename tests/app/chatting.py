"""Chats for tests: a turn run to its end, what it read, and what a fresh process would say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from specdec_cli.app.chat.conversation import Conversation
from specdec_cli.app.chat.events import Event, Reading, Started
from specdec_cli.app.chat.talk import Settings, Talk
from specdec_cli.app.draft_models import DraftFile
from specdec_cli.app.generate import Answer, AnswerOptions, Token, answer
from specdec_cli.app.session import LoadOptions, Session
from specdec_cli.core.options import SamplingOptions
from specdec_cli.engine.llama.chat_template import ChatTemplate
from specdec_cli.engine.llama.context import LlamaContext
from specdec_cli.engine.llama.numerics import Numerics

EXACT = Numerics(pairs=True, flash_attention="off")  # what the probe finds for SmolLM2's Q4_1
GREEDY = SamplingOptions(temp=0)


def load(target: Path, *drafts: Path, size: int = 2048, exact: bool = True) -> Session:
    names = ("model", "second")
    files = tuple(DraftFile(path, name) for path, name in zip(drafts, names, strict=False))
    return Session(
        LoadOptions(
            target,
            files,
            draft_tokens=8,
            context_size=size,
            threads=2 if exact else 1,
            numerics=EXACT if exact else Numerics(),
        )
    )


@dataclass
class Turn:
    """A turn that has ended."""

    events: list[Event]

    def __post_init__(self) -> None:
        self.answer = next(event for event in self.events if isinstance(event, Answer))
        self.started = next(event for event in self.events if isinstance(event, Started))
        self.readings = {e.model: e for e in self.events if isinstance(e, Reading)}

    @property
    def shown(self) -> str:
        text = "".join(event.text for event in self.events if isinstance(event, Token))
        return text + "".join(piece.text for piece in self.answer.rest)


def run(events: Iterator[Event]) -> Turn:
    return Turn(list(events))


@dataclass
class Evaluations:
    """What llama.cpp was given: (first position, tokens) a call."""

    calls: list[tuple[int, list[int]]] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(len(tokens) for _, tokens in self.calls)


@contextmanager
def evaluations(context: LlamaContext) -> Iterator[Evaluations]:
    """Counts below everything that could claim not to evaluate."""
    seen = Evaluations()
    evaluate = LlamaContext._evaluate

    def counting(self: LlamaContext, tokens: list[int], start: int, *, rows: int) -> None:
        if self is context:
            seen.calls.append((start, list(tokens)))
        evaluate(self, tokens, start, rows=rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LlamaContext, "_evaluate", counting)
        yield seen


def prompt_of(session: Session, conversation: Conversation) -> list[int]:
    """As a fresh process makes it of the messages, up to the last question."""
    asked = conversation.without_last_answer()
    return ChatTemplate(session.model).tokens(asked.for_template())


def from_nothing(session: Session, prompt: list[int], settings: Settings, seed: int) -> Answer:
    """What a model that has read nothing answers, plainly."""
    session.forget()
    options = AnswerOptions(
        settings.sampling, seed, max_tokens=settings.max_tokens, stops=settings.stops
    )
    *_, last = answer(session, prompt, options, no_draft="fresh")
    assert isinstance(last, Answer)
    return last


def common(left: list[int], right: list[int]) -> int:
    pairs = zip(left, right, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


def fail_after(talk: Talk, calls: int, error: Exception, patch: pytest.MonkeyPatch) -> None:
    """Let the target's evaluation fail after some good ones."""
    evaluate, left = LlamaContext._evaluate, [calls]

    def failing(self: LlamaContext, tokens: list[int], start: int, *, rows: int) -> None:
        if self is talk.session.target:
            if left[0] == 0:
                raise error
            left[0] -= 1
        evaluate(self, tokens, start, rows=rows)

    patch.setattr(LlamaContext, "_evaluate", failing)
