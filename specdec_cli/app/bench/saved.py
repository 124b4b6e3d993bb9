"""A saved benchmark, read back: checked until no report of it can stumble.

What is wrong is named by file and key, as people do edit these files by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from specdec_cli.errors import UsageError

SCHEMA = "specdec-bench/1"
LARGEST = 1e15  # of any number: beyond it somebody's finger slipped


@dataclass(frozen=True, slots=True)
class Kind:
    """What a value must be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Maybe:
    """A shape, or null."""

    shape: Shape


Shape = Kind | Maybe | dict[str, Any] | list[Any]  # an object's keys; a list's one shape


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= LARGEST and isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value) and value >= 0


def _is_curve(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "1" in value
        and all(rows.isascii() and rows.isdigit() and 0 < int(rows) < 1e6 for rows in value)
        and all(_is_number(ms) and ms > 0 for ms in value.values())
    )


TEXT = Kind("a text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
NUMBER = Kind("a number", _is_number)
COUNT = Kind("a whole number from 0", _is_count)
AMOUNT = Kind("a number from 0", lambda value: _is_number(value) and value >= 0)
SHARE = Kind("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1)
FACTOR = Kind("a number above 0", lambda value: _is_number(value) and value > 0)
LENGTH = Kind('a whole number or "auto"', lambda value: value == "auto" or _is_count(value))
OBJECT = Kind("an object", lambda value: isinstance(value, dict))
INTERVAL = Kind(
    "a list of two numbers above 0",
    lambda value: isinstance(value, list) and len(value) == 2 and all(map(FACTOR.holds, value)),
)
PAIR = Kind("a list of two", lambda value: isinstance(value, list) and len(value) == 2)
CURVE = Kind('an object of milliseconds by rows, "1" among them', _is_curve)
ANY = Kind("anything", lambda value: True)

CANDIDATE = {"drafter": TEXT, "k": LENGTH, "accept": TEXT}
MODEL = {"name": TEXT, "file": TEXT, "sha256": Maybe(TEXT), "bytes": Maybe(COUNT)} | {
    "description": Maybe(TEXT),
    "quantisation": Maybe(TEXT),
    "origin": Maybe(TEXT),
}
CONDITIONS: dict[str, Any] = {
    "date": TEXT,
    "target": MODEL,
    "drafts": [MODEL | {"drafter": TEXT}],
    "cpu": TEXT,
    "gpu": Maybe(TEXT),
    **dict.fromkeys(("cores", "threads", "memory_bytes"), Maybe(COUNT)),
    "os": TEXT,
    "load_average": Maybe(NUMBER),
    **dict.fromkeys(("batch_size", "ctx_size", "flash_attention", "gpu_layers", "seed"), ANY),
    "exact": Maybe(OBJECT),
    "sampling": OBJECT,
    **dict.fromkeys(("max_tokens", "repetitions", "prompts"), Maybe(COUNT)),
    "workload": TEXT,
    "synthetic_acceptance": Maybe(SHARE),
    "versions": OBJECT,
}
TIMES = ("draft_ms", "target_ms", "other_ms", "first_token_ms", "plain_first_token_ms")
RESULT: dict[str, Any] = {
    "category": TEXT,
    **CANDIDATE,
    "prompts": COUNT,
    "pairs": COUNT,
    **dict.fromkeys(("plain_tps", "tps", "speedup"), Maybe(FACTOR)),
    "plain_spread": Maybe(NUMBER),
    "spread": Maybe(NUMBER),
    "speedup_ci": Maybe(INTERVAL),
    "draft_acceptance_rate": Maybe(SHARE),
    "mean_acceptance_length": Maybe(NUMBER),
    "acceptance_per_position": Maybe([Maybe(SHARE)]),
    "acceptance_histogram": Maybe([COUNT]),
    **dict.fromkeys(TIMES, Maybe(AMOUNT)),
    "draft_share": Maybe(SHARE),
    "identical": Maybe(FLAG),
    "first_difference": Maybe(
        {"prompt": COUNT, "position": COUNT, "tokens": PAIR, "gap": Maybe(NUMBER)}
    ),
    **dict.fromkeys(("oracle_tps", "oracle_speedup", "of_oracle"), Maybe(FACTOR)),
    "decision": Maybe(TEXT),
}
SUMMARY = {
    **CANDIDATE,
    "speedup_geomean": Maybe(FACTOR),
    "speedup_ci": Maybe(INTERVAL),
    "worst_category": Maybe(TEXT),
    "worst_speedup": Maybe(FACTOR),
    "oracle_geomean": Maybe(FACTOR),
    "of_oracle": Maybe(FACTOR),
}
COSTS = {"context": COUNT, "target": CURVE}
DOCUMENT = {
    "complete": FLAG,
    "conditions": CONDITIONS,
    "results": [RESULT],
    "summary": {
        "candidates": [SUMMARY],
        "best": Maybe(COUNT),
        "speedup_geomean": Maybe(FACTOR),
    },
    "skipped": [{"prompt": COUNT, "category": TEXT, "reason": TEXT}],
    "runs": [OBJECT],
    "costs": Maybe(COSTS),
    "cost_depths": [COSTS],
}


def read(path: Path) -> dict[str, Any]:
    """A document as `specdec bench --save` writes it.

    Raises:
        UsageError: unreadable, not JSON, not a benchmark, another schema, or a key that is missing
            or holds what it cannot.
    """
    try:
        document: Any = json.loads(path.read_text("utf-8"))
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"cannot read {path}", why=why, fix="check the path") from error
    except (ValueError, RecursionError) as error:
        _refuse(path, "it is not JSON", f"{path} is not a saved benchmark", error)
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or not schema.startswith("specdec-bench/"):
        _refuse(path, "it has no schema that begins with `specdec-bench/`")
    if schema != SCHEMA:
        raise UsageError(
            f"{path} has the schema {schema}, not {SCHEMA}",
            why="it was saved by another version of specdec",
            fix="save both with one version",
        )
    _check(document, DOCUMENT, path, "")
    for costs in [document["costs"] or {}, *document["cost_depths"]]:
        for name in costs.keys() - COSTS.keys():
            _check(costs[name], CURVE, path, f"costs.{name}")
    summary = document["summary"]
    if summary["best"] is not None and summary["best"] >= len(summary["candidates"]):
        _refuse(path, "`summary.best` is not one of `summary.candidates`")
    return document  # type: ignore[no-any-return]


def _check(value: Any, shape: Shape, path: Path, where: str) -> None:
    if isinstance(shape, Maybe):
        if value is not None:
            _check(value, shape.shape, path, where)
    elif isinstance(shape, Kind):
        if not shape.holds(value):
            _refuse(path, f"`{where}` must be {shape.words}")
    elif isinstance(shape, list):
        if not isinstance(value, list):
            _refuse(path, f"`{where}` must be a list")
        for i, entry in enumerate(value):
            _check(entry, shape[0], path, f"{where}[{i}]")
    else:
        if not isinstance(value, Mapping):
            _refuse(path, f"`{where}` must be an object")
        for key, inner in shape.items():
            name = f"{where}.{key}" if where else key
            if key not in value:
                _refuse(path, f"`{name}` is missing")
            _check(value[key], inner, path, name)


def _refuse(
    path: Path, why: str, what: str | None = None, cause: Exception | None = None
) -> NoReturn:
    raise UsageError(
        what or f"{path} is not a benchmark that can be read",
        why=why,
        fix="give a file that `specdec bench --save` wrote",
    ) from cause
