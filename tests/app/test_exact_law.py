"""A small sample of `benchmarks/exact_law.py`: the shipped loop on a real model and its law."""

from __future__ import annotations

from pathlib import Path

from exact_law import PROMPT, SIGNIFICANT, run_arms

from specdec_cli.engine.llama.context import ContextOptions, LlamaContext
from specdec_cli.engine.llama.model import LlamaModel


def test_answers_of_smollm2_follow_its_own_law(smollm2: Path) -> None:
    model = LlamaModel(smollm2)
    context = LlamaContext(model, ContextOptions(size=64, rows=8, threads=1))
    arms = run_arms(context, 300, model.vocabulary.tokenize(PROMPT, special=False))
    context.close()
    model.close()
    assert len(arms) == 30
    assert min(arm.adjusted for arm in arms) > SIGNIFICANT
