"""Benchmark documents that no machine ever measured: consistent, and as varied as a test needs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from math import prod
from typing import Any

import pytest

KEPT = {  # how often a guess is accepted, by the kind of work
    "chat": 0.55,
    "translation": 0.5,
    "summarisation": 0.62,
    "qa": 0.58,
    "math": 0.8,
    "rag": 0.66,
    "code": 0.88,
    "edit": 0.84,
}
TARGET_MS = {1: 99.0, 2: 109, 3: 122, 4: 139, 5: 144, 6: 150, 7: 158, 8: 168, 12: 212, 16: 248}
DRAFT_MS = {1: 14.0, 2: 17, 3: 19, 4: 22, 5: 24, 6: 27, 7: 29, 8: 32, 12: 44, 16: 56}
PROMPT_MS, TOKENS = 400.0, 96
MODEL = {
    "name": "qwen2.5-coder-1.5b-bf16",
    "file": "qwen2.5-coder-1.5b-bf16.gguf",
    "sha256": "0" * 64,
    "bytes": 3_093_666_624,
    "description": "qwen2 1.5B BF16",
    "quantisation": "BF16",
    "origin": "made from qwen2.5-coder-1.5b-q4_k_m.gguf (Q4_K_M): its values at BF16 cost",
}
DRAFT = {
    "name": "qwen2.5-coder-0.5b-q4_k_m",
    "file": "qwen2.5-coder-0.5b-q4_k_m.gguf",
    "sha256": "d" * 64,
    "bytes": 491_400_032,
    "description": "qwen2 0.5B Q4_K_M",
    "quantisation": "Q4_K_M",
    "origin": None,
    "drafter": "model",
}
CONDITIONS = {
    "date": "2026-12-01T10:00:00+00:00",
    "target": MODEL,
    "drafts": [DRAFT],
    "cpu": "AMD EPYC 9V74 80-Core Processor, AVX2, AVX512",
    "gpu": None,
    "cores": 2,
    "threads": 2,
    "memory_bytes": 25_769_803_776,
    "os": "Linux 6.8",
    "load_average": 0.21,
    "batch_size": 512,
    "ctx_size": 4096,
    "flash_attention": "auto",
    "gpu_layers": 0,
    "extra_kernels": True,
    "exact": None,
    "sampling": {"temp": 0.0, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repeat_penalty": 1.0}
    | {"presence_penalty": 0.0, "frequency_penalty": 0.0, "penalty_last_n": 64, "logit_bias": {}},
    "seed": 0,
    "max_tokens": TOKENS,
    "repetitions": 2,
    "workload": "full",
    "prompts": 48,
    "synthetic_acceptance": None,
    "versions": {"specdec": "0.1.0", "llama_cpp_python": "0.3.36", "llama_cpp": "b1234"},
}


def bench_document(
    categories: Sequence[str] = tuple(KEPT),
    candidates: Sequence[tuple[str, int | str, str]] = (
        ("model", 2, "coupled"),
        ("model", 4, "coupled"),
        ("model", 7, "coupled"),
    ),
) -> dict[str, Any]:
    """What `specdec bench` would save; every call gives a fresh one."""
    results = [_result(category, *candidate) for category in categories for candidate in candidates]
    summary = [_summary(candidate, results) for candidate in candidates]
    best = max(range(len(summary)), key=lambda i: summary[i]["speedup_geomean"], default=None)
    costs = {
        "context": 128,
        "target": {str(rows): ms for rows, ms in TARGET_MS.items()},
        "draft": {str(rows): ms for rows, ms in DRAFT_MS.items()},
    }
    return copy.deepcopy(
        {
            "schema": "specdec-bench/1",
            "complete": True,
            "conditions": CONDITIONS,
            "results": results,
            "summary": {
                "candidates": summary,
                "best": best,
                "speedup_geomean": None if best is None else summary[best]["speedup_geomean"],
            },
            "skipped": [],
            "runs": _runs(categories),
            "costs": costs,
            "cost_depths": [],
        }
    )


def costs_document() -> dict[str, Any]:
    """What `specdec bench --costs` would save: two depths, and nothing generated."""
    document = bench_document([], [])
    deep = copy.deepcopy(document["costs"])
    deep["context"] = 2048
    for curve in (deep["target"], deep["draft"]):
        curve.update({rows: 1.2 * ms for rows, ms in curve.items()})
    return document | {"runs": [], "cost_depths": [document["costs"], deep]}


def hostile_document() -> dict[str, Any]:
    """Names that mean something to HTML, markdown, rich, TeX, a terminal or a spreadsheet."""
    hostile = ["<script>alert(1)</script>", "a|b `c` *d*", "[bold]e[/bold]", "$\\frac{1}$", "&amp;"]
    document = bench_document(hostile, [("<b>&'\"", 4, "coupled"), ("[red]|", 2, "block")])
    document["conditions"] |= {
        "cpu": "CPU </style><img src=x onerror=alert(1)> \x1b[31m",
        "os": "line\nbreak\ttab\udcff",
        "workload": "a;b,c\"d'.jsonl",
    }
    document["conditions"]["target"] |= {"name": "]]><svg onload=x>", "origin": "<i>|</i>\x00"}
    document["skipped"] = [{"prompt": 1, "category": "<u>", "reason": "<s>|too long\n"}]
    return document


def nulls_document() -> dict[str, Any]:
    """Everything that may be null is."""
    document = bench_document(["only"], [("suffix", 4, "coupled")])
    counted = ("category", "drafter", "k", "accept", "prompts", "pairs", "decision")
    for key in document["results"][0].keys() - set(counted):
        document["results"][0][key] = None
    for entry in document["summary"]["candidates"]:
        for key in entry.keys() - {"drafter", "k", "accept"}:
            entry[key] = None
    document["summary"] |= {"best": None, "speedup_geomean": None}
    document["conditions"]["drafts"] = []
    document["conditions"]["load_average"] = None
    document["conditions"]["target"]["origin"] = None
    return document | {"costs": None, "runs": []}


def one_result() -> dict[str, Any]:
    return bench_document(["code"], [("model", 4, "coupled")])


def without_draft() -> dict[str, Any]:
    document = bench_document(candidates=[("suffix", "auto", "coupled")])
    document["conditions"]["drafts"] = []
    del document["costs"]["draft"]
    return document


def interrupted() -> dict[str, Any]:
    """Before any candidate had a summary; and without the runs, as they may be cut out."""
    document = one_result() | {"complete": False, "runs": []}
    document["summary"] = {"candidates": [], "best": None, "speedup_geomean": None}
    return document


def without_rows() -> dict[str, Any]:
    """A summary of what is not there, as when a file was cut by hand."""
    return one_result() | {"results": []}


def synthetic() -> dict[str, Any]:
    document = one_result()
    document["conditions"]["synthetic_acceptance"] = 0.8
    return document


def nothing() -> dict[str, Any]:
    return bench_document([], []) | {"costs": None, "runs": []}


EVERY = [
    bench_document,
    one_result,
    without_draft,
    interrupted,
    without_rows,
    synthetic,
    costs_document,
    hostile_document,
    nulls_document,
    nothing,
]
every_document = pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)


def slower(document: dict[str, Any], by: float) -> dict[str, Any]:
    """The same benchmark with every speed-up multiplied by a number."""
    changed = copy.deepcopy(document)
    for result in changed["results"]:
        result["tps"] *= by
        result["speedup"] *= by
        result["speedup_ci"] = [by * bound for bound in result["speedup_ci"]]
    for entry in changed["summary"]["candidates"]:
        for key in ("speedup_geomean", "worst_speedup"):
            entry[key] *= by
        entry["speedup_ci"] = [by * bound for bound in entry["speedup_ci"]]
    changed["summary"]["speedup_geomean"] *= by
    return changed


def _result(category: str, drafter: str, k: int | str, accept: str) -> dict[str, Any]:
    kept = KEPT.get(category, 0.7)
    guesses = 5 if isinstance(k, str) else k
    positions = [kept ** (i + 1) for i in range(guesses)]
    length = 1 + sum(positions)
    rounds = round(TOKENS / length)
    histogram = [round(rounds * (kept**i - kept ** (i + 1))) for i in range(guesses)]
    histogram.append(max(0, rounds - sum(histogram)))
    draft_ms, target_ms = rounds * guesses * DRAFT_MS[1], rounds * TARGET_MS[guesses + 1]
    other_ms = 9.0
    plain_ms = PROMPT_MS + TOKENS * TARGET_MS[1]
    predicted_ms = draft_ms + target_ms + other_ms
    plain_tps = 1e3 * TOKENS / plain_ms
    tps = 1e3 * TOKENS / (PROMPT_MS + predicted_ms)
    oracle_tps = 1.25 * max(tps, plain_tps)
    return {
        "category": category,
        "drafter": drafter,
        "k": k,
        "accept": accept,
        "prompts": 6,
        "pairs": 12,
        "plain_tps": plain_tps,
        "tps": tps,
        "plain_spread": 0.01,
        "spread": 0.02,
        "speedup": tps / plain_tps,
        "speedup_ci": [0.93 * tps / plain_tps, 1.06 * tps / plain_tps],
        "draft_acceptance_rate": (length - 1) / guesses,
        "mean_acceptance_length": length,
        "acceptance_per_position": positions,
        "acceptance_histogram": histogram,
        "draft_ms": draft_ms,
        "target_ms": target_ms,
        "other_ms": other_ms,
        "draft_share": draft_ms / predicted_ms,
        "first_token_ms": PROMPT_MS + 104,
        "plain_first_token_ms": PROMPT_MS + 101,
        "identical": category != "chat",
        "first_difference": {"prompt": 3, "position": 41, "tokens": [11, 12], "gap": 0.02}
        if category == "chat"
        else None,
        "oracle_tps": oracle_tps,
        "oracle_speedup": oracle_tps / plain_tps,
        "of_oracle": tps / oracle_tps,
        "decision": f"{guesses} guesses a round",
    }


def _summary(
    candidate: tuple[str, int | str, str], results: list[dict[str, Any]]
) -> dict[str, Any]:
    rows = [r for r in results if (r["drafter"], r["k"], r["accept"]) == candidate]
    worst = min(rows, key=lambda row: row["speedup"])
    speedup = _geomean([row["speedup"] for row in rows])
    oracle = _geomean([row["oracle_speedup"] for row in rows])
    return {
        "drafter": candidate[0],
        "k": candidate[1],
        "accept": candidate[2],
        "speedup_geomean": speedup,
        "speedup_ci": [0.96 * speedup, 1.04 * speedup],
        "worst_category": worst["category"],
        "worst_speedup": worst["speedup"],
        "oracle_geomean": oracle,
        "of_oracle": speedup / oracle,
    }


def _runs(categories: Sequence[str]) -> list[dict[str, Any]]:
    """The plain runs alone: of the others, no report reads anything."""
    predicted = TOKENS * TARGET_MS[1]
    times = {"prompt_ms": PROMPT_MS, "predicted_ms": predicted, "draft_ms": 0.0}
    return [
        {
            "prompt": i,
            "category": category,
            "repetition": 0,
            "candidate": None,
            "usage": {"prompt_tokens": 50, "completion_tokens": TOKENS},
            "timings": times | {"target_ms": predicted - 5, "other_ms": 5.0},
            "speculative_decoding": {},
            "finish_reason": "length",
            "tokens": [],
        }
        for i, category in enumerate(categories)
    ]


def _geomean(values: Sequence[float]) -> float:
    return prod(values) ** (1 / len(values))
