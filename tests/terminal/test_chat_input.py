"""The line of input on a real terminal: keys, history, pastes, completion, leaving."""

from __future__ import annotations

import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from chats import KEYS, READY, ChatScreen, conversations, messages
from command import environment

Model = Callable[[str], Path]
Talk = Callable[..., ChatScreen]

SHORT = ["-n", 1, "-q"]
STARTED = "\x1b[?2004l"  # the line of input has ended


def said() -> list[str]:
    return [m["content"] for m in messages(conversations()[-1]) if m["role"] == "user"]


@pytest.fixture
def chat(talk: Talk, model: Model) -> ChatScreen:
    return talk("-m", model("tale"), *SHORT)


def test_enter_sends_and_other_keys_make_new_lines(chat: ChatScreen) -> None:
    chat.ask(f"a{KEYS['newline']}b\nc")
    assert said() == ["a\nb\nc"]
    chat.ask('"""\rx\r/clear\ry"""')
    assert said()[1:] == ["x\n/clear\ny"]
    chat.ask("//slash")
    assert said()[2:] == ["/slash"]
    assert chat.leave() == 0


def test_a_paste_is_one_message_whatever_is_in_it(chat: ChatScreen) -> None:
    pasted = "first\r/quit\rlast \x1b]0;title\x07"
    chat.ask(f"\x1b[200~{pasted}\x1b[201~ and typed")
    assert said() == ["first\n/quit\nlast \x1b]0;title\x07 and typed"]
    assert chat.title == ""
    long = "\x1b[200~" + "a line of text\r" * 7000 + "\x1b[201~"
    assert len(long) > 100_000
    chat.enter(long)
    assert "error: " in chat.text
    chat.ask("and now?")
    assert said()[1:] == ["and now?"]
    assert chat.leave() == 0


def test_history_is_kept_searched_and_private(talk: Talk, model: Model, chat: ChatScreen) -> None:
    chat.ask("the first question")
    chat.ask("another")
    assert chat.leave() == 0
    history = Path(environment()["HOME"]) / ".local/state/specdec/history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    chat = talk("-m", model("tale"), *SHORT)
    chat.type(f"{KEYS['search']}first")
    chat.wait_for("question")
    chat.ask("\r")
    assert said() == ["the first question"]
    chat.ask("\x1b[A\x1b[A")
    assert said() == ["the first question", "another"]
    assert chat.leave() == 0


def test_tab_completes_commands_settings_values_and_paths(chat: ChatScreen) -> None:
    Path("a long name.txt").write_text("text")
    for typed, becomes in (
        ("/sta\t", "/stats"),
        ("/se\tte\t0.5", "/set temp 0.5"),
        ("/set dra\t-\t3", "/set draft-tokens 3"),
        ("/spec of\t", "/spec off"),
        ("/read a\t", "/read a long name.txt"),
    ):
        chat.enter(typed)
        assert f">>> {becomes}" in chat.lines, chat.lines
    assert "temp is 0.5" in chat.text
    assert chat.leave() == 0


def test_a_slash_shows_the_commands_and_their_meaning(chat: ChatScreen) -> None:
    chat.type("/")
    chat.wait_for("the last guesses that")
    chat.type("\x03")
    assert chat.leave() == 0


def test_an_editor_can_write_the_message(talk: Talk, model: Model) -> None:
    editor = Path("editor")
    editor.write_text('#!/bin/sh\necho "from the editor" > "$1"\n')
    editor.chmod(0o755)
    chat = talk("-m", model("tale"), *SHORT, env={"EDITOR": str(editor.absolute()), "VISUAL": ""})
    chat.type(f"x{KEYS['editor']}")
    chat.wait_for("from the editor")
    chat.ask("")
    assert said() == ["from the editor"]
    assert chat.leave() == 0


def test_ctrl_c_clears_the_line_then_says_how_to_leave(chat: ChatScreen) -> None:
    chat.type("half a quest\x03\x03")
    chat.wait_for("Ctrl-D or /quit leaves")
    assert chat.leave() == 0
    assert conversations() == []


@pytest.mark.parametrize("typed", ["/quit\r", "/exit\r", "/bye\r", "\x04"])
def test_every_way_out(chat: ChatScreen, typed: str) -> None:
    chat.type(typed)
    assert chat.end() == 0


def test_a_polite_kill_at_the_prompt_gives_the_terminal_back(chat: ChatScreen) -> None:
    chat.signal(signal.SIGTERM)
    assert chat.end() == 143
    assert chat.raw.rindex(STARTED) > chat.raw.rindex(READY)


def test_what_is_typed_during_an_answer_waits_and_is_not_in_it(talk: Talk, model: Model) -> None:
    chat = talk("-m", model("story"), "--no-draft", "-c", "500000", "-n", 400)
    chat.type("hi\r")
    chat.wait_for(" w39")
    chat.type("/quit\r")
    assert chat.end() == 0
    (answer,) = [m["content"] for m in messages(*conversations()) if m["role"] == "assistant"]
    assert answer.replace(" ", "") in chat.text.replace(" ", "")
    assert chat.lines[-1] == ">>> /quit"


def test_the_bar_names_model_drafter_context_and_the_last_answer(talk: Talk, model: Model) -> None:
    chat = talk("-m", model("story"), "-md", model("draft"), "-k", 4, "-n", 30, "-c", 512)
    chat.wait_for("story · model, k 4 · 0/512")
    chat.ask("hi")
    chat.wait_for(" · accepted ")
    chat.enter("/spec off")
    chat.wait_for("story · off · ")
    assert chat.leave() == 0
