"""Ctrl-C, a polite kill, and a reader that goes away."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command import PATIENCE, command, environment, parse
from screen import Screen

Model = Callable[[str], Path]
Watch = Callable[..., Screen]
ENDLESS = ["-n", "-1", "-c", "500000", "--ignore-eos", "hello"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_a_signal_ends_the_answer_and_keeps_what_is_there(
    model: Model, watch: Watch, number: signal.Signals, code: int
) -> None:
    screen = watch("run", "-m", model("story"), "-md", model("draft"), *ENDLESS)
    screen.wait_for(" w39")
    screen.signal(number)
    assert screen.end() == code
    assert " w0 w1 w2" in screen.text
    assert "interrupted" in screen.text
    assert "seed" in screen.text
    assert "· draft " not in screen.text


def test_ctrl_c_on_the_keyboard_does_the_same(model: Model, watch: Watch) -> None:
    screen = watch("run", "-m", model("story"), "--no-draft", *ENDLESS)
    screen.wait_for(" w39")
    screen.interrupt()
    assert screen.end() == 130


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment(),
    )


def test_an_interrupted_document_is_whole_and_says_so(model: Model) -> None:
    with start("run", "-m", model("story"), "--jsonl", *ENDLESS) as process:
        assert process.stdout is not None
        first = parse(process.stdout.readline())
        assert first["type"] == "token"
        process.send_signal(signal.SIGINT)
        lines = [first, *map(parse, process.stdout)]
    assert process.returncode == 130
    done = lines.pop()
    assert (done["type"], done["finish_reason"]) == ("done", "interrupted")
    assert "".join(line["text"] for line in lines) == done["text"]
    assert [line["id"] for line in lines] == done["tokens"]


@pytest.mark.parametrize("output", [[], ["--jsonl"]], ids=["text", "jsonl"])
def test_a_reader_that_goes_away_ends_the_run_quietly(model: Model, output: list[str]) -> None:
    with start("run", "-m", model("lines"), *output, *ENDLESS) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        process.wait(timeout=PATIENCE)
    assert process.returncode == 141
    assert "Traceback" not in err
    assert "error" not in err


def test_help_into_a_closed_pipe_is_quiet_too() -> None:
    piped = subprocess.run(
        ["/bin/sh", "-c", f"{' '.join(command('run', '--help'))} | head -1"],
        capture_output=True,
        env=environment(),
        timeout=PATIENCE,
        check=True,
    )
    assert piped.stderr == b""
