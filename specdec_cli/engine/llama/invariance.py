"""Do the bits of a row depend on how many rows are evaluated with it?

Run as a module, in a process of its own, because some of llama.cpp's switches are read once per
process: one JSON document in the arguments, one on stdout.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from specdec_cli.engine.llama.context import ContextOptions, LlamaContext
from specdec_cli.engine.llama.model import LlamaModel
from specdec_cli.engine.llama.numerics import Numerics

TEXT = 288  # past 256 cached tokens, where attention changes its kernels
TAIL = 24  # rows compared at the end of the text; more where a width asks for it
CHUNKS = (32, TEXT)  # below and above the 64 rows at which tiled attention starts


@dataclass(frozen=True, slots=True)
class Question:
    """One setting to try: evaluate the same tokens in every width and compare bits."""

    path: str
    numerics: Numerics
    widths: tuple[int, ...]
    threads: int
    gpu_layers: int


def first_dependence(question: Question) -> str:
    """What a row's bits were seen to depend on; empty where they depend on nothing."""
    question.numerics.enter()
    model = LlamaModel(
        Path(question.path),
        gpu_layers=question.gpu_layers,
        repacked=question.numerics.repacked,
    )
    generator = np.random.default_rng(0)
    tokens = [int(t) for t in generator.integers(0, model.vocabulary.size, TEXT)]
    try:
        reference: np.ndarray[Any, Any] | None = None
        for chunk in CHUNKS:
            for what, rows in _evaluations(model, question, tokens, chunk):
                if reference is None:
                    reference = rows
                elif not np.array_equal(reference, rows):
                    worst = float(np.abs(reference - rows).max())
                    return f"{what} (logits differ by up to {worst:.3g})"
        return ""
    finally:
        model.close()


def _evaluations(
    model: LlamaModel, question: Question, tokens: list[int], chunk: int
) -> Iterable[tuple[str, np.ndarray[Any, Any]]]:
    """The tail's rows, after a prompt read in chunks, in one call and in steps of each width."""
    tail = max(TAIL, *question.widths)
    options = ContextOptions(
        size=TEXT,
        batch=chunk,
        rows=tail,
        threads=question.threads,
        flash_attention=question.numerics.flash_attention,
        pairs=question.numerics.pairs,
    )
    context = LlamaContext(model, options)
    try:
        head = TEXT - tail
        context.logits(tokens[:head], last=1)
        for width in question.widths:
            steps = range(head, TEXT, width)
            rows = [
                context.logits(tokens[: min(at + width, TEXT)], last=min(width, TEXT - at)).copy()
                for at in steps
            ]
            yield f"rows evaluated {width} at a time", np.concatenate(rows)
        context.forget()
        yield f"a prompt read {chunk} tokens at a time", context.logits(tokens, last=tail).copy()
    finally:
        context.close()


def main() -> None:
    asked = json.loads(sys.argv[1])
    question = Question(
        **{
            **asked,
            "numerics": Numerics(**asked["numerics"]),
            "widths": tuple(asked["widths"]),
        }
    )
    print(json.dumps({"dependence": first_dependence(question)}))  # noqa: T201


def to_json(question: Question) -> str:
    return json.dumps(asdict(question))


if __name__ == "__main__":
    main()
