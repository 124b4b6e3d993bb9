"""What was read is on disk: fetched where it fits, rebuilt with one notice where it does not."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from chatting import GREEDY, Turn, evaluations, load, run
from gguf_files import IM_END, byte_ids, write_tiny, write_with_vocabulary_of

from specdec_cli.app.chat import prompt_cache
from specdec_cli.app.chat.conversation import Conversation
from specdec_cli.app.chat.events import Notice
from specdec_cli.app.chat.prompt_cache import PromptCache, readers
from specdec_cli.app.chat.talk import Settings, Talk
from specdec_cli.app.draft_models import DraftFile
from specdec_cli.app.session import LoadOptions, Session

SYSTEM = "Say one word, and only that word, whatever is asked of you."
WORD = "bulky"


class Home:
    """Models, and a directory of states that outlives the sessions."""

    def __init__(self, path: Path) -> None:
        script = (*byte_ids(WORD), IM_END)
        self.target = write_tiny(path / "target.gguf", script=script)
        self.draft = write_tiny(path / "draft.gguf", script=script, seed=1)
        self.mamba = write_tiny(path / "mamba.gguf", script=script, architecture="mamba")
        self.cache = PromptCache(path / "prompts")
        self.conversation = Conversation("tiny").with_system(SYSTEM)

    def chat(
        self, *questions: str, session: Session | None = None, cache: PromptCache | None = None
    ) -> list[Turn]:
        """Go on with the conversation in a process of its own, as it were."""
        session = session or load(self.target, self.draft, size=512, exact=False)
        with session:
            talk = Talk(
                session,
                self.conversation,
                Settings(GREEDY, draft_tokens=3),
                prompt_cache=cache or self.cache,
            )
            turns = [run(talk.ask(question)) for question in questions]
            self.conversation = talk.conversation
            turns[-1].events += talk.close()
        assert all(turn.shown == WORD for turn in turns)
        return turns

    @property
    def states(self) -> dict[str, Path]:
        return {path.name: path for path in self.cache.directory.iterdir()}

    def own(self, model: str = "target") -> Path:
        stem = self.target.stem if model == "target" else self.draft.stem
        return self.cache.directory / f"{self.conversation.id}.{model}.{stem}.state"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def notices(turn: Turn) -> list[str]:
    return [event.text for event in turn.events if isinstance(event, Notice)]


def test_a_resumed_chat_reads_the_new_question_alone(home: Home) -> None:
    (first,) = home.chat("one")
    assert {reading.from_disk for reading in first.readings.values()} == {False}
    assert set(home.states) == {home.own().name, home.own("model").name}
    assert home.cache.size == sum(path.stat().st_size for path in home.states.values())
    session = load(home.target, home.draft, size=512, exact=False)
    with evaluations(session.target) as target:
        (second,) = home.chat("two", session=session)
    reading = second.readings["target"]
    assert reading.from_disk
    assert reading.cached >= first.answer.prompt_tokens + len(WORD)
    assert len(target.calls[0][1]) == reading.tokens - reading.cached
    assert second.readings["model"].from_disk
    assert second.readings["model"].cached > first.answer.prompt_tokens
    assert notices(first) == notices(second) == []


def test_a_long_system_text_is_not_read_again_in_a_new_chat(home: Home) -> None:
    home.chat("one", "two")
    home.conversation = home.conversation.cleared()
    (turn,) = home.chat("three")
    assert turn.readings["target"].from_disk
    assert len(SYSTEM) < turn.answer.cached_tokens < turn.answer.prompt_tokens
    assert len(home.states) == 4


def test_what_hardly_helps_is_not_fetched(home: Home) -> None:
    home.conversation = home.conversation.with_system(None)
    home.chat("one")
    home.conversation = home.conversation.cleared()
    (turn,) = home.chat("two")
    assert not turn.readings["target"].from_disk


CHANGES: list[tuple[Callable[[LoadOptions], LoadOptions], str]] = [
    (lambda o: replace(o, context_size=256), "context size"),
    (lambda o: replace(o, threads=2), "thread count"),
    (lambda o: replace(o, flash_attention="off"), "choice of flash attention"),
    (lambda o: replace(o, numerics=replace(o.numerics, pairs=True)), "choice of kernels"),
]


@pytest.mark.parametrize(("change", "word"), CHANGES)
def test_other_settings_make_it_stale_with_one_notice(
    home: Home, change: Callable[[LoadOptions], LoadOptions], word: str
) -> None:
    home.chat("one")
    options = LoadOptions(
        home.target, (DraftFile(home.draft),), draft_tokens=8, context_size=512, threads=1
    )
    turns = home.chat("two", "three", session=Session(change(options)))
    assert not turns[0].readings["target"].from_disk
    (notice,) = [notice for turn in turns for notice in notices(turn)]
    assert f"another {word}:" in notice
    (turn,) = home.chat("four", session=Session(change(options)))  # rebuilt in the meantime
    assert turn.readings["target"].from_disk
    assert notices(turn) == []


def test_another_model_of_the_same_name_makes_it_stale(home: Home) -> None:
    home.chat("one")
    status = home.target.stat()
    os.utime(home.target, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    (turn,) = home.chat("two")
    assert not turn.readings["target"].from_disk
    assert "another model" in notices(turn)[0]


def test_a_damaged_one_is_deleted_and_rebuilt_with_one_notice(home: Home) -> None:
    home.chat("one")
    for path in home.states.values():
        data = bytearray(path.read_bytes())
        data[-9] ^= 4
        path.write_bytes(data)
    turns = home.chat("two", "three")
    assert not turns[0].readings["target"].from_disk
    (notice,) = [notice for turn in turns for notice in notices(turn)]
    assert "damaged (its checksum is wrong)" in notice
    home.own().write_bytes(b"junk")
    (turn,) = home.chat("four")
    assert "another format" in notices(turn)[0]
    (turn,) = home.chat("five")
    assert turn.readings["target"].from_disk


def test_a_damaged_one_of_another_chat_is_not_worth_a_word(home: Home) -> None:
    home.cache.directory.mkdir()
    (home.cache.directory / "other.target.state").write_bytes(b"junk")
    (turn,) = home.chat("one")
    assert notices(turn) == []


def test_the_least_recently_used_make_room(home: Home) -> None:
    chats = [Conversation("tiny").with_system(letter * 60) for letter in "xyz"]
    for age, home.conversation in enumerate(chats[:2]):
        home.chat("one")
        for model in ("target", "model"):
            os.utime(home.own(model), (1e9 - age, 1e9 - age))
    small = PromptCache(home.cache.directory, limit=home.cache.size)
    home.conversation = chats[2]
    home.chat("one", cache=small)
    assert {name.split(".")[0] for name in home.states} == {chats[0].id, chats[2].id}
    assert small.size <= small.limit


def test_what_served_another_chat_is_not_old(home: Home) -> None:
    home.chat("one")
    first, home.conversation = home.own(), home.conversation.cleared()
    os.utime(first, (1e9, 1e9))
    home.chat("two")
    assert first.stat().st_mtime > 1e9


def test_what_was_just_written_is_kept_whatever_the_clock_says(home: Home) -> None:
    home.conversation = Conversation("tiny").with_system("x" * 60)
    home.chat("one")
    for path in home.states.values():
        os.utime(path, (4e9, 4e9))
    tight = PromptCache(home.cache.directory, limit=home.cache.size)
    home.conversation = Conversation("tiny").with_system("y" * 60)
    home.chat("one", cache=tight)
    assert home.own("model").exists()


def test_nothing_new_is_not_written_again(home: Home) -> None:
    home.chat("one")
    with load(home.target, home.draft, size=512, exact=False) as session:
        talk = Talk(session, home.conversation, Settings(GREEDY), prompt_cache=home.cache)
        run(talk.ask("two"))
        assert talk.close() == []
        for path in home.states.values():
            os.utime(path, (1e9, 1e9))
        assert talk.close() == []
        assert {path.stat().st_mtime for path in home.states.values()} == {1e9}
        talk.replace(talk.conversation.cleared())  # has read nothing yet
        assert talk.close() == []
        other = Talk(session, home.conversation.cleared(), Settings(), prompt_cache=home.cache)
        assert other.close() == []  # what the models have read is not of this one
    assert len(home.states) == 2


def test_many_small_ones_make_room_too(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_cache, "MOST", 3)
    for letter in "xyz":
        home.conversation = Conversation("tiny").with_system(letter * 60)
        home.chat("one")
    assert len(home.states) == 3
    assert home.own().exists()
    assert home.own("model").exists()


def test_a_chat_may_change_between_models(home: Home) -> None:
    home.chat("one")
    (turn,) = home.chat("two", session=load(home.mamba, size=512, exact=False))
    assert notices(turn) == []
    (turn,) = home.chat("three")
    assert turn.readings["target"].from_disk
    assert notices(turn) == []


def test_one_that_is_too_large_for_the_bound_is_not_kept(home: Home) -> None:
    (turn,) = home.chat("one", cache=PromptCache(home.cache.directory, limit=1000))
    assert home.states == {}
    assert "no room" in notices(turn)[0]


def test_a_full_disk_costs_the_cache_and_nothing_else(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        (turn,) = home.chat("one")
    assert "No space left on device" in notices(turn)[0]
    assert home.states == {}


def test_a_recurrent_state_serves_what_goes_on_from_it_alone(home: Home) -> None:
    def session() -> Session:
        return load(home.mamba, size=512, exact=False)

    home.chat("one", session=session())
    (turn,) = home.chat("two", session=session())
    assert turn.readings["target"].from_disk
    home.conversation = home.conversation.undo()
    (turn,) = home.chat("three", session=session())
    assert not turn.readings["target"].from_disk


def test_a_growing_chat_writes_each_token_a_few_times(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    keep = PromptCache.keep

    def counting(self: PromptCache, reader, conversation: str) -> str:
        if reader.name == "target":
            written.append(len(reader.context.memo))
        return keep(self, reader, conversation)

    monkeypatch.setattr(PromptCache, "keep", counting)
    turns = home.chat(*"abcdefgh")
    assert len(written) <= 4
    assert written[-1] >= turns[-1].answer.prompt_tokens + len(WORD)  # and all of it at the end


@pytest.fixture
def cross(home: Home, smollm2: Path) -> Iterator[Session]:
    """A draft that reads in tokens of its own."""
    draft = write_with_vocabulary_of(home.target.with_name("other.gguf"), smollm2)
    options = LoadOptions(
        home.target,
        (DraftFile(draft),),
        cross_vocab=True,
        draft_tokens=8,
        context_size=512,
        threads=1,
    )
    with Session(options) as session:
        yield session


def test_a_draft_with_another_vocabulary_is_counted_in_its_own_tokens(
    home: Home, cross: Session
) -> None:
    talk = Talk(cross, home.conversation, Settings(GREEDY, draft_tokens=2))
    first, second = run(talk.ask("one")), run(talk.ask("two"))
    assert first.readings["model"].tokens < first.readings["target"].tokens
    assert second.readings["model"].cached >= first.readings["model"].tokens - 8
    assert set(readers(cross)) == {"target", "model"}
