"""What all tests share: isolation from this machine, the real model, and the real command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

MODELS = "SPECDEC_MODELS"
PATIENCE = 120  # seconds; only a hang reaches it
DISPLAY = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
LOCALE = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "PYTHONIOENCODING", "PYTHONUTF8")

Specdec = Callable[..., "Ran"]


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


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, variable or setting of the person who runs the tests has a say in them."""
    kept = os.environ.get(MODELS)
    for name in list(os.environ):
        if name.startswith(("SPECDEC_", "XDG_")) or name in DISPLAY:
            monkeypatch.delenv(name)
    if kept:
        monkeypatch.setenv(MODELS, str(Path(kept).absolute()))
    for name in LOCALE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TERM", "xterm-256color")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HF_HOME", str(home / "huggingface"))
    here = tmp_path / "here"  # where ./specdec.toml would be
    here.mkdir()
    monkeypatch.chdir(here)


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The real model, 98 MB."""
    from specdec_cli.models.references import resolve

    found = resolve("smollm2:135m")
    if not isinstance(found, Path):
        pytest.fail("smollm2:135m is not here: run `make test`, which fetches it")
    return found


@pytest.fixture
def specdec() -> Specdec:
    """Run the real command; nothing on standard input unless `input` is given."""
    return run_specdec


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


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """The isolated environment of this test, without a network."""
    return {**os.environ, "HF_HUB_OFFLINE": "1", **(changes or {})}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "specdec_cli", *map(str, arguments)]
