"""Talking to a model: one turn after another, each of which reads only what is new."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from specdec_cli.app.chat.conversation import Conversation
from specdec_cli.app.chat.events import Event, Notice, NotSaved, Proposed
from specdec_cli.app.chat.prompt_cache import PromptCache
from specdec_cli.app.chat.store import Store
from specdec_cli.app.chat.totals import Totals
from specdec_cli.app.chat.why import Explanation
from specdec_cli.app.session import Session
from specdec_cli.core.options import SamplingOptions


@dataclass(frozen=True, slots=True)
class Settings:
    """What `/set` changes; `dataclasses.replace` makes the next one.

    Attributes:
        plain: the reason where speculation is off (`/spec off`), else empty.
        draft_tokens: at most what the session was loaded for.
    """

    sampling: SamplingOptions = field(default_factory=SamplingOptions)
    seed: int = 0
    rule: str = "coupled"
    drafter: str = "auto"
    draft_tokens: int = 4
    max_tokens: int | None = None
    stops: tuple[str, ...] = ()
    plain: str = ""
    on_full: Literal["stop", "drop-oldest"] = "stop"


class ContextUse(NamedTuple):
    used: int
    size: int


class Talk:
    """A conversation with a loaded model.

    Set `settings` at any time between turns. The conversation is replaced with `replace`, so that
    the change is saved. Another model is another `Talk` with the same conversation and totals.

    Raises:
        ModelFileError: the model has no usable chat template.
    """

    def __init__(
        self,
        session: Session,
        conversation: Conversation,
        settings: Settings,
        *,
        store: Store | None = None,
        prompt_cache: PromptCache | None = None,
        totals: Totals | None = None,
        on_proposal: Callable[[Proposed], None] | None = None,
    ) -> None:
        self.session = session
        self.conversation = conversation
        self.settings = settings
        self.totals = totals or Totals()
        self.notice = ""  # about the template, for the start of a chat
        self.speedup: float | None = None  # of the last answer, over plain decoding
        raise NotImplementedError

    def ask(self, text: str) -> Iterator[Event]:
        """Answer a question. Nothing is changed if it raises before the first event.

        Setting `session.stop` ends the answer within a target pass; its text is kept as partial.
        So it is when the iterator is closed early or an evaluation fails.

        Raises:
            PromptTooLong: the context is full, and `on_full` does not make room or cannot.
            UsageError, ModelFileError: the template fails on these messages.
            EvaluationError: llama.cpp failed in the middle; what was said is kept.
        """
        raise NotImplementedError

    def retry(self, seed: int | None = None) -> Iterator[Event]:
        """Answer the last question again, with a new random seed if none is given.

        The old answer stays until the new one has begun.

        Raises:
            UsageError: there is no question; and as `ask`.
        """
        raise NotImplementedError

    def go_on(self) -> Iterator[Event]:
        """Go on with an answer that was cut off. The events carry the new text only.

        Raises:
            UsageError: the last answer is complete; and as `ask`.
        """
        raise NotImplementedError

    def replace(self, conversation: Conversation) -> NotSaved | None:
        """Go on with another conversation or another version of this one, and save it."""
        raise NotImplementedError

    def context_use(self) -> ContextUse:
        """Tokens that the conversation takes, and room for them."""
        raise NotImplementedError

    def why(self, count: int = 3) -> list[Explanation]:
        """The last refusals of the last answer, oldest first. Evaluates the draft a little."""
        raise NotImplementedError

    def close(self) -> list[Notice]:
        """Keep on disk what the models have read, and let go of the conversation's file."""
        raise NotImplementedError
