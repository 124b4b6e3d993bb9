"""The check of frequencies compares draws with the law they were drawn from, and no other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from toy import PLAIN, TableModel, random_model

from specdec_cli.app.frequencies import compare_frequencies
from specdec_cli.engine.drafters import ModelDrafter

VOCAB = 6


class WidthMatters(TableModel):
    """As quantised weights are: a row's logits depend on how many are evaluated with it, and on
    which call it was."""

    calls = 0

    def logits(self, tokens: Any, *, last: int) -> Any:
        self.calls += 1
        noise = np.random.default_rng([self.calls, last]).normal(0, 0.4, (last, VOCAB))
        return super().logits(tokens, last=last) + noise.astype(np.float32)


@pytest.mark.parametrize("seed", range(4))
def test_a_sound_rule_passes_where_rows_depend_on_their_neighbours(seed: int) -> None:
    target = WidthMatters(random_model(seed, VOCAB).rows, VOCAB)
    drafter = ModelDrafter(
        random_model(seed + 50, VOCAB), PLAIN, target_vocab=VOCAB, ends=frozenset()
    )
    session: Any = SimpleNamespace(target=target)
    found = list(
        compare_frequencies(
            session, drafter, PLAIN, [1, 2, 3], place=0, guesses=2, seed=seed, full=False
        )
    )
    assert [test.rule for test in found] == ["rejection", "block"]
    assert min(test.p_value for test in found) > 1e-4
