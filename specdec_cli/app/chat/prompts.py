"""Conversation -> prompt ids, and making a conversation fit the context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple

from specdec_cli.app.chat.conversation import Conversation, Message
from specdec_cli.app.session import Session
from specdec_cli.core.rounds import TARGET
from specdec_cli.core.text import Piece
from specdec_cli.core.thinking import ThinkingStream, opens_thoughts
from specdec_cli.engine.llama.chat_template import ChatTemplate
from specdec_cli.errors import ModelFileError, PromptTooLong, SpecdecError, UsageError

OnFull = Literal["stop", "drop-oldest"]
TAIL = 16  # tokens in which a template may open the model's thoughts


class ContextUse(NamedTuple):
    used: int
    size: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is given.

    Attributes:
        asked: the conversation behind it, which may have lost its oldest turns.
        spared: tokens by which those made it shorter.
        thinking: the answer begins, or goes on, inside the model's thoughts.
    """

    asked: Conversation
    tokens: list[int]
    spared: int
    thinking: bool


class Prompts:
    """The model's template, for conversations.

    Raises:
        ModelFileError: the model has none that could be used.
    """

    def __init__(self, session: Session) -> None:
        self._size = session.context_size
        self._spelling = session.model.vocabulary.spelling
        self._counted: tuple[Conversation, int] | None = None
        with _in_the_words_of_a_chat():
            self._template = ChatTemplate(session.model)
        self.notice = self._template.notice

    def use(self, conversation: Conversation) -> ContextUse:
        """Tokens that a conversation takes, and room for them."""
        if self._counted is None or self._counted[0] is not conversation:
            used = 0
            if conversation.turns:
                with suppress(SpecdecError):  # the next question will say what is wrong
                    used = len(self._tokens(conversation))
            self._counted = conversation, used
        return ContextUse(self._counted[1], self._size)

    def fitting(
        self,
        asked: Conversation,
        begun: Message | None,
        *,
        on_full: OnFull,
        max_tokens: int | None,
    ) -> Prompt:
        """The prompt, less the oldest turns where that is wanted and needed.

        Turns are dropped when less than an eighth of the context is left for the answer, and then
        until a quarter is: what is dropped changes the beginning of the prompt, so all of it is
        read again, and that should not happen in every turn.

        Args:
            begun: the answer that the model goes on with.

        Raises:
            PromptTooLong: there is no room for a single token of an answer.
            UsageError, ModelFileError: the template fails on these messages.
        """
        said = begun.content if begun else ""
        tokens = self._tokens(asked, said)
        whole = len(tokens)
        needed = min(self._size // 8, self._size if max_tokens is None else max_tokens)
        if on_full == "drop-oldest" and self._size - len(tokens) < needed:
            while self._size - len(tokens) < self._size // 4 and asked.dropped < asked.turns - 1:
                asked = asked.dropping(asked.dropped + 1)
                tokens = self._tokens(asked, said)
        if len(tokens) >= self._size:
            alone = len(self._tokens(asked.dropping(asked.turns - 1), said))
            raise self._too_long(len(tokens), alone)
        thinking = self._thinking(tokens, "")
        if begun is not None:
            thinking = self._thinking(self._tokens(asked), said)
        return Prompt(asked, tokens, whole - len(tokens), thinking)

    def _tokens(self, conversation: Conversation, begun: str = "") -> list[int]:
        with _in_the_words_of_a_chat():
            return self._template.tokens(conversation.for_template(), begun=begun)

    def _thinking(self, tokens: list[int], begun: str) -> bool:
        tail = b"".join(self._spelling(token) for token in tokens[-TAIL:])
        stream = ThinkingStream(inside=opens_thoughts(tail.decode("utf-8", "replace")))
        stream.add([Piece(begun, TARGET)])
        return stream.thinking

    def _too_long(self, length: int, alone: int) -> PromptTooLong:
        """Args:
        alone: tokens of the last question without the turns before it.
        """
        message = f"the context is full: {length:,} tokens, room for {self._size:,}"
        if alone < self._size:
            return PromptTooLong(
                message,
                why="the conversation with this question is longer",
                fix="make room: /clear, /undo, or /set on-full drop-oldest",
            )
        return PromptTooLong(
            message,
            why=f"this question alone has {alone:,}",
            fix=f"say it with less, or start with -c {alone + 512}",
        )


@contextmanager
def _in_the_words_of_a_chat() -> Iterator[None]:
    """Errors of the template, with what can be done about them here."""
    try:
        yield
    except UsageError as error:
        raise UsageError(
            error.message, why=error.why, fix="take it out with /set system, and say it yourself"
        ) from error
    except ModelFileError as error:
        raise ModelFileError(
            error.message, why=error.why, fix="chat with another model; `run --raw` needs none"
        ) from error
