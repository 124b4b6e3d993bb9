"""On a real terminal: colours, the live line, and text that stays as it was written."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Ran, command
from screen import Screen

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]
Watch = Callable[..., Screen]

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
GREEN_TEXT = re.compile(r"\x1b\[32m(.*?)\x1b\[0m", re.DOTALL)


def words(count: int) -> str:
    return "".join(f" w{i % 40}" for i in range(count))


def pair(model: Model) -> list[object]:
    return ["-m", model("story"), "-md", model("draft"), "--drafter", "model", "-k", 4, "-s", 1]


def test_the_accepted_tokens_are_green_and_no_others(
    specdec: Specdec, model: Model, watch: Watch
) -> None:
    arguments = ["run", *pair(model), "-n", 30, "hello"]
    *events, _ = specdec(*arguments, "--jsonl").lines
    drafted = [event["text"] for event in events if event["source"] == "model"]
    assert 5 < len(drafted) < 29
    screen = watch(*arguments, "--quiet")
    assert screen.end() == 0
    assert GREEN_TEXT.findall(screen.raw) == drafted
    assert COLOUR.sub("", screen.raw).replace("\r\n", "\n") == words(30) + "\n"
    assert screen.coloured("green") == "".join(drafted).replace(" ", "")


@pytest.mark.parametrize(
    ("arguments", "env"),
    [
        (["--show", "none"], {}),
        (["--color", "never"], {}),
        ([], {"NO_COLOR": "1"}),
        ([], {"TERM": "dumb"}),
        ([], {"SPECDEC_SHOW": "none"}),
        ([], {"SPECDEC_COLOR": "never"}),
    ],
    ids=str,
)
def test_colours_can_be_turned_off(
    model: Model, watch: Watch, arguments: list[str], env: dict[str, str]
) -> None:
    screen = watch("run", *pair(model), "-n", 12, "--quiet", *arguments, "hello", env=env)
    assert screen.end() == 0
    assert screen.raw == words(12) + "\r\n"


def test_the_option_stands_above_no_color(model: Model, watch: Watch) -> None:
    screen = watch(
        "run", *pair(model), "-n", 12, "-q", "--color", "always", "x", env={"NO_COLOR": "1"}
    )
    screen.end()
    assert GREEN_TEXT.search(screen.raw)


@pytest.mark.parametrize("arguments", [[], ["--show", "accepted"]], ids=str)
def test_a_pipe_gets_no_control_codes(specdec: Specdec, model: Model, arguments: list[str]) -> None:
    ran = specdec("run", *pair(model), "-n", 12, *arguments, "hello")
    assert ran.out == words(12) + "\n"
    ran = specdec("run", *pair(model), "-n", 12, *arguments, "hello", env={"FORCE_COLOR": "1"})
    assert ran.out == words(12) + "\n"


def test_a_pipe_gets_colours_where_they_are_asked_for_by_name(
    specdec: Specdec, model: Model
) -> None:
    ran = specdec("run", *pair(model), "-n", 12, "--color", "always", "hello")
    assert GREEN_TEXT.search(ran.out)


def test_a_live_line_is_there_while_text_comes_and_gone_at_the_end(
    model: Model, watch: Watch
) -> None:
    screen = watch("run", *pair(model), "-c", "400000", "--ignore-eos", "hello")
    screen.wait_for("· draft ")
    screen.interrupt()
    assert screen.end() == 130
    assert "· draft " not in screen.text
    assert words(40).replace(" ", "") in screen.text.replace(" ", "")
    assert "drafts accepted" in "".join(screen.lines[-2:])


@pytest.mark.parametrize("columns", [40, 80, 137])
@pytest.mark.parametrize("name", ["story", "wide", "lines"])
def test_text_is_whole_on_the_screen_at_any_width(
    specdec: Specdec, model: Model, watch: Watch, name: str, columns: int
) -> None:
    arguments = ["run", "-m", model(name), "-md", model(name), "--drafter", "model"]
    arguments += ["-n", 120, "-s", 1, "hello"]
    expected = specdec(*arguments).out
    screen = watch(*arguments, columns=columns)
    assert screen.end() == 0
    note_and_answer = "".join(screen.text.split())
    answer = "".join(expected.split())
    assert answer in note_and_answer
    if name == "lines":
        assert [line for line in screen.lines if line.startswith("line ")] == expected.split("\n")[
            :-1
        ]


def test_a_narrow_window_does_not_break_the_live_line(model: Model, watch: Watch) -> None:
    screen = watch("run", *pair(model), "-n", 100, "hello", columns=10, lines=5)
    assert screen.end() == 0
    assert words(100).replace(" ", "") in screen.text.replace(" ", "")


def test_quiet_shows_no_live_line(model: Model, watch: Watch) -> None:
    screen = watch("run", "-q", *pair(model), "-n", 60, "hello")
    screen.end()
    assert "tok/s" not in screen.raw


def test_a_dumb_terminal_gets_plain_text(model: Model, watch: Watch) -> None:
    screen = watch("run", *pair(model), "-n", 60, "hello", env={"TERM": "dumb"})
    screen.end()
    assert "\x1b" not in screen.raw


def test_redirected_text_leaves_the_live_line_on_the_terminal(model: Model, watch: Watch) -> None:
    run = " ".join(command("run", *pair(model), "-n", 60, "hello"))
    screen = watch(shell=f"{run} > answer.txt; echo END $?")
    screen.wait_for("tok/s")
    screen.end()
    assert Path("answer.txt").read_text() == words(60) + "\n"
    assert "END 0" in screen.text
    assert "· draft " not in screen.text


def test_a_pipe_that_leads_to_the_same_terminal_is_not_drawn_over(
    model: Model, watch: Watch
) -> None:
    run = " ".join(command("run", *pair(model), "-n", 60, "hello"))
    screen = watch(shell=f"{run} | cat")
    screen.end()
    assert words(60).replace(" ", "") in screen.text.replace(" ", "")


def test_what_a_model_says_cannot_drive_the_terminal(model: Model, watch: Watch) -> None:
    screen = watch("run", "-q", "--no-draft", "-m", model("escapes"), "hello")
    assert screen.end() == 0
    assert "\x1b" not in screen.raw
    assert "\x9b" not in screen.raw
    assert "title" not in screen.title
    assert "\\x1b[31mred" in screen.text
    assert screen.text.endswith(" end")


def test_a_pipe_gets_the_bytes_that_the_model_said(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-q", "-m", model("escapes"), "hello")
    assert ran.raw == "\x1b[31mred\x1b]0;title\x07\x9b2J\r\b end\n".encode()


def test_a_prompt_is_asked_for_where_nobody_gave_one(watch: Watch) -> None:
    screen = watch("run")
    assert screen.end() == 2
    assert "there is no prompt" in screen.text


def test_errors_on_a_terminal_have_three_lines_too(watch: Watch) -> None:
    screen = watch("run", "-m", "nowhere.gguf", "hello")
    assert screen.end() == 3
    assert screen.lines[0].startswith("error: ")


def test_a_typed_prompt_ends_with_the_end_of_input(model: Model, watch: Watch) -> None:
    screen = watch("run", "-q", "-m", model("tale"), "-")
    screen.type("hello\n\x04")
    assert screen.end() == 0
    assert words(12) in screen.raw
