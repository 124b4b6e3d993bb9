"""The rules against the law they promise, by enumeration: no model, no luck, about a second."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specdec_cli.core.rounds import Round
from specdec_cli.core.verification import RULES, Rule
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafters import ModelDrafter
from specdec_cli.engine.drafting import FixedLength, NoDrafting
from specdec_cli.engine.enumeration import PROMPT, Setting, distance, law_by_rounds, plain_law
from specdec_cli.engine.table_model import PLAIN, random_model

VOCAB = 3
MODELS = 4  # pairs of small random models
GUESSES = 2
LENGTH = 4  # tokens of an answer, so that it takes several rounds
SEEDS = 50  # answers compared one by one, for the rule that promises the same text
EXACT = 1e-12


@dataclass(frozen=True, slots=True)
class SelfTest:
    """How far a rule's answers are from the target's law, in the worst of the models."""

    rule: str
    total_variation: float
    models: int

    @property
    def passed(self) -> bool:
        return self.total_variation <= EXACT


def check_rules() -> Iterator[SelfTest]:
    """Test every shipped rule through the shipped loop."""
    for rule in RULES.values():
        test = _share_of_other_texts if rule.name == "coupled" else _distance_from_target
        worst = max(test(rule, seed) for seed in range(MODELS))
        yield SelfTest(rule.name, worst, MODELS)


def _distance_from_target(rule: Rule, seed: int) -> float:
    drafter = _drafter(seed)
    setting = Setting(
        lambda: random_model(seed, VOCAB), lambda: FixedLength(drafter, GUESSES, at_once=True)
    )
    return distance(law_by_rounds(setting, rule, LENGTH), plain_law(setting, LENGTH))


def _share_of_other_texts(rule: Rule, seed: int) -> float:
    """For seeds one by one: how often does drafting change the text?"""
    target = random_model(seed, VOCAB)

    def text(answer: Iterator[Round]) -> list[int]:
        return [token for round in answer for token in round.emitted]

    different = 0
    for draw in range(SEEDS):
        options = DecodeOptions(PLAIN, draw, max_tokens=3 * LENGTH, ends=frozenset())
        drafting = FixedLength(_drafter(seed), GUESSES)
        plain = text(decode(target, NoDrafting("plain"), rule, PROMPT, options))
        different += plain != text(decode(target, drafting, rule, PROMPT, options))
    return different / SEEDS


def _drafter(seed: int) -> ModelDrafter:
    draft = random_model(seed + 1000, VOCAB)
    return ModelDrafter(draft, PLAIN, target_vocab=VOCAB, ends=frozenset())
