"""With `pairs` and no flash attention, rows have the same bits after any history (DESIGN 1).

Measured for Q4_1 weights, which the real model has; on a machine whose kernels differ, the
probe behind `--exact` says so, and these tests would too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from contexts import ROWS, SIZE, context
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_cli.engine.llama.context import LlamaContext
from specdec_cli.engine.llama.model import LlamaModel

Pair = tuple[LlamaContext, LlamaContext]


@pytest.fixture(scope="module")
def pair(real: LlamaModel) -> Iterator[Pair]:
    """A context with a history and one without, reading prompts in chunks of other sizes."""
    used = context(real, pairs=True, flash_attention="off")
    fresh = context(real, pairs=True, flash_attention="off", batch=SIZE)
    yield used, fresh
    used.close()
    fresh.close()


def check(pair: Pair, tokens: list[int], last: int) -> None:
    used, fresh = pair
    fresh.forget()
    np.testing.assert_array_equal(used.logits(tokens, last=last), fresh.logits(tokens, last=last))


STEPS = st.lists(
    st.tuples(st.floats(0, 1), st.lists(st.integers(3, 250), max_size=20), st.integers(1, ROWS)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=12, deadline=None)
@given(STEPS)
def test_any_history_gives_the_same_bits(
    pair: Pair, steps: list[tuple[float, list[int], int]]
) -> None:
    tokens: list[int] = [5]
    for keep, added, last in steps:
        tokens = [*tokens[: round(keep * len(tokens))], *added][-SIZE:] or [7]
        check(pair, tokens, min(last, len(tokens)))


@pytest.mark.parametrize("last", range(1, ROWS + 1))
def test_the_last_row_has_the_same_bits_however_many_are_read(pair: Pair, last: int) -> None:
    tokens = list(range(20, 20 + SIZE))
    one = pair[0].logits(tokens, last=1).copy()
    np.testing.assert_array_equal(one[0], pair[0].logits(tokens, last=last)[-1])


@pytest.mark.parametrize("length", [1, 2, 3, SIZE - 1, SIZE])
def test_short_and_full_contexts_are_padded_right(pair: Pair, length: int) -> None:
    tokens = list(range(20, 20 + SIZE))
    pair[0].forget()
    for size in (length, min(length + 1, SIZE), 1, length):
        check(pair, tokens[:size], 1)
        assert pair[0].cached(tokens[:size]) == size
