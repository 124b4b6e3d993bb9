"""After any sequence of turns, the next answer is a fresh process's, and only the tail was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from chatting import GREEDY, Turn, common, evaluations, from_nothing, load, prompt_of, run
from gguf_files import write_with_vocabulary_of

from specdec_cli.app.chat.conversation import Conversation
from specdec_cli.app.chat.prompt_cache import PromptCache
from specdec_cli.app.chat.store import Store
from specdec_cli.app.chat.talk import Settings, Talk
from specdec_cli.app.generate import Token
from specdec_cli.app.session import Session
from specdec_cli.core.options import SamplingOptions

SAMPLED = SamplingOptions(temp=0.8)
PAIR = 2  # rows that an exact call evaluates at least


@pytest.fixture(scope="module")
def clueless(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clueless") / "draft.gguf"
    return write_with_vocabulary_of(path, smollm2)


@pytest.fixture(scope="module")
def fresh(smollm2: Path) -> Iterator[Session]:
    with load(smollm2) as session:
        yield session


class Checked:
    """A talk, every turn of which is compared with a model that has read nothing."""

    def __init__(self, talk: Talk, fresh: Session) -> None:
        self.talk = talk
        self.fresh = fresh
        self.read: list[int] = []  # what the target is known to have read, at least

    def turn(self, start: Callable[[Talk], Iterator]) -> Turn:
        target = self.talk.session.target
        with evaluations(target) as seen:
            turn = run(start(self.talk))
        prompt = prompt_of(self.fresh, self.talk.conversation)
        self._check_what_was_read(turn, seen.calls, prompt)
        settings = self.talk.settings
        expected = from_nothing(self.fresh, prompt, settings, turn.started.seed)
        assert turn.answer.tokens == expected.tokens
        assert self.talk.conversation.answer is not None
        assert self.talk.conversation.answer.content == expected.text == turn.shown
        return turn

    def _check_what_was_read(
        self, turn: Turn, calls: list[tuple[int, list[int]]], prompt: list[int]
    ) -> None:
        kept = min(common(self.read, prompt), len(prompt) - 1)
        assert turn.readings["target"].tokens == len(prompt)
        assert turn.readings["target"].cached >= kept
        assert turn.answer.cached_tokens == turn.readings["target"].cached
        start = calls[0][0]
        assert start >= min(kept, len(prompt) - PAIR)
        read = [token for at, tokens in calls if at < len(prompt) for token in tokens]
        assert read[: len(prompt) - start] == prompt[start:]  # each once, and nothing before
        self.read = [*prompt, *turn.answer.tokens[:-1]]

    def ask(self, text: str) -> Turn:
        return self.turn(lambda talk: talk.ask(text))

    def set(self, **changes: object) -> None:
        self.talk.settings = replace(self.talk.settings, **changes)

    def undo(self) -> None:
        assert self.talk.replace(self.talk.conversation.undo()) is None


@pytest.mark.parametrize(
    ("sampling", "cached"), [(GREEDY, True), (SAMPLED, False)], ids=["greedy", "sampled"]
)
def test_a_long_chat(
    smollm2: Path,
    clueless: Path,
    fresh: Session,
    tmp_path: Path,
    sampling: SamplingOptions,
    cached: bool,
) -> None:
    store = Store(tmp_path / "conversations")
    cache = PromptCache(tmp_path / "prompts") if cached else None
    settings = Settings(sampling, seed=7, max_tokens=24, draft_tokens=4)
    conversation = Conversation("smollm2:135m").with_system("You are a terse assistant.")
    with load(smollm2, smollm2, clueless) as session:
        talk = Talk(session, conversation, settings, store=store, prompt_cache=cache)
        chat = Checked(talk, fresh)
        chat.ask("Name three colours.")
        chat.ask("Which of them is the sky's? Say 'naïve 🙂' too.")
        turn = chat.ask("Repeat the first answer.")
        assert turn.answer.statistics.drafted > 0
        assert turn.readings["model"].cached > 0
        chat.ask("And now in French, please.")
        chat.undo()
        chat.ask("And now in German, please.")
        old = turn.started.seed
        assert chat.turn(lambda talk: talk.retry()).started.seed != old
        chat.set(draft_tokens=7)
        chat.ask("Count to five.")
        chat.set(plain="/spec off")
        assert chat.ask("Count to six.").answer.statistics.drafted == 0
        chat.set(plain="", drafter="second")
        chat.ask("Count to seven.")
        chat.set(drafter="suffix", draft_tokens=3)
        chat.ask("Count to five.")
        chat.undo()
        chat.undo()
        chat.talk.replace(talk.conversation.with_system("You are a pirate."))
        chat.ask("Count to seven, count to seven.")
        before = talk.conversation
        talk.replace(talk.conversation.cleared())
        chat.ask("What is the capital of France?")
        talk.replace(store.load(before.id))
        chat.set(drafter="auto")
        chat.ask("Who are you?")
        assert talk.close() == []
    left = chat.read
    with load(smollm2, smollm2) as session:
        talk = Talk(
            session, store.latest(), replace(settings, draft_tokens=5), store=store,
            prompt_cache=cache,
        )  # fmt: skip
        assert talk.conversation.id == before.id
        chat = Checked(talk, fresh)
        chat.read = left if cached else []
        turn = chat.ask("What did I ask you first?")
        assert turn.readings["target"].from_disk is cached
        assert turn.readings["model"].from_disk is cached
        chat.turn(lambda talk: talk.retry())
        paste = " ".join(str(number) for number in range(230))  # more than one batch of the prompt
        turn = chat.ask(f"Which number is missing?\n{paste}")
        assert turn.answer.prompt_tokens - turn.answer.cached_tokens > session.options.batch
        chat.undo()
        chat.ask("Which number comes after 41?")
        assert talk.conversation == store.load(before.id)


def test_going_on_says_what_would_have_been_said(smollm2: Path, fresh: Session) -> None:
    whole = Settings(GREEDY, max_tokens=32)
    with load(smollm2, smollm2) as session:
        talk = Talk(session, Conversation("m"), replace(whole, max_tokens=9))
        question = "Explain rain in two sentences."
        first = run(talk.ask(question))
        assert first.answer.finish == "length"
        begun = talk.conversation.answer
        assert begun is not None
        assert begun.partial
        talk.settings = replace(whole, max_tokens=23)
        with evaluations(session.target) as seen:
            second = run(talk.go_on())
        assert seen.calls[0][0] >= second.answer.prompt_tokens - PAIR  # all of it was there
        prompt = prompt_of(fresh, talk.conversation)
        expected = from_nothing(fresh, prompt, whole, 0)
        assert (*first.answer.tokens, *second.answer.tokens) == expected.tokens
        assert talk.conversation.answer is not None
        assert talk.conversation.answer.content == expected.text
        details = talk.conversation.answer.details or {}
        assert details["before"] == begun.details
        check = Checked(talk, fresh)
        check.ask("Thanks. And snow?")


def test_an_answer_that_was_stopped_is_history_like_any_other(
    smollm2: Path, fresh: Session
) -> None:
    with load(smollm2, smollm2) as session:
        talk = Talk(session, Conversation("m"), Settings(GREEDY, max_tokens=40))
        events = []
        for event in talk.ask("Tell me a story about a goat."):
            events.append(event)
            if isinstance(event, Token) and sum(isinstance(e, Token) for e in events) == 6:
                session.stop.set()
        turn = Turn(events)
        assert turn.answer.finish == "interrupted"
        kept = talk.conversation.answer
        assert kept is not None
        assert kept.partial
        assert kept.content == turn.shown != ""
        assert not session.stop.is_set()
        check = Checked(talk, fresh)
        check.read = [*prompt_of(fresh, talk.conversation), *turn.answer.tokens[:-1]]
        check.ask("Go on.")
