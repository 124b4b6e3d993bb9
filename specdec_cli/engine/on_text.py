"""What a drafter would have guessed at every place of a finished answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from specdec_cli.core.chance import Chance
from specdec_cli.core.rounds import Guess
from specdec_cli.engine.drafters import Drafter


def hits(
    drafter: Drafter,
    prompt: Sequence[int],
    answer: Sequence[int],
    chance_for: Callable[[int], Chance],
    *,
    most: int,
) -> list[int]:
    """How many guesses would be accepted, by how many tokens of `answer` are known before them.

    A guess counts if it is the token that the answer has there. That is what a rule accepts where
    the text does not depend on what was drafted: greedy, or `coupled` with the same seed. The
    other rules accept by chance, and this says nothing about them.

    The text is walked from its beginning, so a model reads it once, and an automaton only grows.

    Args:
        chance_for: the chance of a round by the absolute position of its first guess, as the
            decode loop asks a `Rule` for it.
        most: where to stop counting.

    Returns:
        A number from 0 to `most` for each token of the answer.

    Raises:
        Interrupted: a draft model's evaluation was asked to stop.
        EvaluationError: a draft model could not go on.
    """
    # Where a guess follows from the tokens before it, the second guess of a round is the first of
    # a round that begins one token later: one guess at each place tells all of them.
    pulled = 1 if drafter.memoryless else most
    counts = []
    for known in range(len(answer)):
        tokens = [*prompt, *answer[:known]]
        guesses = drafter.draft(tokens, chance_for(len(tokens)))
        counts.append(_agreeing(guesses, answer[known : known + pulled]))
    if drafter.memoryless:
        for known in range(len(answer) - 2, -1, -1):
            if counts[known]:
                counts[known] = min(most, 1 + counts[known + 1])
    return counts


def _agreeing(guesses: Iterator[Guess], tokens: Sequence[int]) -> int:
    """How many guesses are right before one is wrong; none is drawn that has no token to meet."""
    count = 0
    for token, guess in zip(tokens, guesses, strict=False):
        if guess.token != token:
            break
        count += 1
    return count
