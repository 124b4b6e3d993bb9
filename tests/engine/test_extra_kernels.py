"""A build that crashes in its own kernels is found out by a process that may crash."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from gguf_files import write_tiny

from specdec_cli.app.session import LoadOptions, Session
from specdec_cli.engine.llama import extra_kernels, library

AMX = "CPU : AVX512 = 1 | AMX_INT8 = 1 | REPACK = 1 |"


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """On a processor with AMX, whose trials die; what was run is collected."""
    monkeypatch.delenv(extra_kernels.SWITCH)
    monkeypatch.setattr(library, "system", lambda: AMX)
    extra_kernels._survives.cache_clear()
    commands: list[list[str]] = []

    def run(command: list[str], **options: object) -> SimpleNamespace:
        commands.append(command)
        return SimpleNamespace(returncode=-signal.SIGSEGV)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_a_build_that_dies_is_used_without_its_extra_kernels_and_says_so(
    trials: list[list[str]], tmp_path: Path
) -> None:
    path = write_tiny(tmp_path / "target.gguf", seed=1)
    for _ in range(2):
        with Session(LoadOptions(path, context_size=64, threads=1)) as session:
            assert extra_kernels.NOTICE in session.notices
            assert session.target.logits([1, 2], last=1).shape[0] == 1
        extra_kernels._survives.cache_clear()  # as in a new process
    assert len(trials) == 1  # remembered on disk


def test_without_amx_nothing_is_tried(
    trials: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "system", lambda: "CPU : AVX2 = 1 | REPACK = 1 |")
    assert extra_kernels.usable(tmp_path / "any.gguf")
    assert not trials


def test_the_switch_stands_above_the_trial(
    trials: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in ("on", "off"):
        monkeypatch.setenv(extra_kernels.SWITCH, value)
        assert extra_kernels.usable(tmp_path / "any.gguf") == (value == "on")
    assert not trials


def test_a_real_trial_is_survived_and_its_outcome_kept(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "target.gguf", seed=1)
    extra_kernels._survives.cache_clear()
    found = extra_kernels._survives(path)
    kept = [file.read_text() for file in (tmp_path / "home").rglob("kernels/*")]
    assert kept == ["on" if found else "off"]
