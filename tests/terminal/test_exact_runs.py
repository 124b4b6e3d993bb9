"""`run --exact`: the same bytes whatever is drafted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command import Ran

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]


def test_an_exact_answer_is_the_same_with_any_draft_and_chunking(
    specdec: Specdec, smollm2: Path
) -> None:
    arguments = ["run", "--exact", "-m", smollm2, "-n", 20, "-s", 5, "-k", 6, "--json", "A fruit?"]
    plain = specdec(*arguments, "--no-draft").json["tokens"]
    drafted = specdec(*arguments, "-md", smollm2, "--drafter", "model", "-k", 4, "-b", 12).json
    assert drafted["tokens"] == plain
    assert drafted["speculative_decoding"]["num_accepted_draft_tokens"]
    assert specdec(*arguments, "--drafter", "suffix").json["tokens"] == plain


@pytest.mark.parametrize("rule", ["rejection", "block"])
def test_sampling_exactly_needs_the_coupled_rule(specdec: Specdec, model: Model, rule: str) -> None:
    arguments = ["run", "--exact", "-m", model("tale"), "--accept", rule]
    specdec(*arguments, "--temp", "0.8", "hello").failed(2, "coupled")
