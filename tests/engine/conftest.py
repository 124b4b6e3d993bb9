"""Models for the engine's tests, loaded once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from contexts import Load
from gguf_files import write_tiny, write_with_vocabulary_of

from specdec_cli.engine.llama.context import LlamaContext
from specdec_cli.engine.llama.model import LlamaModel


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """A tiny model made with these arguments of `write_tiny`."""
    opened: list[LlamaModel] = []

    def make(**arguments: object) -> LlamaModel:
        path = write_tiny(tmp_path / f"tiny{len(opened)}.gguf", **arguments)
        opened.append(LlamaModel(path))
        return opened[-1]

    yield make
    for model in opened:
        model.close()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaModel]:
    model = LlamaModel(write_tiny(tmp_path_factory.mktemp("tiny") / "tiny.gguf"))
    yield model
    model.close()


@pytest.fixture(scope="session")
def mamba(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaModel]:
    path = tmp_path_factory.mktemp("mamba") / "mamba.gguf"
    model = LlamaModel(write_tiny(path, architecture="mamba"))
    yield model
    model.close()


@pytest.fixture(scope="session")
def real(smollm2: Path) -> Iterator[LlamaModel]:
    model = LlamaModel(smollm2)
    yield model
    model.close()


@pytest.fixture(scope="session")
def clueless(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random draft with the real model's vocabulary."""
    return write_with_vocabulary_of(tmp_path_factory.mktemp("clueless") / "draft.gguf", smollm2)


@pytest.fixture
def read_anew(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens each call of llama.cpp evaluates."""
    counts: list[int] = []
    evaluate = LlamaContext._evaluate

    def counting(self: LlamaContext, tokens: list[int], start: int, *, rows: int) -> None:
        counts.append(len(tokens))
        evaluate(self, tokens, start, rows=rows)

    monkeypatch.setattr(LlamaContext, "_evaluate", counting)
    return counts
