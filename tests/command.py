"""The real command in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PATIENCE = 120  # seconds; only a hang reaches it


@dataclass(frozen=True)
class Ran:
    """What a run of the command left behind."""

    out: str
    err: str
    code: int
    raw: bytes  # stdout as it came

    @property
    def json(self) -> Any:
        """The one document on stdout; NaN and Infinity are no JSON."""
        assert self.code == 0, self.err
        return parse(self.out)

    @property
    def lines(self) -> list[Any]:
        return [parse(line) for line in self.out.splitlines()]

    def failed(self, code: int, *words: str) -> Ran:
        """Check an error: its code, three lines on stderr, every word in them, no traceback."""
        assert self.code == code, (self.code, self.out, self.err)
        lines = [line for line in self.err.splitlines() if not line.startswith("note: ")]
        assert len(lines) == 3, self.err
        assert lines[0].startswith("error: ")
        assert lines[1].startswith("  ")
        assert lines[2].startswith("  fix: ")
        for word in words:
            assert word in self.err, (word, self.err)
        return self


def parse(text: str) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def run_specdec(
    *arguments: object,
    input: str | bytes | None = None,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> Ran:
    if isinstance(input, str):
        input = input.encode()
    where = {"input": input} if input is not None else {"stdin": subprocess.DEVNULL}
    process = subprocess.run(
        command(*arguments),
        capture_output=True,
        env=environment(env),
        timeout=PATIENCE,
        **{**where, **options},
    )
    out, err = process.stdout.decode(), process.stderr.decode()
    assert "Traceback" not in err, err
    return Ran(out, err, process.returncode, process.stdout)


def fails(code: int, kind: str, *arguments: object, words: tuple[str, ...] = ()) -> None:
    """Check an error as text and, with --json, as a document with the same code."""
    ran = run_specdec(*arguments).failed(code, *words)
    assert ran.out == ""
    with_json = run_specdec(*arguments, "--json")
    error = parse(with_json.out)["error"]
    assert (error["code"], error["type"], with_json.code) == (code, kind, code)
    assert set(error) == {"code", "type", "message", "hint"}
    assert error["hint"]
    assert f"error: {error['message']}\n" in with_json.err


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """The isolated environment of this test: no network, and one thread for the tiny models."""
    return {**os.environ, "HF_HUB_OFFLINE": "1", "SPECDEC_THREADS": "1", **(changes or {})}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "specdec_cli", *map(str, arguments)]
