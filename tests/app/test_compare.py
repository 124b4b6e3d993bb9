"""Speculation against plain decoding in one run: whole answers, honest in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest
from gguf_files import write_tiny

from specdec_cli.app.compare import Comparison, compare_with_plain, warm_up
from specdec_cli.app.draft_models import DraftFile
from specdec_cli.app.generate import Answer, AnswerOptions, answer
from specdec_cli.app.session import LoadOptions, Session
from specdec_cli.cli.run import verdict
from specdec_cli.core.options import SamplingOptions

PROMPT = [5, 9, 40, 33, 80]
OPTIONS = AnswerOptions(SamplingOptions(temp=0), seed=1, draft_tokens=3, max_tokens=20)


def test_the_plain_answer_has_the_same_budget_and_the_caches_are_emptied(
    tmp_path: Path,
) -> None:
    target = write_tiny(tmp_path / "target.gguf", seed=1)
    draft = write_tiny(tmp_path / "draft.gguf", seed=2)
    with Session(
        LoadOptions(target, (DraftFile(draft),), draft_tokens=3, context_size=64, threads=1)
    ) as pair:
        warm_up(pair)
        assert pair.target.cached(PROMPT) == 0
        *_, speculative = answer(pair, PROMPT, OPTIONS)
        assert isinstance(speculative, Answer)
        assert pair.target.cached(PROMPT) == len(PROMPT)
        found = compare_with_plain(pair, PROMPT, OPTIONS, speculative)
        assert found is not None
        assert found.first_difference is None
        assert found.speculative_tps > 0
        assert found.plain_tps > 0
        pair.stop.set()  # interrupted: there is nothing to compare
        assert compare_with_plain(pair, PROMPT, OPTIONS, speculative) is None


@pytest.mark.parametrize(
    ("rates", "difference", "words"),
    [
        ((30.0, 15.0), None, ("speculation was 2.00x as fast as plain", "same text")),
        ((15.0, 30.0), None, ("plain was faster", "0.50x", "15.0 tok/s speculative")),
        ((30.0, 15.0), 7, ("texts part at token 7",)),
    ],
)
def test_theverdict_says_which_was_faster(
    rates: tuple[float, float], difference: int | None, words: tuple[str, ...]
) -> None:
    text = verdict(Comparison(*rates, difference), one_text=True)
    assert all(word in text for word in words)
