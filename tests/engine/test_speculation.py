"""Whole answers of real models: the same with any draft, and a good draft is accepted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from contexts import Load, context

from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.statistics import Statistics
from specdec_cli.core.verification import RULES
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafters import ModelDrafter
from specdec_cli.engine.drafting import Drafting, FixedLength, NoDrafting
from specdec_cli.engine.llama.chat_template import ChatTemplate
from specdec_cli.engine.llama.model import LlamaModel

GREEDY = SamplingOptions(temp=0)
SAMPLED = SamplingOptions(temp=0.8)
PROMPTS = ("Write a short story about a fox.", "List five colours, one per line.")
K = 4
TOKENS = 1 + 10 * (K + 1)  # the first pass has no draft; then whole rounds


@pytest.fixture(scope="module")
def clueless_model(clueless: Path) -> Iterator[LlamaModel]:
    model = LlamaModel(clueless)
    yield model
    model.close()


def answer(
    target: LlamaModel,
    draft: LlamaModel | None,
    prompt: list[int],
    sampling: SamplingOptions,
    *,
    rule: str = "coupled",
    k: int = K,
    count: int = TOKENS,
    size: int = 256,
) -> tuple[list[int], Statistics]:
    with ExitStack() as open_contexts:
        target_context = context(target, size=size, batch=128, rows=k + 1)
        open_contexts.enter_context(closing(target_context))
        drafting: Drafting = NoDrafting("plain")
        if draft is not None:
            draft_context = context(draft, size=size, batch=128, rows=1)
            open_contexts.enter_context(closing(draft_context))
            drafter = ModelDrafter(
                draft_context,
                sampling,
                target_vocab=target_context.vocab_size,
                ends=frozenset(),
            )
            drafting = FixedLength(drafter, k)
        options = DecodeOptions(sampling, 7, count, frozenset())  # go on after an end
        tokens: list[int] = []
        statistics = Statistics()
        for round in decode(target_context, drafting, RULES[rule], prompt, options):
            tokens += round.emitted
            statistics.add(round)
    return tokens, statistics


def chat(model: LlamaModel, text: str) -> list[int]:
    return ChatTemplate(model).tokens([{"role": "user", "content": text}])


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("text", PROMPTS)
def test_a_model_that_drafts_for_itself_is_right_about_itself(
    real: LlamaModel, text: str, sampling: SamplingOptions
) -> None:
    prompt = chat(real, text)
    tokens, statistics = answer(real, real, prompt, sampling)
    assert tokens == answer(real, None, prompt, sampling)[0]
    assert statistics.drafts > 3
    assert (statistics.mean_acceptance_length or 0) >= 0.95 * (K + 1)


@pytest.mark.parametrize("rule", ["rejection", "block"])
def test_the_other_rules_accept_their_own_model_too(real: LlamaModel, rule: str) -> None:
    _, statistics = answer(real, real, chat(real, PROMPTS[0]), SAMPLED, rule=rule)
    assert (statistics.mean_acceptance_length or 0) >= 0.95 * (K + 1)


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("text", PROMPTS)
def test_a_draft_that_knows_nothing_changes_nothing(
    real: LlamaModel, clueless_model: LlamaModel, text: str, sampling: SamplingOptions
) -> None:
    prompt = chat(real, text)
    tokens, statistics = answer(real, clueless_model, prompt, sampling)
    assert tokens == answer(real, None, prompt, sampling)[0]
    assert statistics.drafted
    assert (statistics.acceptance_rate or 0) < 0.05


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_tiny_models_of_other_weights_answer_alike_for_any_draft_length(
    tiny: LlamaModel, load: Load, sampling: SamplingOptions, k: int
) -> None:
    draft, prompt = load(seed=3), chat(tiny, "the cat")
    plain, _ = answer(tiny, None, prompt, sampling)
    drafted, statistics = answer(tiny, draft, prompt, sampling, k=k)
    assert drafted == plain
    assert statistics.drafts


@pytest.mark.parametrize("size", [60, 61, 62, 63, 64])
def test_an_answer_fills_the_context_to_its_last_place(tiny: LlamaModel, size: int) -> None:
    prompt = chat(tiny, "the cat")
    plain, _ = answer(tiny, None, prompt, GREEDY, count=1000, size=size)
    drafted, _ = answer(tiny, tiny, prompt, GREEDY, count=1000, size=size)
    assert drafted == plain
    assert len(prompt) + len(plain) == size


def test_a_draft_may_have_a_larger_or_a_smaller_vocabulary(tiny: LlamaModel, load: Load) -> None:
    padded = load(extra_tokens=64)
    prompt = chat(tiny, "the cat")
    for target, draft in ((tiny, padded), (padded, tiny)):
        tokens, statistics = answer(target, draft, prompt, SAMPLED)
        assert tokens == answer(target, None, prompt, SAMPLED)[0]
        assert statistics.drafts
