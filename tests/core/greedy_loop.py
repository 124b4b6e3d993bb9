"""One toy target, its greedy text worked out by hand, and answers of the shipped loop."""

from __future__ import annotations

from toy import GREEDY, TableModel, random_model

from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Round
from specdec_cli.core.verification import RULES
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafters import ModelDrafter
from specdec_cli.engine.drafting import Drafting
from specdec_cli.engine.language_model import LanguageModel

VOCAB = 6
PROMPT = (0, 3, 1)
TARGET = random_model(3, VOCAB, order=2)
ENDS = frozenset({5})


def model_drafter(model: LanguageModel = TARGET, ends: frozenset[int] = ENDS) -> ModelDrafter:
    return ModelDrafter(model, GREEDY, target_vocab=VOCAB, ends=ends)


def disturbed() -> TableModel:
    """The target, wrong after every third token or so."""
    other = random_model(9, VOCAB, order=2)
    return TableModel(
        lambda tokens: (other if sum(tokens) % 3 == 0 else TARGET).rows(tokens), VOCAB
    )


def answer(
    drafting: Drafting,
    *,
    target: LanguageModel = TARGET,
    rule: str = "coupled",
    max_tokens: int | None = 12,
    ends: frozenset[int] = frozenset(),
    sampling: SamplingOptions = GREEDY,
    seed: int = 0,
) -> list[Round]:
    options = DecodeOptions(sampling, seed, max_tokens, ends)
    return list(decode(target, drafting, RULES[rule], PROMPT, options))


def tokens_of(rounds: list[Round]) -> list[int]:
    return [token for round in rounds for token in round.emitted]


def greedy_by_hand(count: int, ends: frozenset[int], context: int = 4096) -> list[int]:
    tokens = list(PROMPT)
    while len(tokens) - len(PROMPT) < count and len(tokens) < context:
        tokens.append(int(TARGET.rows(tuple(tokens)).argmax()))
        if tokens[-1] in ends:
            break
    return tokens[len(PROMPT) :]
