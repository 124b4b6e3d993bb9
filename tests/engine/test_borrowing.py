"""A copy that takes over what the target has read: the same cache, and nothing read again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import numpy as np
import pytest
from contexts import Load, context

from specdec_cli.engine.llama import borrowing as borrowing_module
from specdec_cli.engine.llama.borrowing import BorrowingContext
from specdec_cli.engine.llama.cache_layout import transposed
from specdec_cli.engine.llama.context import LlamaContext
from specdec_cli.engine.llama.model import LlamaModel

TOKENS = list(range(20, 20 + 30))


@pytest.fixture
def open_contexts() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def pair(
    stack: ExitStack,
    model: LlamaModel,
    lender: str = "off",
    own: str = "off",
    *,
    pairs: bool = True,  # rows whose bits depend on nothing else
) -> tuple[LlamaContext, LlamaContext]:
    """A target's context and that of its copy, here the same file, with and without attention."""
    made = [context(model, flash_attention=choice, pairs=pairs) for choice in (lender, own)]
    for one in made:
        stack.enter_context(closing(one))
    return made[0], made[1]


@pytest.mark.parametrize("piece", [7, 512])
@pytest.mark.parametrize("name", ["tiny", "real"])
def test_what_was_borrowed_is_what_would_have_been_read(
    request: pytest.FixtureRequest,
    open_contexts: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
    read_anew: list[int],
    name: str,
    piece: int,
) -> None:
    monkeypatch.setattr(borrowing_module, "PIECE", piece)
    lender, own = pair(open_contexts, request.getfixturevalue(name))
    borrowing = BorrowingContext(own, lender)
    expected = lender.logits(TOKENS, last=3).copy()
    assert borrowing.cached(TOKENS) == len(TOKENS) - 1
    read_anew.clear()
    np.testing.assert_array_equal(borrowing.logits(TOKENS, last=3), expected)
    assert read_anew == [3]


@pytest.mark.parametrize("own", ["on", "off"])
@pytest.mark.parametrize("lender", ["on", "off"])
@pytest.mark.parametrize("name", ["tiny", "real"])
def test_with_and_without_flash_attention(
    request: pytest.FixtureRequest, open_contexts: ExitStack, name: str, lender: str, own: str
) -> None:
    target, copy = pair(open_contexts, request.getfixturevalue(name), lender, own)
    borrowing = BorrowingContext(copy, target)
    target.logits(TOKENS[:20], last=1)
    borrowing.logits([*TOKENS[:20], 5, 6], last=1)  # two guesses, both refused
    target.logits(TOKENS, last=1)
    borrowed = borrowing.logits(TOKENS, last=1).copy()
    copy.forget()
    own_rows = copy.logits(TOKENS, last=1)
    difference = float(np.abs(borrowed - own_rows).max())
    assert difference < 0.1 * float(own_rows.max() - own_rows.min())
    assert borrowed.argmax() == own_rows.argmax()


def test_cells_are_passed_on_bit_by_bit(open_contexts: ExitStack, tiny: LlamaModel) -> None:
    lender, own = pair(open_contexts, tiny, "on", "off")
    lender.logits(TOKENS, last=1)
    parts = [transposed(lender.part(start, end)) for start, end in ((0, 11), (11, 12), (12, 30))]
    ends = (0, 11, 12, 30)
    for start, end, part in zip(ends, ends[1:], parts, strict=False):
        assert own.adopt(TOKENS[:end], start, part)
    for start, end, part in zip(ends, ends[1:], parts, strict=False):
        np.testing.assert_array_equal(own.part(start, end), part)
    assert own.memo == TOKENS


def test_guesses_give_way_to_what_the_target_makes_of_them(
    open_contexts: ExitStack, tiny: LlamaModel, read_anew: list[int]
) -> None:
    lender, own = pair(open_contexts, tiny, "on", "off", pairs=False)
    borrowing = BorrowingContext(own, lender)
    lender.logits(TOKENS[:20], last=1)
    for length in (21, 22, 23):  # guesses that stand
        borrowing.logits(TOKENS[:length], last=1)
    lender.logits(TOKENS[:24], last=4)
    read_anew.clear()
    borrowing.logits(TOKENS[:25], last=1)
    assert read_anew == [1]
    np.testing.assert_array_equal(own.part(0, 24), transposed(lender.part(0, 24)))


def test_lending_leaves_the_lender_as_it_was(open_contexts: ExitStack, tiny: LlamaModel) -> None:
    lender, own = pair(open_contexts, tiny)
    lender.logits(TOKENS, last=1)
    before = lender.state()
    lender.part(3, 17)
    np.testing.assert_array_equal(lender.state(), before)
    own.logits(TOKENS, last=1)
    longer = [*TOKENS, 7, 8]
    np.testing.assert_array_equal(lender.logits(longer, last=2), own.logits(longer, last=2))


def test_another_text_is_read_where_the_target_has_not_read_it(
    open_contexts: ExitStack, tiny: LlamaModel, read_anew: list[int]
) -> None:
    lender, own = pair(open_contexts, tiny)
    borrowing = BorrowingContext(own, lender)
    lender.logits(TOKENS, last=1)
    read_anew.clear()
    other = [*TOKENS[:9], 99, 98, 97]
    borrowed = borrowing.logits(other, last=2).copy()
    assert read_anew == [3]
    np.testing.assert_array_equal(lender.logits(other, last=2), borrowed)


def test_a_cache_of_another_shape_is_not_taken(
    open_contexts: ExitStack, tiny: LlamaModel, load: Load
) -> None:
    lender = open_contexts.enter_context(closing(context(load(width=128), pairs=True)))
    _, own = pair(open_contexts, tiny)
    borrowing = BorrowingContext(own, lender)
    lender.logits(TOKENS, last=1)
    rows = borrowing.logits(TOKENS, last=2).copy()
    assert borrowing.cached([*TOKENS, 7]) == len(TOKENS)  # its own, from now on
    own.forget()
    np.testing.assert_array_equal(own.logits(TOKENS, last=2), rows)


def test_only_what_is_laid_out_as_expected_is_transposed(
    open_contexts: ExitStack, tiny: LlamaModel
) -> None:
    lender, own = pair(open_contexts, tiny, "on", "off")
    lender.logits(TOKENS, last=1)
    own.logits(TOKENS, last=1)
    part = lender.part(0, 10)
    assert not np.array_equal(transposed(part), part)
    for strange in (own.part(0, 10), part[:-4], part[:40], np.concatenate([part, part[:4]])):
        np.testing.assert_array_equal(transposed(strange), strange)
    for place in (8, 12, 16 + 12 * 10 + 4):  # streams, cells, layers
        damaged = part.copy()
        damaged[place] += 1
        np.testing.assert_array_equal(transposed(damaged), damaged)
