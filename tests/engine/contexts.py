"""Small contexts, and what the tests do with them."""

from __future__ import annotations

from collections.abc import Callable

from specdec_cli.engine.llama.context import ContextOptions, LlamaContext
from specdec_cli.engine.llama.model import LlamaModel

Load = Callable[..., LlamaModel]  # the fixture `load`

SIZE, BATCH, ROWS = 48, 16, 5


def context(
    model: LlamaModel, *, stop: Callable[[], bool] | None = None, **options: object
) -> LlamaContext:
    defaults: dict[str, object] = {"size": SIZE, "batch": BATCH, "rows": ROWS, "threads": 1}
    return LlamaContext(model, ContextOptions(**{**defaults, **options}), stop=stop)  # type: ignore[arg-type]


class Countdown:
    """Asks to stop at the n-th time it is asked, once."""

    def __init__(self) -> None:
        self.left: int | None = None

    def __call__(self) -> bool:
        if self.left is None:
            return False
        self.left -= 1
        if self.left >= 0:
            return False
        self.left = None
        return True
