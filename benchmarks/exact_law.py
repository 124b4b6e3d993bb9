"""Does the shipped loop, on a real model, draw answers from the model's own law?

    python benchmarks/exact_law.py models/SmolLM2-135M-Instruct.Q4_1.gguf

The law of three tokens is computed from the model's rows after every prefix that the filters leave
open. Each arm (filters x drafter x rule) then decodes many answers with seeds of its own, and a
chi-square test compares the counts. Exit code 5: an arm differs at the 0.001 level after Holm.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

from specdec_cli.core.chance import Chance
from specdec_cli.core.chi_square import upper_tail
from specdec_cli.core.distribution import Distribution, Row, distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import NOTHING, Guess, Round, Seconds
from specdec_cli.core.verification import RULES, Rule
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafters import Drafter, ModelDrafter
from specdec_cli.engine.drafting import Drafting, FixedLength, NoDrafting
from specdec_cli.engine.language_model import LanguageModel, Logits
from specdec_cli.engine.llama.context import ContextOptions, LlamaContext
from specdec_cli.engine.llama.model import LlamaModel

PROMPT = "Once upon a time, there was a"
TOKENS = 3
SIGNIFICANT = 0.001
SMALLEST_CELL = 5  # expected count under which the chi-square approximation is poor

FILTERS = {
    "temp 1.0 top-k 8": SamplingOptions(temp=1.0, top_k=8, top_p=1.0, min_p=0.0),
    "temp 0.7 top-p 0.9": SamplingOptions(temp=0.7, top_k=40, top_p=0.9, min_p=0.0),
}


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One arm's test. `p_value` is the arm's own; `adjusted` is Holm's over all arms."""

    filters: str
    drafter: str
    rule: str
    draws: int
    acceptance: float | None  # of the guesses that were checked
    chi_square: float
    freedom: int
    p_value: float
    adjusted: float = math.nan

    @property
    def significant(self) -> bool:
        return self.adjusted < SIGNIFICANT


class RowsByPrefix:
    """A model whose rows are evaluated once per prefix, one at a time, and kept."""

    def __init__(self, model: LanguageModel) -> None:
        self.vocab_size = model.vocab_size
        self.context_size = model.context_size
        self.can_roll_back = True
        self.rows: dict[tuple[int, ...], Row] = {}
        self._model = model

    def logits(self, tokens: Sequence[int], *, last: int) -> Logits:
        sizes = range(len(tokens) - last + 1, len(tokens) + 1)
        return np.stack([self._row(tuple(tokens[:size])) for size in sizes])

    def cached(self, tokens: Sequence[int]) -> int:
        return 0

    def forget(self) -> None:
        self.rows.clear()

    def _row(self, prefix: tuple[int, ...]) -> Row:
        if prefix not in self.rows:
            self.rows[prefix] = self._model.logits(prefix, last=1)[0].copy()
        return self.rows[prefix]


class FixedGuess:
    """The same guess whatever came before: nearly always wrong, now and then right."""

    source = "fixed"
    memoryless = True

    def __init__(self, token: int) -> None:
        self._token = token

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        while True:
            yield Guess(self._token)


def run_arms(
    model: LanguageModel,
    draws: int,
    prompt: Sequence[int],
    *,
    filters: dict[str, SamplingOptions] = FILTERS,
    report: Callable[[ArmResult], None] = lambda result: None,
) -> list[ArmResult]:
    """Test every arm with `draws` answers; `report` sees each as it is done, before Holm."""
    rows = RowsByPrefix(model)
    results: list[ArmResult] = []
    for name, sampling in filters.items():
        law = answer_law(rows, sampling, prompt)
        for drafter, drafting in draftings(rows, sampling, prompt).items():
            for rule in RULES.values():
                seeds = range(len(results) * draws, (len(results) + 1) * draws)
                counts, acceptance = play(rows, drafting, rule, sampling, prompt, seeds)
                statistic, freedom = chi_square(counts, law, draws)
                p = upper_tail(statistic, freedom) if statistic < math.inf else 0.0
                results.append(
                    ArmResult(name, drafter, rule.name, draws, acceptance, statistic, freedom, p)
                )
                report(results[-1])
    return holm(results)


def answer_law(
    model: LanguageModel, sampling: SamplingOptions, prompt: Sequence[int]
) -> dict[tuple[int, ...], float]:
    """Probability of each answer of `TOKENS` tokens, by the chain rule."""
    law: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(TOKENS):
        law = {
            (*answer, token): probability * share
            for answer, probability in law.items()
            for token, share in _items(_next(model, sampling, [*prompt, *answer]))
        }
    return law


def draftings(
    model: LanguageModel, sampling: SamplingOptions, prompt: Sequence[int]
) -> dict[str, Callable[[], Drafting]]:
    """What drafts: two guesses in the first round, for three tokens leave room for no more."""
    first = _next(model, sampling, prompt)
    unlikely = int(first.ids[first.probs.argmin()])
    greedy = replace(sampling, temp=0.0)

    def drafted_by(drafter: Drafter) -> Callable[[], Drafting]:
        def drafting() -> Drafting:
            policy = FixedLength(drafter, TOKENS - 1)
            # It drafts from its second round on.
            policy.learn(Round((), NOTHING, 0, Seconds()), lambda i: first)
            return policy

        return drafting

    def itself(options: SamplingOptions) -> Drafter:
        return ModelDrafter(model, options, target_vocab=model.vocab_size, ends=frozenset())

    return {
        "none": lambda: NoDrafting("plain decoding"),
        "itself": drafted_by(itself(sampling)),
        "itself, greedy": drafted_by(itself(greedy)),
        "itself, hotter": drafted_by(itself(replace(sampling, temp=2 * sampling.temp))),
        "a fixed guess": drafted_by(FixedGuess(unlikely)),
    }


def play(
    model: LanguageModel,
    drafting: Callable[[], Drafting],
    rule: Rule,
    sampling: SamplingOptions,
    prompt: Sequence[int],
    seeds: Sequence[int],
) -> tuple[Counter[tuple[int, ...]], float | None]:
    """How often each answer came up, and the share of guesses that stood."""
    counts: Counter[tuple[int, ...]] = Counter()
    drafted = accepted = 0
    for seed in seeds:
        options = DecodeOptions(sampling, seed, TOKENS, ends=frozenset())
        rounds = list(decode(model, drafting(), rule, prompt, options))
        counts[tuple(token for round in rounds for token in round.emitted)] += 1
        drafted += sum(len(round.proposal) for round in rounds)
        accepted += sum(round.accepted for round in rounds)
    return counts, accepted / drafted if drafted else None


def chi_square(
    counts: Counter[tuple[int, ...]], law: dict[tuple[int, ...], float], draws: int
) -> tuple[float, int]:
    """Pearson's statistic and its degrees of freedom; rare answers are pooled into one cell."""
    if not counts.keys() <= law.keys():
        return math.inf, 1  # an impossible answer
    cells: list[tuple[float, float]] = []
    found = expected = 0.0
    for answer in sorted(law, key=law.__getitem__):  # rare ones first: they are pooled
        found += counts[answer]
        expected += law[answer] * draws
        if expected >= SMALLEST_CELL:
            cells.append((found, expected))
            found = expected = 0.0
    if expected and cells:  # what is left is too small for a cell of its own
        cells[-1] = (cells[-1][0] + found, cells[-1][1] + expected)
    statistic = sum((found - expected) ** 2 / expected for found, expected in cells)
    return statistic, max(1, len(cells) - 1)


def holm(results: Sequence[ArmResult]) -> list[ArmResult]:
    """Step-down adjustment of the p-values: the smallest counts as often as there are arms."""
    order = sorted(range(len(results)), key=lambda i: results[i].p_value)
    adjusted = [0.0] * len(results)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(results) - rank) * results[i].p_value))
        adjusted[i] = running
    return [replace(result, adjusted=adjusted[i]) for i, result in enumerate(results)]


def _next(model: LanguageModel, sampling: SamplingOptions, tokens: Sequence[int]) -> Distribution:
    return distribution(model.logits(tokens, last=1)[0], sampling, tokens)


def _items(law: Distribution) -> Iterator[tuple[int, float]]:
    return zip(law.ids.tolist(), law.probs.tolist(), strict=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="a GGUF file")
    parser.add_argument("--draws", type=int, default=20_000, help="answers per arm (%(default)s)")
    parser.add_argument("--prompt", default=PROMPT, help="raw text (%(default)r)")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()

    model = LlamaModel(arguments.model)
    context = LlamaContext(model, ContextOptions(size=256, threads=arguments.threads))
    prompt = model.vocabulary.tokenize(arguments.prompt, special=False)
    started = perf_counter()

    def report(arm: ArmResult) -> None:
        accepted = "     -" if arm.acceptance is None else f"{arm.acceptance:6.1%}"
        print(
            f"{arm.filters:20} {arm.drafter:15} {arm.rule:10} accepted {accepted}  "
            f"chi2 {arm.chi_square:7.1f} on {arm.freedom:4}  p {arm.p_value:.4f}",
            flush=True,
        )

    results = run_arms(context, arguments.draws, prompt, report=report)
    worst = min(results, key=lambda arm: arm.p_value)
    failed = [arm for arm in results if arm.significant]
    print(
        f"{len(results)} arms of {arguments.draws} answers in {perf_counter() - started:.0f} s; "
        f"smallest p {worst.p_value:.4f}, after Holm {worst.adjusted:.4f}: "
        f"{len(failed)} differ at {SIGNIFICANT}"
    )
    context.close()
    model.close()
    return 5 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
