"""A low-bit copy of a target that need not read what the target has read.

Both have the same layers, so a token's keys and values are nearly the same in both: those of the
target do for the copy, and are the better ones. Copying takes a tenth of a millisecond a token,
where reading would take several. Guesses may come from anywhere, so answers stay exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from specdec_cli.engine.language_model import Logits
from specdec_cli.engine.llama.cache_layout import transposed
from specdec_cli.engine.llama.context import LlamaContext

PIECE = 512  # tokens that are copied at a time: a long text's keys and values may fill gigabytes


class BorrowingContext:
    """A `LanguageModel` over the copy's own context.

    What the copy has evaluated itself, its guesses, gives way to what the target makes of it.

    Args:
        own: of the copy.
        lender: of the target; asked only between its evaluations.
    """

    def __init__(self, own: LlamaContext, lender: LlamaContext) -> None:
        self.vocab_size = own.vocab_size
        self.context_size = own.context_size
        self.can_roll_back = own.can_roll_back
        self._own = own
        self._lender: LlamaContext | None = lender
        self._borrowed = 0  # leading tokens of `own`'s memo

    def logits(self, tokens: Sequence[int], *, last: int) -> Logits:
        unread = len(tokens) - last
        self._borrow(tokens, unread)
        self._borrowed = min(self._borrowed, unread)
        return self._own.logits(tokens, last=last)

    def cached(self, tokens: Sequence[int]) -> int:
        return max(self._own.cached(tokens), self._lent(tokens, len(tokens) - 1))

    def forget(self) -> None:
        self._own.forget()

    def _lent(self, tokens: Sequence[int], most: int) -> int:
        return min(self._lender.cached(tokens), most) if self._lender else 0

    def _borrow(self, tokens: Sequence[int], most: int) -> None:
        """Take over what is missing of the first `most` tokens."""
        self._borrowed = min(self._borrowed, self._own.cached(tokens))
        lent = self._lent(tokens, most)
        while self._lender is not None and self._borrowed < lent:
            end = min(lent, self._borrowed + PIECE)
            part = self._lender.part(self._borrowed, end)
            if self._own.transposes_values:
                part = transposed(part)
            if self._own.adopt(tokens[:end], self._borrowed, part):
                self._borrowed = end
            else:
                self._lender = None  # their caches differ after all: it reads for itself
