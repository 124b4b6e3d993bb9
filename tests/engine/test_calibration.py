"""What a pass costs: the right passes are timed, in turns, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from contexts import context
from toy import FailingModel, random_model

from specdec_cli.engine.calibration import pass_seconds
from specdec_cli.engine.language_model import Interrupted, Logits
from specdec_cli.engine.llama.context import LlamaContext, common_prefix
from specdec_cli.engine.llama.model import LlamaModel

FILLER = (5, 5, 9, 5, 7)


class Charging:
    """A memo that charges for the rows it evaluates, and a clock that shows the bill."""

    vocab_size, context_size, can_roll_back = 10, 4096, True

    def __init__(self) -> None:
        self.now = 0.0
        self.memo: list[int] = [*FILLER, 5, 5]
        self.passes: list[tuple[int, int, int]] = []  # tokens kept, new rows, rows read
        self.surcharge: dict[int, float] = {}  # of the pass with this index

    def logits(self, tokens: Sequence[int], *, last: int) -> Logits:
        kept = min(self.cached(tokens), len(tokens) - last)
        rows = len(tokens) - kept
        self.now += 10.0 + rows + self.surcharge.get(len(self.passes), 0.0)
        self.passes.append((kept, rows, last))
        self.memo = list(tokens)
        return np.zeros((last, self.vocab_size), dtype=np.float32)

    def cached(self, tokens: Sequence[int]) -> int:
        return common_prefix(self.memo, list(tokens))

    def forget(self) -> None:
        self.memo = []

    def clock(self) -> float:
        self.now += 0.5  # looking at it takes time as well; it must not add up
        return self.now


@pytest.mark.parametrize("read", ["all", "last"])
def test_each_pass_evaluates_its_rows_and_no_others_and_the_counts_take_turns(read: str) -> None:
    model = Charging()
    rows = [1, 2, 3, 8]
    seconds = pass_seconds(
        model, rows, context=12, read=read, tokens=FILLER, repetitions=3, clock=model.clock
    )
    assert model.passes[0] == (0, 12, 1)  # the context, not timed
    assert model.passes[1:] == [(12, n, n if read == "all" else 1) for n in rows * 3]
    assert seconds == {n: 10.5 + n for n in rows}
    assert model.memo == []


def test_the_median_of_the_repetitions_counts() -> None:
    model = Charging()
    model.surcharge = {1: 50.0, 5: 4.0, 4: 9.0}  # of 1 row, of 1 row, of 2 rows
    seconds = pass_seconds(
        model, [1, 2], context=3, read="all", tokens=FILLER, repetitions=3, clock=model.clock
    )
    assert seconds == {1: 10.5 + 1 + 4.0, 2: 10.5 + 2}


def test_an_empty_context_is_a_depth_too() -> None:
    model = Charging()
    seconds = pass_seconds(model, [1, 4], context=0, read="last", tokens=FILLER, clock=model.clock)
    assert model.passes == [(0, n, 1) for n in [1, 4] * 3]
    assert seconds == {1: 11.5, 4: 14.5}


def test_a_filler_of_one_token_could_not_tell_passes_apart() -> None:
    with pytest.raises(ValueError, match="two different"):
        pass_seconds(Charging(), [1], context=3, read="all", tokens=[5, 5])


def test_what_was_evaluated_before_an_interruption_is_forgotten() -> None:
    forgotten = []

    class Stopped(FailingModel):
        def forget(self) -> None:
            forgotten.append(True)

    model = Stopped(random_model(1, 10), 3, Interrupted())
    with pytest.raises(Interrupted):
        pass_seconds(model, [1, 2], context=3, read="all", tokens=FILLER)
    assert len(forgotten) == 2  # before the first pass and after the last


Evaluated = list[tuple[int, int, int]]  # of each evaluation: start, tokens, rows read


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> Evaluated:
    seen: Evaluated = []
    evaluate = LlamaContext._evaluate

    def spy(self: LlamaContext, tokens: list[int], start: int, *, rows: int) -> None:
        seen.append((start, len(tokens), rows))
        evaluate(self, tokens, start, rows=rows)

    monkeypatch.setattr(LlamaContext, "_evaluate", spy)
    return seen


@pytest.mark.parametrize("read", ["all", "last"])
def test_a_real_context_evaluates_exactly_these_rows(
    tiny: LlamaModel, evaluated: Evaluated, read: str
) -> None:
    model = context(tiny)
    counts = [1, 2, 3, 5]
    seconds = pass_seconds(
        model, counts, context=14, read=read, tokens=[40, 41, 42, 40], repetitions=2
    )
    assert evaluated[0] == (0, 14, 1)
    assert evaluated[1:] == [(14, n, n if read == "all" else 1) for n in counts * 2]
    assert list(seconds) == counts
    assert model.cached([40, 41]) == 0
    model.close()


def test_where_no_row_may_stand_alone_one_costs_what_two_cost(
    tiny: LlamaModel, evaluated: Evaluated
) -> None:
    model = context(tiny, pairs=True)
    pass_seconds(model, [1, 2, 3], context=10, read="all", tokens=[40, 41], repetitions=1)
    assert evaluated == [(0, 10, 2), (9, 2, 2), (10, 2, 2), (10, 3, 3)]
    model.close()
