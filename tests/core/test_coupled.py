"""`coupled`: the text is plain decoding's for every seed; its law over seeds is the target's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np
import pytest
from toy import PLAIN, FixedGuess, PointDrafter, Policy, random_model

from specdec_cli.core.chance import Chance, SharedNoise
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Guess, Proposal, Round
from specdec_cli.core.verification import RULES, TargetRows
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafters import ModelDrafter, SuffixDrafter
from specdec_cli.engine.drafting import Drafting, FixedLength, NoDrafting
from specdec_cli.engine.enumeration import PROMPT, Setting, plain_law
from specdec_cli.engine.language_model import LanguageModel

VOCAB = 8
ENDS = frozenset({5})
FILTERED = SamplingOptions(temp=0.8, top_k=5, top_p=0.9, min_p=0.05, repeat_penalty=1.2)
TARGET = random_model(1, VOCAB)
OTHER = random_model(2, VOCAB)


def model_drafter(model: LanguageModel, sampling: SamplingOptions) -> ModelDrafter:
    return ModelDrafter(model, sampling, target_vocab=VOCAB, ends=ENDS)


class RandomLength:
    """As many guesses as a dice of its own says: no number of the answer's is touched."""

    decision = ""
    plain_seconds = None

    def __init__(self, drafter: ModelDrafter) -> None:
        self._drafter = drafter
        self._dice = np.random.default_rng(0)

    def propose(self, tokens: Sequence[int], limit: int, chance: Chance) -> Proposal:
        length = min(int(self._dice.integers(0, 6)), limit)
        return Proposal(tuple(islice(self._drafter.draft(tokens, chance), length)), "model")

    def learn(self, round: Round, target: TargetRows) -> None:
        pass


class Clairvoyant:
    """Tries other tokens than its own draw and looks at the value: `coupled` does not care."""

    source = "model"
    memoryless = True

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        for position in range(len(tokens), len(tokens) + 9):
            token = chance.draw(position, Distribution(np.arange(4), np.full(4, 0.25)))
            yield Guess(token if token != 2 else 7)


DRAFTINGS: dict[str, Callable[[SamplingOptions], Drafting]] = {
    "the same model": lambda sampling: FixedLength(model_drafter(TARGET, sampling), 4),
    "another model": lambda sampling: FixedLength(model_drafter(OTHER, sampling), 3),
    "a greedy point mass": lambda sampling: FixedLength(PointDrafter(OTHER), 3),
    "a suffix match": lambda sampling: FixedLength(SuffixDrafter(ends=ENDS, min_match=1), 4),
    "a fixed guess": lambda sampling: Policy(FixedGuess(3), 2),
    "a random length": lambda sampling: RandomLength(model_drafter(OTHER, sampling)),
    "draws bent by their value": lambda sampling: Policy(Clairvoyant(), 5),
}


def answer(
    drafting: Drafting, seed: int, sampling: SamplingOptions, length: int
) -> tuple[list[int], list[Round]]:
    options = DecodeOptions(sampling, seed, length, ENDS)
    rounds = list(decode(TARGET, drafting, RULES["coupled"], PROMPT, options))
    return [token for round in rounds for token in round.emitted], rounds


@pytest.mark.parametrize("sampling", [PLAIN, FILTERED], ids=["unfiltered", "filtered"])
@pytest.mark.parametrize("name", DRAFTINGS)
def test_the_text_is_plain_decodings_for_every_seed(name: str, sampling: SamplingOptions) -> None:
    for seed in [*range(60), -1, 2**31, 2**63, 2**64 - 2]:
        plain, _ = answer(NoDrafting(""), seed, sampling, 24)
        assert answer(DRAFTINGS[name](sampling), seed, sampling, 24)[0] == plain


def test_a_draft_that_is_the_target_is_never_rejected() -> None:
    for seed in range(20):
        drafting = DRAFTINGS["the same model"](FILTERED)
        _, rounds = answer(drafting, seed, FILTERED, 24)
        assert all(
            round.accepted == len(round.proposal) or round.finish == "stop" for round in rounds
        )


def test_different_seeds_give_different_texts() -> None:
    texts = [tuple(answer(NoDrafting(""), seed, PLAIN, 24)[0]) for seed in range(200)]
    whole = [text for text in texts if len(text) == 24]
    assert len(set(whole)) == len(whole) > 10


@pytest.mark.parametrize("name", ["another model", "draws bent by their value"])
def test_its_law_over_seeds_is_the_targets(name: str) -> None:
    """Pearson's chi-square over two tokens; the seeds are fixed, so it cannot fail by chance."""
    seeds = 5000
    setting = Setting(lambda: TARGET, lambda: NoDrafting(""), PLAIN, ENDS)
    expected = {text: seeds * share for text, share in plain_law(setting, 2).items()}
    found = Counter(
        tuple(answer(DRAFTINGS[name](PLAIN), seed, PLAIN, 2)[0]) for seed in range(seeds)
    )
    assert set(found) <= set(expected)
    large = {text: count for text, count in expected.items() if count >= 5}
    pairs = [(found[text], count) for text, count in large.items()]
    pairs.append((seeds - sum(f for f, _ in pairs), seeds - sum(e for _, e in pairs)))
    statistic = sum((f - e) ** 2 / e for f, e in pairs)
    freedom = len(pairs) - 1
    # Wilson and Hilferty 1931: the cube root is nearly normal; 3 sigma above is p = 0.0013.
    normal = ((statistic / freedom) ** (1 / 3) - 1 + 2 / (9 * freedom)) / (2 / (9 * freedom)) ** 0.5
    assert -3 < normal < 3


def meeting(target: Distribution, draft: Distribution) -> float:
    """Probability that both choose the same token: sum_j 1 / sum_i max(p_i/p_j, q_i/q_j)."""
    p, q = target.probs, draft.probs
    return sum(1 / np.maximum(p / p[j], q / q[j]).sum() for j in range(len(p)))


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 4.0])
def test_acceptance_is_the_closed_form(sharpness: float) -> None:
    """Daliri, Musco, Suresh 2024, arXiv 2408.07978; at least (1 - TV)/(1 + TV)."""
    generator = np.random.default_rng(5)
    p, q = (generator.dirichlet(np.full(30, sharpness)) + 1e-9 for _ in range(2))
    target = Distribution(np.arange(30), p / p.sum())
    draft = Distribution(np.arange(30), q / q.sum())
    rounds = 20_000
    met = 0
    for position in range(rounds):
        chance = SharedNoise(11)
        met += chance.draw(position, draft) == chance.choose(position, target)
    expected = meeting(target, draft)
    variation = np.abs(target.probs - draft.probs).sum() / 2
    assert (1 - variation) / (1 + variation) <= expected <= 1 - variation
    assert abs(met / rounds - expected) < 4 * (expected * (1 - expected) / rounds) ** 0.5


def test_it_never_asks_for_an_acceptance_test() -> None:
    with pytest.raises(AssertionError, match="never asks"):
        SharedNoise(0).accept(0, 0.5)
