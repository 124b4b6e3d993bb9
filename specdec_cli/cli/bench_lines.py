"""A benchmark as lines for other programs: CSV and JSON lines, each with its conditions."""

from __future__ import annotations

import csv as csv_format
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from specdec_cli.cli.bench_costs import curves, depths
from specdec_cli.cli.bench_words import Document

CONDITIONS = (
    "date",
    "cpu",
    "gpu",
    "threads",
    "max_tokens",
    "repetitions",
    "workload",
    "seed",
    "synthetic_acceptance",
)


def jsonl(document: Document) -> str:
    """A JSON object for each result; without results, one for each measured cost."""
    return "".join(
        json.dumps(line, ensure_ascii=True, allow_nan=False) + "\n" for line in _lines(document)
    )


def csv(document: Document) -> str:
    """The same lines flat: lists joined by `;`, an object's keys as `object_key`."""
    rows = [_flat(line) for line in _lines(document)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO()
    writer = csv_format.DictWriter(file, names, restval="", lineterminator="\n")
    if rows:
        writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode("utf-8", "replace").decode("utf-8")


def _lines(document: Document) -> Iterator[dict[str, Any]]:
    conditions = document["conditions"]
    drafts = {draft["drafter"]: draft for draft in conditions["drafts"]}
    shared = {
        **_model("target", conditions["target"]),
        **{name: conditions[name] for name in CONDITIONS},
        "temp": conditions["sampling"].get("temp"),
        "specdec": conditions["versions"].get("specdec"),
        "llama_cpp": conditions["versions"].get("llama_cpp"),
    }
    for result in document["results"]:
        yield shared | _model("draft", drafts.get(result["drafter"])) | result
    if document["results"]:
        return
    for costs in depths(document):
        for name, curve in curves(costs).items():
            for rows, ms in curve.items():
                yield shared | {"context": costs["context"], "of": name, "rows": rows, "ms": ms}


def _model(role: str, model: Mapping[str, Any] | None) -> dict[str, Any]:
    keys = ("name", "file", "quantisation", "sha256", "origin")
    names = (role, *(f"{role}_{key}" for key in keys[1:]))
    return {name: model[key] if model else None for name, key in zip(names, keys, strict=True)}


def _flat(line: Mapping[str, Any]) -> dict[str, Any]:
    """No cell is a list or an object, and null is an empty cell."""
    flat: dict[str, Any] = {}
    for name, value in line.items():
        if name == "speedup_ci":
            flat["speedup_low"], flat["speedup_high"] = value or (None, None)
        elif name == "first_difference":
            for key in ("prompt", "position", "gap"):
                flat[f"{name}_{key}"] = value[key] if value else None
        else:
            flat[name] = value
    return {
        name: ";".join(map(str, value)) if isinstance(value, list) else value
        for name, value in flat.items()
    }
