"""The same support and probabilities as llama.cpp's own sampler chain, option by option."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import llama_cpp
import numpy as np
import pytest

from specdec_cli.core.distribution import Row, distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.engine.llama.context import ContextOptions, LlamaContext
from specdec_cli.engine.llama.model import LlamaModel

VOCAB = 49152  # SmolLM2's
RECORD = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


def synthetic_rows(count: int = 4) -> Iterator[tuple[Row, list[int]]]:
    """Rows shaped like a model's, from flat to sure, and a history that meets their best tokens."""
    for seed in range(count):
        generator = np.random.default_rng(seed)
        row = generator.normal(-2, 2.2, VOCAB)
        best = generator.choice(VOCAB, 200, replace=False)
        row[best] += generator.exponential(1.5 + 2 * seed, 200)
        history = generator.choice(best[:60], 90).tolist()
        yield row.astype(np.float32), history


def llama_law(row: Row, options: SamplingOptions, history: Sequence[int]) -> dict[int, float]:
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    biases = (llama_cpp.llama_logit_bias * len(options.logit_bias))(*options.logit_bias)
    window = len(history) if options.penalty_last_n < 0 else options.penalty_last_n
    samplers = [
        llama_cpp.llama_sampler_init_logit_bias(len(row), len(biases), biases),
        llama_cpp.llama_sampler_init_penalties(
            len(row),
            window,
            options.repeat_penalty,
            options.frequency_penalty,
            options.presence_penalty,
        ),
        llama_cpp.llama_sampler_init_top_k(options.top_k),
        llama_cpp.llama_sampler_init_top_p(options.top_p, 0),
        llama_cpp.llama_sampler_init_min_p(options.min_p, 0),
        llama_cpp.llama_sampler_init_temp(options.temp),
    ]
    for sampler in samplers:
        llama_cpp.llama_sampler_chain_add(chain, sampler)
    for token in history:
        llama_cpp.llama_sampler_accept(chain, token)
    data = np.zeros(len(row), dtype=RECORD)
    data["id"], data["logit"] = np.arange(len(row)), row
    pointer = data.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
    array = llama_cpp.llama_token_data_array(pointer, len(data), -1, False)
    llama_cpp.llama_sampler_apply(chain, ctypes.byref(array))
    llama_cpp.llama_sampler_free(chain)
    left = np.ctypeslib.as_array(array.data, shape=(array.size,)).view(RECORD).ravel()
    left = left[left["logit"] > -math.inf]
    weights = np.exp(left["logit"].astype(np.float64) - float(left["logit"].max()))
    kept = weights > 0
    shares = (weights / weights.sum())[kept].tolist()
    return dict(sorted(zip(left["id"][kept].tolist(), shares, strict=True)))


OPTIONS = {
    "defaults": SamplingOptions(),
    "temperature alone": SamplingOptions(temp=0.7, top_k=0, top_p=1.0, min_p=0.0),
    "hot": SamplingOptions(temp=2.5),
    "top-k 1": SamplingOptions(top_k=1),
    "top-k 200": SamplingOptions(top_k=200, top_p=1.0, min_p=0.0, temp=1.0),
    "top-p alone": SamplingOptions(temp=1.0, top_k=0, top_p=0.8, min_p=0.0),
    "min-p alone": SamplingOptions(temp=1.3, top_k=0, top_p=1.0, min_p=0.02),
    "all filters": SamplingOptions(temp=0.6, top_k=30, top_p=0.9, min_p=0.1),
    "greedy": SamplingOptions(temp=0.0, top_k=0, top_p=1.0, min_p=0.0),
    "repeat penalty": SamplingOptions(repeat_penalty=1.3),
    "encouraged repeats": SamplingOptions(repeat_penalty=0.8, top_k=100),
    "presence penalty": SamplingOptions(presence_penalty=1.5),
    "frequency penalty": SamplingOptions(frequency_penalty=0.6, penalty_last_n=20),
    "all penalties": SamplingOptions(
        temp=0.9,
        repeat_penalty=1.2,
        presence_penalty=0.5,
        frequency_penalty=0.3,
        penalty_last_n=-1,
        top_k=80,
    ),
    "negative penalties": SamplingOptions(presence_penalty=-0.5, frequency_penalty=-0.2),
    "penalties greedy": SamplingOptions(temp=0.0, repeat_penalty=1.5, frequency_penalty=1.0),
}


@pytest.mark.parametrize("biased", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("name", OPTIONS)
def test_the_law_is_that_of_llama_cpps_samplers(name: str, biased: bool) -> None:
    for row, history in synthetic_rows():
        options = with_bias(OPTIONS[name], row) if biased else OPTIONS[name]
        assert_same(row, options, history)


def with_bias(options: SamplingOptions, row: Row) -> SamplingOptions:
    """The favourite banned, a middling token made likely, a repeated one held down."""
    first, second = np.argsort(-row)[:2].tolist()
    bias = ((first, -math.inf), (17, float(row[second] - row[17]) - 0.4), (second, -0.8))
    fields = {name: getattr(options, name) for name in options.__dataclass_fields__}
    return SamplingOptions(**{**fields, "logit_bias": bias})


def assert_same(row: Row, options: SamplingOptions, history: Sequence[int]) -> None:
    law = distribution(row, options, history)
    theirs = llama_law(row, options, history)
    assert law.ids.tolist() == list(theirs)
    assert np.abs(law.probs - list(theirs.values())).max() < 1e-5


def assert_alike(row: Row, options: SamplingOptions, history: Sequence[int]) -> None:
    """The same, or a token apart where the smaller nucleus misses top-p by a float32 rounding."""
    law = distribution(row, options, history)
    theirs = llama_law(row, options, history)
    apart = set(law.ids.tolist()) ^ set(theirs)
    if apart:
        smaller = min(len(law.ids), len(theirs))
        everything = distribution(row, replace(options, top_p=1.0), history)
        share = np.sort(everything.probs)[-smaller:].sum()
        assert (len(apart), share) == (1, pytest.approx(options.top_p, abs=5e-4))
    else:
        assert_same(row, options, history)


@pytest.mark.parametrize("name", OPTIONS)
def test_on_rows_of_a_real_model(name: str, real_rows: list[tuple[Row, list[int]]]) -> None:
    for row, history in real_rows:
        options = with_bias(OPTIONS[name], row)
        if name == "top-p alone":  # a float32 sum of 49,152 terms is off by 1e-4
            assert_alike(row, options, history)
        else:
            assert_same(row, options, history)


@pytest.fixture(scope="module")
def real_rows(smollm2: Path) -> list[tuple[Row, list[int]]]:
    """SmolLM2's logits after a few prefixes of a text, with the text before each."""
    model = LlamaModel(smollm2)
    context = LlamaContext(model, ContextOptions(size=128, rows=1, threads=1))
    text = "The keeper of the lighthouse wrote: the sea, the sea, the sea was calm and then it"
    ids = model.vocabulary.tokenize(text, special=False)
    rows = [(context.logits(ids[:end], last=1)[0].copy(), ids[:end]) for end in (2, 7, len(ids))]
    context.close()
    model.close()
    return rows
