"""The examples run, and do what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: object) -> str:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    # Threads that wait without spinning: the example takes all cores, and CI may have company.
    env = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    ran = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_an_answer_is_streamed_from_python(smollm2: Path) -> None:
    out = run("stream.py", smollm2, smollm2, "Why is the sky blue?")
    accepted, drafted = out.splitlines()[-1].split(" accepted")[0].split("/")
    assert 0 < int(accepted) <= int(drafted)


def test_a_drafter_of_ones_own_speeds_up_what_it_knows(smollm2: Path) -> None:
    lines = run("own_drafter.py", smollm2).splitlines()
    assert any(line.startswith("6 of 6 guesses") for line in lines), lines


def test_every_example_has_a_test() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"stream.py", "own_drafter.py"}
