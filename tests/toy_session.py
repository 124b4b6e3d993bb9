"""A session of toy models on a clock of their own: every pass takes what a curve says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from specdec_cli.app import generate
from specdec_cli.app.bench import limit, measure
from specdec_cli.app.bench.costs import Costs
from specdec_cli.app.draft_models import Draft, Meaning
from specdec_cli.app.session import LoadOptions, Session
from specdec_cli.core.cost_curve import CostCurve
from specdec_cli.core.experience import Experience
from specdec_cli.engine.decoding import decode
from specdec_cli.engine.language_model import LanguageModel, Logits


@dataclass
class Clock:
    """Time that passes only where a model evaluates."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def rules(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Everything that a benchmark times is timed by this clock."""
        monkeypatch.setattr(generate, "decode", partial(decode, clock=self))
        for module in (limit, measure):
            monkeypatch.setattr(module, "perf_counter", self)


@dataclass
class TimedModel:
    """Another model with a memo, whose passes take time by their number of new rows.

    Attributes:
        passes: new rows of every pass.
        before: is called before each pass.
    """

    model: LanguageModel
    seconds: CostCurve
    clock: Clock
    passes: list[int] = field(default_factory=list)
    before: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.vocab_size = self.model.vocab_size
        self.context_size = self.model.context_size
        self.can_roll_back = self.model.can_roll_back
        self._memo: list[int] = []

    def logits(self, tokens: Sequence[int], *, last: int) -> Logits:
        self.before()
        new = len(tokens) - min(self.cached(tokens), len(tokens) - last)
        self._memo = list(tokens)
        self.passes.append(new)
        self.clock.now += self.seconds(new)
        return self.model.logits(tokens, last=last)

    def cached(self, tokens: Sequence[int]) -> int:
        same = 0
        for known, token in zip(self._memo, tokens, strict=False):
            if known != token:
                break
            same += 1
        return same

    def forget(self) -> None:
        self._memo = []


class ToySession(Session):
    """What a benchmark needs of a session, without files. Token 0 ends an answer."""

    def __init__(self, target: LanguageModel, **drafts: LanguageModel) -> None:
        vocabulary = SimpleNamespace(
            size=target.vocab_size, ends=frozenset({0}), piece=lambda token: b"%d " % token
        )
        model: Any = SimpleNamespace(vocabulary=vocabulary, size=4)
        small: Any = SimpleNamespace(size=1)
        self.options = LoadOptions(Path("toy.gguf"), draft_tokens=31)
        self.model = model
        self.target: Any = target
        self.drafts = tuple(
            Draft(name, name, small, context, context, Meaning())  # type: ignore[arg-type]
            for name, context in drafts.items()
        )
        self.context_size = target.context_size
        self.experience = Experience()
        self.stop = Event()


def exact_costs(target: TimedModel, drafts: Mapping[str, TimedModel]) -> Costs:
    """What a measurement without noise would find."""
    return Costs(8, target.seconds, {name: draft.seconds for name, draft in drafts.items()})
