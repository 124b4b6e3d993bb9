"""An answer as a message of the conversation: its text, how it was made, what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from specdec_cli.app.chat.conversation import Message, clean, whole
from specdec_cli.app.generate import AUTO, Answer, AnswerOptions


def as_message(answer: Answer, begun: Message | None, details: dict[str, Any]) -> Message | None:
    """What the assistant has now said; None where it was stopped before it said anything new.

    Args:
        begun: what it had said before it was asked to go on.
    """
    partial = answer.finish != "stop"
    if partial and not answer.text:
        return None
    if begun is not None:
        details = {**details, "before": begun.details}
    text = (begun.content if begun else "") + answer.text
    return Message("assistant", whole(text) if partial else clean(text), partial, details)


def cut_short(words: Sequence[str], begun: Message | None) -> Message:
    """What was said when the answer broke off without an end."""
    text = (begun.content if begun else "") + "".join(words)
    return Message("assistant", whole(text), partial=True)


def details_of(
    answer: Answer, options: AnswerOptions, *, model: str, exact: bool, speedup: float | None
) -> dict[str, Any]:
    """Parameters and statistics of an answer, fit for JSON; times in milliseconds."""
    statistics = answer.statistics
    first = answer.first_token_seconds
    return {
        "model": model,
        "seed": options.seed,
        "sampling": {
            **asdict(options.sampling),
            "logit_bias": {
                str(token): bias if isfinite(bias) else str(bias)
                for token, bias in options.sampling.logit_bias
            },
        },
        "accept": options.rule,
        "drafter": options.drafter,
        "draft_tokens": AUTO if options.draft_tokens is None else options.draft_tokens,
        "max_tokens": options.max_tokens,
        "stop": list(options.stops),
        "exact": exact,
        "finish": answer.finish,
        "decision": answer.decision,
        "prompt_tokens": answer.prompt_tokens,
        "cached_tokens": answer.cached_tokens,
        "tokens": statistics.tokens,
        "passes": statistics.passes,
        "drafted": statistics.drafted,
        "accepted": statistics.accepted,
        "first_token_ms": None if first is None else _ms(first),
        "prompt_ms": _ms(statistics.prompt_seconds),
        "predicted_ms": _ms(statistics.predicted_seconds),
        "draft_ms": _ms(statistics.draft_seconds),
        "target_ms": _ms(statistics.target_seconds),
        "speedup": None if speedup is None else round(speedup, 3),
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1e3, 3)
