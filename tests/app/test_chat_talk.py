"""Turns that do not go as planned: stopped, failed, too long, unsaved; and what is said of them."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from chatting import (
    GREEDY,
    Turn,
    evaluations,
    fail_after,
    from_nothing,
    load,
    prompt_of,
    run,
)
from gguf_files import CHATML, IM_END, byte_ids, write_tiny

from specdec_cli.app.chat import files
from specdec_cli.app.chat.conversation import Conversation
from specdec_cli.app.chat.events import Dropped, NotSaved, Proposed
from specdec_cli.app.chat.store import Store
from specdec_cli.app.chat.talk import Settings, Talk
from specdec_cli.app.chat.totals import Totals
from specdec_cli.app.generate import Token
from specdec_cli.app.session import Session
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.errors import EvaluationError, ModelFileError, PromptTooLong, UsageError

SCRIPT = (*byte_ids("bulky"), IM_END)  # text of one byte a token is cut into the same tokens
Make = Callable[..., Talk]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """A talk with a model that always says the script, drafted by one that slips now and then."""
    opened: list[Session] = []

    def talk(
        *,
        slips: Sequence[int] = (),
        size: int = 512,
        store: Store | None = None,
        ends: bool = True,
        **settings,
    ) -> Talk:
        number = len(opened)
        script = SCRIPT if ends else SCRIPT[:-1]
        target = write_tiny(tmp_path / f"target{number}.gguf", script=script)
        draft = write_tiny(tmp_path / f"draft{number}.gguf", script=script, slips=slips)
        opened.append(load(target, draft, size=size, exact=False))
        chosen = Settings(**{"sampling": GREEDY, "draft_tokens": 3, **settings})
        return Talk(opened[-1], Conversation("tiny"), chosen, store=store)

    yield talk
    for session in opened:
        session.close()


def stop_after(tokens: int, talk: Talk, events: Iterator) -> Turn:
    seen = []
    for event in events:
        seen.append(event)
        if isinstance(event, Token) and sum(isinstance(e, Token) for e in seen) == tokens:
            talk.session.stop.set()
    return Turn(seen)


def texts(talk: Talk) -> list[str]:
    return [message["content"] for message in talk.conversation.for_template()]


def test_a_turn_is_a_question_and_its_answer(make: Make) -> None:
    talk = make()
    turn = run(talk.ask("hello"))
    assert turn.shown == turn.answer.text == "bulky"
    assert texts(talk) == ["hello", "bulky"]
    answer = talk.conversation.answer
    assert answer is not None
    assert not answer.partial
    assert answer.details is not None
    assert answer.details["finish"] == "stop"
    assert answer.details["drafted"] >= answer.details["accepted"] > 0
    assert talk.context_use().used > turn.answer.prompt_tokens + 5
    assert talk.context_use().size == 512


def test_proposals_are_reported_before_they_are_judged(make: Make) -> None:
    talk = make()
    shown: list[Proposed] = []
    talk_watched = Talk(talk.session, talk.conversation, talk.settings, on_proposal=shown.append)
    with evaluations(talk.session.target) as seen:
        for event in talk_watched.ask("hello"):
            if isinstance(event, Token) and event.source == "model":
                break
        judged = len(seen.calls[-1][1])
    assert shown == [Proposed(("u", "l", "k"), "model")]
    assert judged == 4


def test_an_interrupted_answer_is_kept_and_can_be_gone_on_with(make: Make) -> None:
    talk = make(plain="off")
    turn = stop_after(3, talk, talk.ask("hello"))
    assert turn.answer.finish == "interrupted"
    assert texts(talk) == ["hello", "bul"]
    assert talk.conversation.answer is not None
    assert talk.conversation.answer.partial
    turn = run(talk.go_on())
    assert turn.shown == "ky"
    assert texts(talk) == ["hello", "bulky"]
    with pytest.raises(UsageError, match="no answer to go on with"):
        run(talk.go_on())


def test_half_a_character_is_not_kept(tmp_path: Path) -> None:
    first, *rest = "🙂".encode()
    script = ("Hi", 3 + first, *(3 + byte for byte in rest), IM_END)
    with load(write_tiny(tmp_path / "m.gguf", script=script), exact=False) as session:
        talk = Talk(session, Conversation("m"), Settings(GREEDY))
        turn = stop_after(3, talk, talk.ask("hello"))
        assert turn.shown == "Hi\N{REPLACEMENT CHARACTER}"
        assert texts(talk) == ["hello", "Hi"]
        assert run(talk.go_on()).shown == "🙂"
        assert texts(talk) == ["hello", "Hi🙂"]


def test_stopped_before_a_word_leaves_the_question_open(make: Make) -> None:
    talk = make()
    talk.session.stop.set()
    turn = run(talk.ask("hello"))
    assert (turn.answer.finish, turn.answer.text) == ("interrupted", "")
    assert talk.conversation.unanswered
    assert not talk.session.stop.is_set()
    assert run(talk.retry()).shown == "bulky"
    assert texts(talk) == ["hello", "bulky"]


def test_a_retry_that_says_nothing_leaves_the_old_answer(make: Make, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    talk = make(store=store)
    run(talk.ask("hello"))
    before = talk.conversation
    talk.session.stop.set()
    run(talk.retry())
    assert talk.conversation == store.load(before.id) == before


def test_retries_draw_new_seeds(make: Make) -> None:
    talk = make(seed=5)
    assert run(talk.ask("hello")).started.seed == 5
    seeds = {run(talk.retry()).started.seed for _ in range(3)}
    assert len(seeds | {5}) == 4
    assert run(talk.retry(seed=9)).started.seed == 9
    assert run(talk.ask("again")).started.seed == 5
    with pytest.raises(UsageError, match="nothing to answer again"):
        run(Talk(talk.session, Conversation("m"), talk.settings).retry())


def test_going_on_keeps_the_seed_of_the_answer(make: Make) -> None:
    talk = make(seed=5, max_tokens=2)
    run(talk.ask("hello"))
    run(talk.retry(seed=9))
    assert run(talk.go_on()).started.seed == 9
    assert texts(talk) == ["hello", "bulk"]


def test_closing_the_stream_keeps_what_was_said(make: Make, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    talk = make(plain="off", store=store)
    events = talk.ask("hello")
    for event in events:
        if isinstance(event, Token) and event.text == "l":
            break
    events.close()  # type: ignore[attr-defined]
    assert texts(talk) == ["hello", "bul"]
    assert store.load(talk.conversation.id) == talk.conversation
    assert run(talk.go_on()).shown == "ky"


def test_the_question_is_on_disk_before_the_answer_begins(make: Make, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    talk = make(store=store)
    events = talk.ask("hello")
    while not isinstance(next(events), Token):
        pass
    assert store.load(talk.conversation.id).question == "hello"
    assert store.load(talk.conversation.id).unanswered


def test_a_failed_evaluation_keeps_what_was_said(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store")
    talk = make(plain="off", store=store)
    with monkeypatch.context() as patch:
        fail_after(talk, 2, EvaluationError("no", why="because", fix="none"), patch)
        with pytest.raises(EvaluationError):
            run(talk.ask("hello"))
    assert texts(talk) == ["hello", "bu"]
    assert store.load(talk.conversation.id) == talk.conversation
    assert run(talk.go_on()).shown == "lky"


def test_what_cannot_be_saved_is_said_once_and_kept_in_memory(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store")
    talk = make(store=store)
    run(talk.ask("one"))

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        turn = run(talk.ask("two"))
        failures = [event for event in turn.events if isinstance(event, NotSaved)]
        assert [failure.error.why for failure in failures] == ["No space left on device"]
        assert turn.shown == "bulky"
        assert talk.replace(talk.conversation) is not None
    assert store.load(talk.conversation.id).turns == 1
    turn = run(talk.ask("three"))
    assert not [event for event in turn.events if isinstance(event, NotSaved)]
    assert store.load(talk.conversation.id) == talk.conversation
    assert talk.conversation.turns == 3


LONG = "a" * 60


def fill(talk: Talk, turns: int = 8, text: str = LONG) -> list[Turn]:
    return [run(talk.ask(f"{number} {text}")) for number in range(turns)]


def test_a_full_context_stops_the_chat_and_changes_nothing(make: Make) -> None:
    talk = make(size=256)
    with pytest.raises(PromptTooLong) as caught:
        fill(talk)
    assert "/clear" in caught.value.fix
    before = talk.conversation
    assert before.turns < 8
    assert not before.unanswered
    with pytest.raises(PromptTooLong):
        run(talk.ask(LONG))
    assert talk.conversation is before
    talk.replace(before.undo())
    assert run(talk.ask("b")).shown == "bulky"


def test_the_oldest_turns_make_room_and_the_system_text_stays(make: Make, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    talk = make(on_full="drop-oldest", store=store)
    talk.replace(talk.conversation.with_system("Be kind."))
    turns = fill(talk, 16, LONG[:20])
    drops = [event for turn in turns for event in turn.events if isinstance(event, Dropped)]
    assert drops[-1].in_all == sum(drop.turns for drop in drops) == talk.conversation.dropped
    assert len(drops) <= drops[-1].in_all / 2  # or every turn would read everything again
    assert all(drop.tokens > 40 * drop.turns for drop in drops)
    assert talk.conversation.turns == 16
    shown = texts(talk)
    assert shown[0] == "Be kind."
    assert shown[1].startswith(f"{talk.conversation.dropped} ")
    assert all(len(turn.answer.tokens) == len(SCRIPT) for turn in turns)
    assert store.load(talk.conversation.id) == talk.conversation
    last = turns[-1].answer
    expected = from_nothing(
        talk.session, prompt_of(talk.session, talk.conversation), talk.settings, 0
    )
    assert last.tokens == expected.tokens


@pytest.mark.parametrize("on_full", ["stop", "drop-oldest"])
def test_a_question_that_never_fits_is_refused_alone(make: Make, on_full: str) -> None:
    talk = make(size=256, on_full=on_full)
    with pytest.raises(PromptTooLong) as caught:
        run(talk.ask(LONG * 10))
    assert "this question alone" in caught.value.why
    assert "-c " in caught.value.fix
    run(talk.ask("short"))
    with pytest.raises(PromptTooLong, match="room for 256") as caught:
        run(talk.ask(LONG * 10))
    assert "this question alone" in caught.value.why
    assert texts(talk) == ["short", "bulky"]


def test_an_answer_that_fills_the_context_is_partial(make: Make) -> None:
    talk = make(size=256)
    around = len(prompt_of(talk.session, Conversation("m").say("a"))) - 1
    with pytest.raises(PromptTooLong):
        run(talk.ask("a" * (256 - around)))
    assert texts(talk) == []
    turn = run(talk.ask("a" * (253 - around)))
    assert turn.answer.finish == "context"
    assert len(turn.answer.tokens) == 3
    assert talk.conversation.answer is not None
    assert talk.conversation.answer.partial


def test_more_guesses_than_there_is_room_for_are_refused(make: Make) -> None:
    talk = make()
    talk.settings = replace(talk.settings, draft_tokens=9)
    with pytest.raises(UsageError, match="9 guesses") as caught:
        run(talk.ask("hello"))
    assert "-k 9" in caught.value.fix


REFUSING = (
    "{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}" + CHATML
)


def test_templates_that_refuse_or_fail_say_so_in_the_words_of_a_chat(tmp_path: Path) -> None:
    with load(write_tiny(tmp_path / "a.gguf", template=REFUSING), exact=False) as session:
        talk = Talk(session, Conversation("m").with_system("Be brief."), Settings(GREEDY))
        with pytest.raises(UsageError, match="takes no system text") as refused:
            run(talk.ask("hello"))
        assert "/set system" in refused.value.fix
        assert texts(talk) == ["Be brief."]
        assert talk.context_use().used == 0
    with (
        load(write_tiny(tmp_path / "b.gguf", template="{{ 1 / 0 }}"), exact=False) as session,
        pytest.raises(ModelFileError, match="template failed") as failed,
    ):
        run(Talk(session, Conversation("m"), Settings(GREEDY)).ask("hello"))
    assert "another model" in failed.value.fix
    base = write_tiny(tmp_path / "c.gguf", template=None, markers=False)
    with (
        load(base, exact=False) as session,
        pytest.raises(ModelFileError, match="no chat template"),
    ):
        Talk(session, Conversation("m"), Settings(GREEDY))


def test_a_template_that_opens_thoughts_is_noticed(tmp_path: Path) -> None:
    script = (*byte_ids("x"), "</think>", *byte_ids("Y"), IM_END)
    opening = CHATML.replace("assistant\n", "assistant\n<think>\n")
    assert opening != CHATML
    with load(write_tiny(tmp_path / "m.gguf", script=script, template=opening), exact=False) as one:
        talk = Talk(one, Conversation("m"), Settings(GREEDY))
        assert stop_after(1, talk, talk.ask("hello")).started.thinking
        assert texts(talk)[1] == "x"
        assert stop_after(1, talk, talk.go_on()).started.thinking
        assert texts(talk)[1] == "x</think>"
        assert not run(talk.go_on()).started.thinking
    with load(write_tiny(tmp_path / "n.gguf", script=script), exact=False) as other:
        assert not run(Talk(other, Conversation("m"), Settings(GREEDY)).ask("x")).started.thinking


def test_why_names_what_both_wanted(make: Make) -> None:
    talk = make(slips=byte_ids("l"))
    run(talk.ask("hello"))
    (found,) = talk.why()
    assert found.source == "model"
    assert found.before.endswith("bul")
    assert (found.drafted.text, found.chosen.text) == ("b", "k")
    assert found.draft_top[0] == found.drafted
    assert found.target_top[0] == found.chosen
    assert len(found.draft_top) == len(found.target_top) == 5
    assert found.drafted.prob > found.chosen_by_draft.prob
    assert found.chosen.prob > found.drafted_by_target.prob > 0
    assert not found.drawn
    before = run(talk.ask("again")).answer.cached_tokens
    assert talk.why() == talk.why()
    turn = run(talk.retry())
    assert turn.answer.cached_tokens > before  # looking did not cost the target its cache
    assert turn.shown == "bulky"


def test_why_is_empty_where_nothing_was_refused(make: Make) -> None:
    talk = make(plain="off")
    assert talk.why() == []
    run(talk.ask("hello"))
    assert talk.why() == []


def test_why_knows_chance(tmp_path: Path) -> None:
    target, draft = (write_tiny(tmp_path / f"{seed}.gguf", seed=seed) for seed in (1, 2))
    with load(target, draft, exact=False) as session:
        talk = Talk(
            session,
            Conversation("m"),
            Settings(SamplingOptions(), 3, drafter="model", draft_tokens=4, max_tokens=60),
        )
        run(talk.ask("hello"))
        found = talk.why(5)
        assert len(found) == 5
        assert {each.drawn for each in found} == {True, False}
        for each in found:
            assert each.drawn == (each.chosen.token != each.target_top[0].token)
            assert each.drafted.token != each.chosen.token


def test_what_the_policy_knows_of_plain_passes_is_not_measured_again(make: Make) -> None:
    talk = make(draft_tokens=None, max_tokens=60, ends=False)
    dear = {rows: 10.0 + 0.01 * rows for rows in (1, 2, 4, 8)}  # so that guessing pays
    talk.session.experience.verify = PassSeconds(dear)
    for draft in talk.session.drafts:
        talk.session.experience.drafts[draft.key] = PassSeconds({1: 1e-6, 8: 1e-6})
    turn = run(talk.ask("hello"))
    statistics = turn.answer.statistics
    assert statistics.drafted > 0
    assert statistics.plain_seconds is not None
    assert talk.speedup == pytest.approx(statistics.predicted_speedup)


def test_totals_add_up_over_turns(make: Make) -> None:
    talk = make(slips=byte_ids("l"))
    turns = [run(talk.ask("one")), run(talk.ask("two"))]
    assert talk.speedup is not None
    talk.settings = replace(talk.settings, plain="off")
    turns.append(run(talk.ask("three")))
    assert talk.speedup is None
    one = Totals()
    one.add(turns[0].answer, 2.0)
    assert one.plain_seconds == 2.0 * (turns[0].answer.statistics.tokens - 1)
    totals = talk.totals
    statistics = [turn.answer.statistics for turn in turns]
    assert totals.answers == 3
    assert totals.tokens == sum(each.tokens for each in statistics)
    assert totals.passes == sum(each.passes for each in statistics)
    assert totals.accepted == sum(each.accepted for each in statistics)
    assert totals.cached_tokens == sum(turn.answer.cached_tokens for turn in turns)
    assert totals.timed_seconds == sum(each.predicted_seconds for each in statistics[:2])
    assert totals.speedup is not None
    assert totals.saved_seconds == totals.plain_seconds - totals.timed_seconds
