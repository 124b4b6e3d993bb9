"""Was speculation worth it? The same answer again, plainly, in the same process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specdec_cli.app.generate import Answer, AnswerOptions, answer
from specdec_cli.app.session import Session


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whole answers against each other: tokens / (reading the prompt + everything after)."""

    speculative_tps: float
    plain_tps: float
    first_difference: int | None  # index of the first token that differs, None where none does

    @property
    def speedup(self) -> float:
        return self.speculative_tps / self.plain_tps


def warm_up(session: Session) -> None:
    """Evaluate a little with each model, so that neither run pays for first touches."""
    for context in session.contexts:
        context.logits([0, 0], last=1)
    session.forget()


def compare_with_plain(
    session: Session, prompt: Sequence[int], options: AnswerOptions, speculative: Answer
) -> Comparison | None:
    """Decode plainly, as many tokens at most; None where one of the two has nothing to compare."""
    session.forget()
    plain = None
    for event in answer(session, prompt, options, no_draft="plain, to compare"):
        if isinstance(event, Answer):
            plain = event
    if plain is None or plain.finish == "interrupted":
        return None
    rates = [_whole_answer_tps(speculative), _whole_answer_tps(plain)]
    if None in rates:
        return None
    pairs = zip(speculative.tokens, plain.tokens, strict=False)
    different = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    if different is None and len(speculative.tokens) != len(plain.tokens):
        different = min(len(speculative.tokens), len(plain.tokens))
    return Comparison(rates[0] or 0.0, rates[1] or 0.0, different)


def _whole_answer_tps(answer: Answer) -> float | None:
    seconds = answer.statistics.prompt_seconds + answer.statistics.predicted_seconds
    return answer.statistics.tokens / seconds if seconds > 0 and answer.statistics.tokens else None
