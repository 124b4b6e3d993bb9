"""An answer as the JSON document of `run --json`: names that existing readers know."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import Any

from specdec_cli import __version__
from specdec_cli.app.generate import AUTO, Answer, AnswerOptions
from specdec_cli.app.session import Session
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.statistics import ratio
from specdec_cli.engine.llama import library


def document(session: Session, answer: Answer, options: AnswerOptions) -> dict[str, Any]:
    """Everything about one answer. Times in milliseconds; null, never NaN, where nothing was."""
    load = session.options
    names = session.sources_of(options.drafter) if options.draft_tokens != 0 else ()
    return {
        "model": str(load.target),
        "draft_model": str(load.drafts[0].path) if load.drafts else None,
        "drafter": options.drafter if names else "none",
        "text": answer.text,
        "tokens": list(answer.tokens),
        "finish_reason": answer.finish,
        "stop": answer.stop,
        "usage": usage(answer),
        "timings": {"load_ms": session.load_seconds * 1e3, **timings(answer)},
        "speculative_decoding": speculation(answer),
        "params": {
            **effective(options.sampling),
            "seed": options.seed,
            "accept": options.rule,
            "draft_tokens": AUTO if options.draft_tokens is None else options.draft_tokens,
            "max_tokens": options.max_tokens,
            "stop": list(options.stops),
            "ignore_eos": options.ignore_eos,
            "ctx_size": session.context_size,
            "batch_size": load.batch,
            "threads": session.threads,
            "gpu_layers": load.gpu_layers,
            "draft_gpu_layers": load.draft_gpu_layers,
            "flash_attention": load.flash_attention,
            "cross_vocab": load.cross_vocab,
            "exact": load.probe.as_dict() if load.probe else None,
        },
        "versions": {"specdec": __version__, **library.versions()},
    }


def effective(sampling: SamplingOptions) -> dict[str, Any]:
    """Sampling options as JSON can hold them."""
    biases = {
        str(token): bias if isfinite(bias) else str(bias) for token, bias in sampling.logit_bias
    }
    return {**asdict(sampling), "logit_bias": biases}


def usage(answer: Answer) -> dict[str, int]:
    """How many tokens of each kind."""
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.statistics.tokens,
        "total_tokens": answer.prompt_tokens + answer.statistics.tokens,
        "cached_tokens": answer.cached_tokens,
    }


def speculation(answer: Answer) -> dict[str, Any]:
    """What was drafted and what became of it, in vLLM's words."""
    statistics = answer.statistics
    return {
        "mean_acceptance_length": statistics.mean_acceptance_length,
        "draft_acceptance_rate": statistics.acceptance_rate,
        "acceptance_histogram": statistics.histogram,
        "num_spec_steps": statistics.passes,
        "num_drafts": statistics.drafts,
        "num_draft_tokens": statistics.drafted,
        "num_accepted_draft_tokens": statistics.accepted,
        "by_source": {name: asdict(count) for name, count in statistics.by_source.items()},
        "decision": answer.decision,
        "predicted_speedup": statistics.predicted_speedup,
    }


def timings(answer: Answer) -> dict[str, float | int | None]:
    """Where the time went, in llama.cpp's words."""
    statistics = answer.statistics
    read = answer.prompt_tokens - answer.cached_tokens if statistics.passes else 0
    first = answer.first_token_seconds
    return {
        "prompt_n": read,
        "prompt_ms": statistics.prompt_seconds * 1e3,
        "prompt_per_second": ratio(read, statistics.prompt_seconds),
        "predicted_n": statistics.tokens,
        "predicted_ms": statistics.predicted_seconds * 1e3,
        "predicted_per_second": statistics.tokens_per_second,
        "time_to_first_token_ms": None if first is None else first * 1e3,
        "draft_ms": statistics.draft_seconds * 1e3,
        "target_ms": statistics.target_seconds * 1e3,
        "other_ms": statistics.other_seconds * 1e3,
        "draft_n": statistics.drafted,
        "draft_n_accepted": statistics.accepted,
    }
