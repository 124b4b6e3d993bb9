"""What a pass of a model costs here and now, by its number of new rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from statistics import median
from time import perf_counter
from typing import Literal

from specdec_cli.engine.language_model import LanguageModel


def pass_seconds(
    model: LanguageModel,
    rows: Sequence[int],
    *,
    context: int,
    read: Literal["all", "last"],
    tokens: Sequence[int],
    repetitions: int = 3,
    clock: Callable[[], float] = perf_counter,
) -> dict[int, float]:
    """Median seconds of one pass with n new rows after `context` tokens, for each n of `rows`.

    The counts take turns, 1, 2, ..., n and again from 1, so that a machine that slows down on the
    way slows all of them alike. Reading the context is not timed; a model that cannot roll back
    reads it in every pass, though.

    Args:
        rows: different numbers of new rows; the largest must fit the model's context, its batch
            and, where all are read, the rows of logits that it has room for.
        context: tokens in the memo before each pass.
        read: logits of all new rows, as a target checks guesses, or of the last one alone, as a
            draft catches up.
        tokens: text to fill the context with, over and over; at least two different tokens.

    Returns:
        Rows -> seconds. The memo is left empty.

    Raises:
        ValueError: all tokens are the same.
        Interrupted: the evaluation was asked to stop.
        EvaluationError: llama.cpp reported a failure, or the context is too small.
    """
    starts = list(dict.fromkeys(tokens))[:2]
    if len(starts) < 2:
        raise ValueError("the filler needs two different tokens")
    text = list(islice(cycle(tokens), context))
    new = list(islice(cycle(tokens), max(rows, default=0)))
    seconds: dict[int, list[float]] = {count: [] for count in rows}
    model.forget()
    try:
        if text:
            model.logits(text, last=1)
        for turn, count in enumerate([*rows] * repetitions):
            # The first new token is another than in the pass before, so that the model shares the
            # context with that pass and nothing more, and evaluates every new row.
            passed = [*text, starts[turn % 2], *new[1:count]]
            started = clock()
            model.logits(passed, last=count if read == "all" else 1)
            seconds[count].append(clock() - started)
    finally:
        model.forget()
    return {count: median(measured) for count, measured in seconds.items()}
