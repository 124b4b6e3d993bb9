"""What a turn looks like: colours, ghosts, the live line, odd widths, text that means harm."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from chats import READY, ChatScreen, conversations, messages
from command import Ran, environment
from gguf_files import EOS, write_tiny

from specdec_cli.cli.signals import stop_on_signals
from specdec_cli.cli.summary import folded

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]
Talk = Callable[..., ChatScreen]

GREEN_TEXT = re.compile(r"\x1b\[32m(.*?)\x1b\[0m", re.DOTALL)
FAINT_TEXT = re.compile(r"\x1b\[2m(.*?)\x1b\[0m", re.DOTALL)


def pair(model: Model) -> list[object]:
    return ["-m", model("story"), "-md", model("draft"), "-k", 4]


def answers() -> list[dict]:
    return [m for m in messages(conversations()[-1]) if m["role"] == "assistant"]


def test_the_accepted_tokens_are_green_and_no_others(talk: Talk, model: Model) -> None:
    chat = talk(*pair(model), "-n", 30)
    chat.ask("hi")
    green = [text for text in GREEN_TEXT.findall(chat.raw) if text.startswith(" w")]
    assert len(green) == answers()[0]["details"]["accepted"] > 5
    chat.enter("/color off")
    before = len(chat.raw)
    chat.ask("hi")
    assert not GREEN_TEXT.findall(chat.raw[before:])
    assert chat.leave() == 0


def test_without_colours_until_they_are_asked_for(talk: Talk, model: Model) -> None:
    chat = talk(*pair(model), "-n", 12, env={"NO_COLOR": "1"})
    chat.ask("hi")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", chat.raw)
    chat.enter("/color on")
    chat.ask("hi")
    assert GREEN_TEXT.search(chat.raw)
    assert chat.leave() == 0


def test_ghosts_are_drafted_text_and_leave_no_trace(talk: Talk, model: Model) -> None:
    chat = talk(*pair(model), "-n", 40, "--ghost")
    chat.ask("hi")
    ghosts = [text for text in FAINT_TEXT.findall(chat.raw) if text.startswith(" w")]
    assert " w1 w2 w3 w4" in ghosts
    assert " w8 w0 w1 w2" not in chat.text  # guessed after w7, and refused
    assert "".join(f" w{i}" for i in range(40)).replace(" ", "") in chat.text.replace(" ", "")
    assert chat.leave() == 0
    chat = talk(*pair(model), "-n", 40)
    chat.ask("hi")
    assert not [text for text in FAINT_TEXT.findall(chat.raw) if text.startswith(" w")]
    chat.enter("/set ghost on")
    chat.ask("hi")
    assert [text for text in FAINT_TEXT.findall(chat.raw) if text.startswith(" w")]
    assert chat.leave() == 0


@pytest.mark.parametrize("columns", [20, 40])
def test_a_narrow_terminal_shows_all_of_it(talk: Talk, model: Model, columns: int) -> None:
    chat = talk(*pair(model), "-n", 60, "--ghost", columns=columns)
    for line in ("hi", "/help", "/stats", "/why", "/set", "/show", "/load"):
        chat.enter(line)
    story = "".join(f"w{i % 40}" for i in range(60))
    assert story in chat.text.replace(" ", "")
    assert chat.leave() == 0


def test_a_resize_in_the_middle_of_an_answer(talk: Talk, model: Model) -> None:
    chat = talk(*pair(model), "--ghost", "-n", 1500, "-c", 100_000)
    chat.type("hi\r")
    for columns in (50, 120, 33, 80):
        chat.wait_for(" w39")
        chat.resize(columns)
    chat.wait_for(READY)
    assert chat.leave() == 0
    story = "".join(f" w{i % 40}" for i in range(1500))
    assert answers()[0]["content"] == story
    assert "tok/s" in chat.text


@pytest.mark.parametrize("name", ["escapes", "markup"])
def test_what_a_model_says_cannot_drive_the_terminal(talk: Talk, model: Model, name: str) -> None:
    chat = talk("-m", model(name), "--ghost", "--drafter", "suffix")
    chat.ask("hi")
    chat.ask("hi")
    said = answers()[-1]["content"]
    assert ("[bold]" if name == "markup" else "\x1b[31mred") in said
    visible = re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda m: f"\\x{ord(m[0]):02x}", said)
    assert visible in "\n".join(chat.lines)
    assert chat.title == ""
    assert chat.leave() == 0


def test_thoughts_are_faint(talk: Talk, tmp_path: Path) -> None:
    script = ("<think>", " first", " this", "</think>", " then", " that", EOS)
    path = write_tiny(tmp_path / "thinker.gguf", script=script)
    chat = talk("-m", path, "--no-draft")
    chat.ask("hi")
    faint = FAINT_TEXT.findall(chat.raw)
    assert [text for text in faint if text in script] == list(script[:4])
    assert "<think> first this</think> then that" in chat.text
    assert chat.leave() == 0


def test_ctrl_c_keeps_what_was_said_and_the_chat(talk: Talk, model: Model) -> None:
    chat = talk(*pair(model), "-c", "500000")
    chat.type("hi\r")
    chat.wait_for(" w39")
    chat.interrupt()
    chat.wait_for(READY)
    assert "interrupted (/continue goes on)" in chat.text
    (partial,) = answers()
    assert partial["partial"]
    assert len(chat.turns[-1].tokens) >= 40
    assert chat.turns[-1].finish == "interrupted"
    chat.enter("/set n 5")
    chat.ask("/continue")
    (longer,) = answers()
    assert longer["content"].startswith(partial["content"])
    assert len(longer["content"]) > len(partial["content"])
    assert chat.leave() == 0


def test_impatience_does_no_harm() -> None:
    stop = Event()
    with stop_on_signals(stop, insist=False) as signals:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
    assert stop.is_set()
    assert signals.received
    with stop_on_signals(Event()):
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_kill_loses_at_most_the_running_answer(talk: Talk, model: Model) -> None:
    chat = talk("-m", model("story"), "--no-draft", "-n", 3, "-c", "500000")
    chat.ask("first")
    chat.enter("/set n -1")
    chat.type("second\r")
    chat.wait_for(" w39")
    chat.signal(signal.SIGKILL)
    chat.close()
    kept = [m["content"] for m in messages(*conversations())]
    assert kept == ["first", " w0 w1 w2", "second"]
    chat = talk("--continue", "-n", 3)
    chat.ask("/retry")
    assert [m["content"] for m in messages(*conversations())][2:] == ["second", " w0 w1 w2"]
    assert chat.leave() == 0


def test_a_polite_kill_during_an_answer_saves_it(talk: Talk, model: Model) -> None:
    chat = talk("-m", model("story"), "--no-draft", "-c", "500000")
    chat.type("hi\r")
    chat.wait_for(" w39")
    chat.signal(signal.SIGTERM)
    assert chat.end() == 143
    assert " w39" in answers()[0]["content"]


def test_a_conversation_that_cannot_be_saved_is_kept_in_memory(talk: Talk, model: Model) -> None:
    place = Path(environment()["HOME"]) / ".local/share/specdec/conversations"
    place.parent.mkdir(parents=True)
    place.write_text("not a directory")
    chat = talk("-m", model("tale"))
    chat.ask("first")
    assert "could not be saved" in chat.text
    assert "nothing is lost in memory" in chat.text
    place.unlink()
    chat.ask("second")
    assert [m["content"] for m in messages(*conversations())][::2] == ["first", "second"]
    assert chat.leave() == 0


def test_files_that_are_no_conversations_of_ours(
    talk: Talk, specdec: Specdec, model: Model
) -> None:
    chat = talk("-m", model("tale"))
    chat.ask("first")
    (path,) = conversations()
    specdec("chat", "--resume", path.stem, input="x\n").failed(2, "is open elsewhere")
    corrupt, newer = path.with_name("corrupt.jsonl"), path.with_name("newer.jsonl")
    lines = path.read_text().splitlines()
    corrupt.write_text("\n".join([lines[0], lines[1][:-9]]))
    newer.write_text(json.dumps({**json.loads(lines[0]), "format": "specdec-chat/9"}) + "\n")
    chat.enter("/load corrupt")
    assert "damaged" in chat.text
    chat.enter("/load newer")
    assert "newer specdec" in chat.text
    chat.enter("/load")
    assert "cannot be read" in chat.text
    chat.ask("second")
    assert len(messages(path)) == 4
    assert chat.leave() == 0


def test_a_line_of_figures_folds_between_parts_and_a_long_part_between_words() -> None:
    parts = ["26 tokens", "nothing drafted (no guesses pay)", "seed 1"]
    assert folded(parts, 80) == " · ".join(parts)
    assert folded(parts, 40).split("\n") == parts
    assert folded(parts, 20).split("\n") == [
        "26 tokens", "nothing drafted (no", "guesses pay)", "seed 1"
    ]  # fmt: skip
    assert folded(["a b"], -3) == "a\nb"
