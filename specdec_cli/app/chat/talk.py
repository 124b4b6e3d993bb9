"""Talking to a model: one turn after another, each of which reads only what is new."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from specdec_cli.app.chat.answers import as_message, cut_short, details_of
from specdec_cli.app.chat.conversation import Conversation, Message
from specdec_cli.app.chat.events import Dropped, Event, Notice, NotSaved, Proposed, Started
from specdec_cli.app.chat.prompt_cache import PromptCache
from specdec_cli.app.chat.prompts import ContextUse, Prompts
from specdec_cli.app.chat.remembering import Memory
from specdec_cli.app.chat.settings import Settings
from specdec_cli.app.chat.store import ConversationError, Store
from specdec_cli.app.chat.totals import Tally, Totals
from specdec_cli.app.chat.why import Explanation, Witness, explain
from specdec_cli.app.generate import Answer, AnswerOptions, Token, answer, random_seed
from specdec_cli.app.session import Session
from specdec_cli.core.rounds import TARGET
from specdec_cli.errors import UsageError

__all__ = ["ContextUse", "Settings", "Talk"]


class Talk:
    """A conversation with a loaded model.

    Set `settings` at any time between turns. The conversation is replaced with `replace`, so that
    the change is saved. Another model is another `Talk` with the same conversation and totals.

    Attributes:
        notice: about the template, for the start of a chat; empty where there is nothing to say.

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
        self._store = store
        self._memory = Memory(session, prompt_cache)
        self._tally = Tally(totals or Totals())
        self._on_proposal = on_proposal
        self._witness = Witness(session.model.vocabulary, on_proposal)
        self._prompts = Prompts(session)
        self.notice = self._prompts.notice

    @property
    def totals(self) -> Totals:
        return self._tally.totals

    @property
    def speedup(self) -> float | None:
        """Of the last answer over plain decoding; None where plain was not measured."""
        return self._tally.speedup

    def ask(self, text: str) -> Iterator[Event]:
        """Answer a question. Nothing is changed if it raises before the first event.

        Setting `session.stop` ends the answer within a target pass; its text is kept as partial.
        So it is when the iterator is closed early or an evaluation fails.

        Raises:
            PromptTooLong: the context is full, and `on_full` does not make room or cannot.
            UsageError, ModelFileError: the template fails on these messages.
            EvaluationError: llama.cpp failed in the middle; what was said is kept.
        """
        return self._turn(self.conversation.say(text), self.settings.seed, new=True)

    def retry(self, seed: int | None = None) -> Iterator[Event]:
        """Answer the last question again, with a new random seed if none is given.

        The old answer stays until the new one has begun.

        Raises:
            UsageError: there is no question; and as `ask`.
        """
        if not self.conversation.turns:
            raise UsageError(
                "there is nothing to answer again", why="nothing was asked", fix="ask something"
            )
        asked = self.conversation.without_last_answer()
        return self._turn(asked, random_seed() if seed is None else seed)

    def go_on(self) -> Iterator[Event]:
        """Go on with an answer that was cut off. The events carry the new text only.

        Raises:
            UsageError: the last answer is complete; and as `ask`.
        """
        begun = self.conversation.answer
        if begun is None or not begun.partial:
            raise UsageError(
                "there is no answer to go on with",
                why="the last one is complete" if begun else "there is none",
                fix="ask for more in words, or /retry",
            )
        # With the seed it had, the text goes on as if it had never been cut off.
        seed = (begun.details or {}).get("seed", self.settings.seed)
        return self._turn(self.conversation.without_last_answer(), int(seed), begun)

    def replace(self, conversation: Conversation) -> NotSaved | None:
        """Go on with another conversation or another version of this one, and save it."""
        if conversation.id != self.conversation.id:
            self._memory.keep(self.conversation.id)
        self.conversation = conversation
        return self._saved()

    def context_use(self) -> ContextUse:
        """Tokens that the conversation takes, and room for them."""
        return self._prompts.use(self.conversation)

    def why(self, count: int = 3) -> list[Explanation]:
        """The last refusals of the last answer, oldest first. Evaluates the draft a little."""
        self.session.stop.clear()
        last = list(self._witness.refusals)[-count:]
        return [explain(refusal, self.session, self.settings.sampling) for refusal in last]

    def close(self) -> list[Notice]:
        """Keep on disk what the models have read."""
        return [Notice(text) for text in self._memory.keep(self.conversation.id)]

    def _turn(
        self,
        asked: Conversation,
        seed: int,
        begun: Message | None = None,
        *,
        new: bool = False,
    ) -> Iterator[Event]:
        """Answer the question at the end of `asked`, from where the answer has `begun`.

        A `new` question is part of the conversation as soon as it fits.
        """
        options = self.settings.options(self.session, seed)
        prompt = self._prompts.fitting(
            asked, begun, on_full=self.settings.on_full, max_tokens=options.max_tokens
        )
        if dropped := prompt.asked.dropped - asked.dropped:
            yield Dropped(dropped, prompt.asked.dropped, prompt.spared)
        asked = prompt.asked
        yield from self._memory.read(TARGET, prompt.tokens, asked.id)
        yield Started(seed, prompt.thinking)
        failure = None
        if new:
            self.conversation = asked
            if failure := self._saved():
                yield failure
        result = yield from self._stream(asked, prompt.tokens, options, begun)
        self._conclude(asked, options, result, begun)
        failed_again = self._saved()
        yield result
        if failed_again and not failure:
            yield failed_again
        for text in self._memory.keep(asked.id, grown=True):
            yield Notice(text)

    def _stream(
        self,
        asked: Conversation,
        prompt: list[int],
        options: AnswerOptions,
        begun: Message | None,
    ) -> Generator[Event, None, Answer]:
        """All events but the last, which is returned."""
        words: list[str] = []
        result: Answer | None = None
        self._witness = Witness(self.session.model.vocabulary, self._on_proposal)
        events = answer(
            self.session,
            prompt,
            options,
            no_draft=self.settings.plain,
            observer=self._witness,
        )
        try:
            for event in events:
                if isinstance(event, Answer):
                    result = event
                    continue
                if isinstance(event, Token):
                    words.append(event.text)
                elif event.passes == 1:  # after the first token, the draft reads the prompt
                    yield from self._drafts_read(prompt, asked.id)
                yield event
        finally:
            self.session.stop.clear()  # it was honoured
            if result is None and any(words):  # closed early, or an evaluation failed
                self.conversation = asked.answered(cut_short(words, begun))
                self._saved()
        assert result is not None  # `answer` ends with it or raises
        return result

    def _drafts_read(self, prompt: list[int], conversation: str) -> Iterator[Event]:
        for draft in self.settings.drafts(self.session):
            own = draft.reading(self.session.model, prompt)
            yield from self._memory.read(draft.name, own, conversation)

    def _conclude(
        self, asked: Conversation, options: AnswerOptions, result: Answer, begun: Message | None
    ) -> None:
        """Count the answer, and put it into the conversation if there is anything in it."""
        self._tally.count(result, self.session.target)
        details = details_of(
            result,
            options,
            model=asked.model,
            exact=(probe := self.session.options.probe) is not None and bool(probe.numerics),
            speedup=self.speedup,
        )
        if message := as_message(result, begun, details):
            self.conversation = asked.answered(message)

    def _saved(self) -> NotSaved | None:
        if self._store is None:
            return None
        try:
            self._store.save(self.conversation)
        except ConversationError as error:
            return NotSaved(error)
        return None
