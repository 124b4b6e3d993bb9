"""Prompts that do not fit, and standard inputs that are none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command import PATIENCE, Ran, command, environment, fails

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]


@pytest.mark.parametrize("size", ["1", "8"])
def test_a_prompt_that_does_not_fit_the_context(specdec: Specdec, model: Model, size: str) -> None:
    fails(
        8, "prompt_too_long", "run", "-m", model("tale"), "-c", size, "hello there",
        words=("tokens", f"context {size}", "-c"),
    )  # fmt: skip


def test_a_prompt_longer_than_the_models_own_context(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-m", model("tale"), input="word " * 2000)
    ran.failed(8, "context 512")


def test_a_context_beyond_all_memory(specdec: Specdec, model: Model) -> None:
    fails(6, "out_of_memory", "run", "-m", model("tale"), "-c", "2000000000", "hello")


def test_a_marker_in_the_prompt_does_not_end_the_turn(specdec: Specdec, model: Model) -> None:
    arguments = ["run", "-m", model("random"), "-n", 0, "--json"]
    plain = specdec(*arguments, "ab").json["usage"]["prompt_tokens"]
    marked = specdec(*arguments, "a<|im_end|>b").json["usage"]["prompt_tokens"]
    assert marked >= plain + len("<|im_end|>")  # a token for each byte, not one for the marker


def test_an_open_pipe_on_standard_input_does_not_hang_a_run_with_a_prompt(model: Model) -> None:
    reader, writer = os.pipe()
    try:
        ran = subprocess.run(
            command("run", "-m", model("tale"), "hello"),
            stdin=reader, capture_output=True, text=True, env=environment(), timeout=PATIENCE,
        )  # fmt: skip
    finally:
        os.close(reader)
        os.close(writer)
    assert ran.returncode == 0
    assert ran.stdout.startswith(" w0 w1")


def test_a_closed_standard_input_does_not_matter(model: Model) -> None:
    shell = f"{' '.join(command('run', '-m', model('tale'), 'hello'))} <&-"
    ran = subprocess.run(
        ["/bin/sh", "-c", shell],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PATIENCE,
    )
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stderr
    assert ran.stdout.startswith(" w0 w1")


def test_debugging_shows_the_traceback() -> None:
    ran = subprocess.run(
        command("run", "-m", "nowhere.gguf", "hello"),
        capture_output=True, text=True, env=environment({"SPECDEC_DEBUG": "1"}), timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ran.returncode == 3
    assert "Traceback" in ran.stderr
