"""The conditions of a benchmark in full, as names and values to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specdec_cli.app.bench.saved import CONDITIONS
from specdec_cli.cli.bench_words import Document, clean, percent

GIB = 2**30
Lines = list[tuple[str, str]]


def conditions(document: Document) -> list[tuple[str, Lines]]:
    """Sections of lines; what was not known is left out."""
    found = document["conditions"]
    sections = [("Target", _model(found["target"]))]
    sections += [(f"Draft: {clean(draft['drafter'])}", _model(draft)) for draft in found["drafts"]]
    memory = found["memory_bytes"]
    sections += [
        (
            "Machine",
            _said(
                {
                    "CPU": found["cpu"],
                    "GPU": found["gpu"],
                    "Cores": found["cores"],
                    "Threads used": found["threads"],
                    "Memory": f"{memory / GIB:.1f} GiB" if memory else None,
                    "System": found["os"],
                    "Load before": found["load_average"],
                }
            ),
        ),
        (
            "Run",
            _said(
                {
                    "Date": found["date"],
                    "Workload": found["workload"],
                    "Prompts": found["prompts"],
                    "Repetitions": found["repetitions"],
                    "Tokens, at most": found["max_tokens"],
                    "Seed": found["seed"],
                    "Sampling": _settings(found["sampling"]),
                    "Made-up acceptance": _share(found["synthetic_acceptance"]),
                }
            ),
        ),
        (
            "llama.cpp",
            _said(
                {
                    "Batch size": found["batch_size"],
                    "Context size": found["ctx_size"],
                    "Flash attention": found["flash_attention"],
                    "GPU layers": found["gpu_layers"],
                    "Exact mode": _settings(found["exact"]) or "off",
                    **_others(found),
                    **found["versions"],
                }
            ),
        ),
    ]
    return sections


def _model(model: Mapping[str, Any]) -> Lines:
    size = model["bytes"]
    return _said(
        {
            "Name": model["name"],
            "File": model["file"],
            "Kind": model["description"],
            "Quantisation": model["quantisation"],
            "Size": f"{size / GIB:.2f} GiB" if size else None,
            "Origin": model["origin"],
            "SHA-256": model["sha256"],
        }
    )


def _said(values: Mapping[str, Any]) -> Lines:
    words = {True: "yes", False: "no"}
    return [
        (clean(name), words[value] if isinstance(value, bool) else clean(value))
        for name, value in values.items()
        if value is not None
    ]


def _share(value: float | None) -> str | None:
    return None if value is None else percent(value)


def _settings(settings: Mapping[str, Any] | None) -> str:
    """Names and values; what is empty says nothing."""
    return ", ".join(f"{name} {value}" for name, value in (settings or {}).items() if value != {})


def _others(found: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values of other versions or to come: shown, not dropped."""
    return {
        key.replace("_", " ").capitalize(): value
        for key, value in found.items()
        if key not in CONDITIONS and isinstance(value, str | int | float)
    }
