"""A drafter of one's own: whatever it guesses, the answer stays the target's.

    python examples/own_drafter.py TARGET.gguf

This one can count, and guesses that the model is about to.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from specdec_cli.app.session import LoadOptions, Session
from specdec_cli.core.chance import Chance
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Guess
from specdec_cli.core.verification import RULES
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafting import FixedLength

KNOWN = ", ".join(str(number) for number in range(1, 60))
MATCH = 4  # tokens that have to agree


class ByHeart:
    """Looks the last tokens up in a text it knows, and guesses what follows there."""

    source = "by heart"
    memoryless = True  # a guess depends on the tokens before it, and on nothing else

    def __init__(self, known: list[int]) -> None:
        self._known = known

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        for at in range(MATCH, len(self._known)):
            if self._known[at - MATCH : at] == list(tokens[-MATCH:]):
                yield from map(Guess, self._known[at:])
                return


with Session(LoadOptions(Path(sys.argv[1]), draft_tokens=6, context_size=512)) as session:
    words = session.model.vocabulary
    prompt = words.tokenize("1, 2, 3, 4, 5, 6,", special=False)
    drafting = FixedLength(ByHeart(words.tokenize(KNOWN, special=False)), 6)
    options = DecodeOptions(SamplingOptions(temp=0), seed=0, max_tokens=24, ends=words.ends)
    for round in decode(session.target, drafting, RULES["coupled"], prompt, options):
        text = b"".join(words.piece(token) for token in round.emitted).decode(errors="replace")
        print(f"{round.accepted} of {len(round.proposal)} guesses: {text!r}")
