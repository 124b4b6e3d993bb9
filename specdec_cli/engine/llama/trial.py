"""The process that `extra_kernels` sends ahead: it loads a model, evaluates a little, or dies."""

from __future__ import annotations

import sys
from pathlib import Path

from specdec_cli.engine.llama.context import ContextOptions, LlamaContext
from specdec_cli.engine.llama.model import LlamaModel


def main(path: Path) -> None:
    context = LlamaContext(LlamaModel(path), ContextOptions(size=64, rows=2, threads=1))
    context.logits([0], last=1)  # one row and several run through different kernels
    context.logits([0] * 33, last=2)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
