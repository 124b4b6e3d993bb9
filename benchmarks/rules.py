"""How much each verification rule accepts, at temperature 1 without filters, on prose.

First in expectation: both models read the same sampled texts, and at every position the two
distributions give each rule's probability of accepting one guess in closed form; no luck is in
the numbers. Then in fact: tokens per pass of `rejection` and `block`, same prompts, same budget.

    python benchmarks/rules.py [--tokens 64] [--seeds 2]
"""

from __future__ import annotations

import argparse

import numpy as np

from specdec_cli.app.draft_models import DraftFile
from specdec_cli.app.generate import Answer, AnswerOptions, answer
from specdec_cli.app.session import LoadOptions, Session
from specdec_cli.core.distribution import Distribution, Floats, distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.engine.llama.chat_template import ChatTemplate
from specdec_cli.models.references import resolve

OPEN = SamplingOptions(temp=1.0, top_k=0, top_p=1.0, min_p=0.0)
PROSE = (
    "Tell a short story about a lighthouse keeper who finds a bottle with a letter in it.",
    "Describe an autumn market in a small town so that a reader can smell it.",
    "Write a letter to a friend about moving to a new city.",
    "What makes a good apology? Answer in a few paragraphs.",
    "Explain to a ten-year-old why the sea is salty.",
    "Write the opening of a mystery set in a library.",
)


def coupled_acceptance(target: Floats, draft: Floats) -> float:
    """P(both Gumbel-max draws agree) = sum_j 1 / sum_i max(p_i/p_j, q_i/q_j).

    In order of p/q each maximum is a p to one side and a q to the other, so two running sums do.
    """
    both = (target > 0) & (draft > 0)
    lost_target, lost_draft = target[~both].sum(), draft[~both].sum()
    p, q = target[both], draft[both]
    order = np.argsort(p / q)
    p, q = p[order], q[order]
    p_above = p[::-1].cumsum()[::-1] + lost_target  # itself and every larger ratio
    q_below = q.cumsum() - q + lost_draft
    return float((1 / (p_above / p + q_below / q)).sum())


def expected(
    session: Session, prompts: list[list[int]], tokens: int, seed: int
) -> dict[str, float]:
    """Mean probability of accepting one guess, by rule, over all positions."""
    sums = {"greedy draft, compare (llama.cpp)": 0.0, "coupled": 0.0, "rejection": 0.0}
    positions = 0
    for prompt in prompts:
        text = _answer(session, prompt, "coupled", tokens, seed, no_draft="the text to measure on")
        tokens_so_far = [*prompt, *text.tokens]
        for end in range(len(prompt), len(tokens_so_far)):
            prefix = tokens_so_far[:end]
            target, draft = (_law(model, prefix) for model in session.contexts)
            p, q = target.probs, draft.probs_of(target.ids)
            sums["greedy draft, compare (llama.cpp)"] += target.prob(
                int(draft.ids[draft.probs.argmax()])
            )
            sums["coupled"] += coupled_acceptance(p, q)
            sums["rejection"] += float(np.minimum(p, q).sum())
            positions += 1
    return {rule: total / positions for rule, total in sums.items()}


def tokens_per_pass(
    session: Session, prompts: list[list[int]], rule: str, tokens: int, seeds: int
) -> float:
    emitted = passes = 0
    for prompt in prompts:
        for seed in range(seeds):
            statistics = _answer(session, prompt, rule, tokens, seed).statistics
            emitted, passes = emitted + statistics.tokens, passes + statistics.passes
    return emitted / passes


def _law(model: object, prefix: list[int]) -> Distribution:
    return distribution(model.logits(prefix, last=1)[0], OPEN, prefix)  # type: ignore[attr-defined]


def _answer(
    session: Session, prompt: list[int], rule: str, tokens: int, seed: int, *, no_draft: str = ""
) -> Answer:
    options = AnswerOptions(OPEN, seed=seed, rule=rule, max_tokens=tokens, draft_tokens=4)
    *_, last = answer(session, prompt, options, no_draft=no_draft)
    assert isinstance(last, Answer)
    return last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="qwen2.5-coder:1.5b")
    parser.add_argument("--draft", default="qwen2.5-coder:0.5b")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of each text")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each prompt and rule")
    asked = parser.parse_args()
    load = LoadOptions(resolve(asked.target), (DraftFile(resolve(asked.draft)),), context_size=1024)
    with Session(load) as session:
        template = ChatTemplate(session.model)
        prompts = [template.tokens([{"role": "user", "content": text}]) for text in PROSE]
        rates = expected(session, prompts, asked.tokens, seed=1)
        base = rates["greedy draft, compare (llama.cpp)"]
        print("| rule | acceptance | against llama.cpp's |\n|---|---|---|")
        for rule, rate in rates.items():
            print(f"| {rule} | {rate:.3f} | {rate / base:.2f}x |")
        print("\n| rule | tokens per pass, k = 4 |\n|---|---|")
        for rule in ("coupled", "rejection", "block"):
            rate = tokens_per_pass(session, prompts, rule, asked.tokens, asked.seeds)
            print(f"| {rule} | {rate:.3f} |")


if __name__ == "__main__":
    main()
