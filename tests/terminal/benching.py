"""Short runs of `specdec bench` on models whose answers the tests know."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from command import Ran, run_specdec

Bench = Callable[..., Ran]
PROMPTS = [
    {"category": "chat", "prompt": "hello there"},
    {"category": "code", "prompt": "print something", "system": "You code."},
    {"category": "code", "prompt": "the end in the end"},
]


def write_prompts(*more: dict[str, str]) -> Path:
    """In the directory of the test, where they are `prompts.jsonl`."""
    file = Path("prompts.jsonl")
    file.write_text("\n".join(map(json.dumps, [*PROMPTS, *more])))
    return file


def bench_of(target: Path, draft: Path) -> Bench:
    """The command on a pair and three prompts, 16 tokens an answer, once each."""
    work = ["--prompts", write_prompts(), "-n", 16, "-r", 1]

    def run(*arguments: object, **options: Any) -> Ran:
        return run_specdec("bench", "-m", target, "-md", draft, *work, *arguments, **options)

    return run
