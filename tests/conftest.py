"""What all tests share: isolation from this machine, the real model, and the real command."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from command import Ran, run_specdec

from specdec_cli.engine.llama import extra_kernels
from specdec_cli.models.references import resolve

MODELS = "SPECDEC_MODELS"
DISPLAY = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
LOCALE = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "PYTHONIOENCODING", "PYTHONUTF8")


@cache
def kernels() -> str:
    """Found out once for all tests, whose caches are empty: does this build need crutches?"""
    found = resolve("smollm2:135m")
    return "on" if not isinstance(found, Path) or extra_kernels.usable(found) else "off"


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, variable or setting of the person who runs the tests has a say in them."""
    kept = os.environ.get(MODELS)
    for name in list(os.environ):
        if name.startswith(("SPECDEC_", "XDG_")) or name in DISPLAY:
            monkeypatch.delenv(name)
    if kept:
        monkeypatch.setenv(MODELS, str(Path(kept).absolute()))
    monkeypatch.setenv(extra_kernels.SWITCH, kernels())
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
    found = resolve("smollm2:135m")
    if not isinstance(found, Path):
        pytest.fail("smollm2:135m is not here: run `make test`, which fetches it")
    return found


@pytest.fixture
def specdec() -> Callable[..., Ran]:
    """Run the real command; nothing on standard input unless `input` is given."""
    return run_specdec
