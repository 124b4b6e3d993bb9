"""`--exact`: find kernels with which the text cannot depend on what was drafted.

Every candidate setting is tried in a child process; what was found is remembered for this model
file, build, processor, thread count and device.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

from platformdirs import user_cache_path

from specdec_cli.engine.llama import library
from specdec_cli.engine.llama.invariance import Question, to_json
from specdec_cli.engine.llama.numerics import CANDIDATES, Numerics
from specdec_cli.errors import ExactUnavailable, ModelFileError

WIDTHS = (2, 3, 5, 8, 16)
WIDER = (24, 65)  # added where k + 1 is more than 16: few sets, so that few probes are made


@dataclass(frozen=True, slots=True)
class Probe:
    """What a probe found.

    Attributes:
        numerics: the first invariant setting, None where no candidate was.
        tried: each candidate that failed, in words, and what its bits depended on.
        seconds: what it cost when it was run.
        remembered: it was run on an earlier day.
    """

    numerics: Numerics | None
    tried: tuple[tuple[str, str], ...]
    seconds: float
    remembered: bool = False

    def words(self) -> str:
        when = "probed before" if self.remembered else f"probed in {self.seconds:.0f} s"
        return f"exact {self.numerics.words() if self.numerics else 'cannot be had'} ({when})"

    def as_dict(self) -> dict[str, Any]:
        return {
            "settings": self.numerics.as_dict() if self.numerics else None,
            "tried": [{"settings": words, "depends_on": why} for words, why in self.tried],
            "seconds": self.seconds,
            "remembered": self.remembered,
        }


def find_exact(
    path: Path,
    *,
    draft_tokens: int,
    threads: int,
    gpu_layers: int,
    on_try: Callable[[str], None] | None = None,
) -> Probe:
    """Probe, or remember an earlier probe.

    Args:
        on_try: told each candidate, in words, before it is tried.

    Raises:
        ModelFileError: the child process could not use the model at all.
    """
    widths = WIDTHS if draft_tokens < WIDTHS[-1] else (*WIDTHS, *WIDER)
    memory = _memory_file(path, widths, threads, gpu_layers)
    if (known := _recall(memory)) is not None:
        return known
    started = perf_counter()
    tried: list[tuple[str, str]] = []
    found = None
    for numerics in CANDIDATES:
        if on_try:
            on_try(numerics.words())
        dependence = _ask(Question(str(path), numerics, widths, threads, gpu_layers))
        if not dependence:
            found = numerics
            break
        tried.append((numerics.words(), dependence))
    probe = Probe(found, tuple(tried), perf_counter() - started)
    _remember(memory, probe)
    return probe


def require_exact(probe: Probe, *, best_effort: bool) -> Numerics:
    """The setting to run with.

    Raises:
        ExactUnavailable: none is invariant, and `best_effort` does not settle for the closest.
    """
    if probe.numerics is not None:
        return probe.numerics
    if best_effort:
        return CANDIDATES[-1]
    raise ExactUnavailable(
        "--exact cannot be had with this model on this build of llama.cpp",
        why=f"even {probe.tried[-1][0]}, bits depend on {probe.tried[-1][1]}",
        fix="--exact-best-effort goes on with the closest setting",
    )


def _ask(question: Question) -> str:
    child = subprocess.run(
        [sys.executable, "-m", "specdec_cli.engine.llama.invariance", to_json(question)],
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode != 0:
        lines = child.stderr.strip().splitlines()
        raise ModelFileError(
            f"the exactness probe failed on {Path(question.path).name}",
            why=lines[-1] if lines else f"its process ended with {child.returncode}",
            fix="try without --exact; specdec run -v shows llama.cpp's log",
        )
    return str(json.loads(child.stdout)["dependence"])


def _memory_file(path: Path, widths: tuple[int, ...], threads: int, gpu_layers: int) -> Path:
    status = path.stat()
    key = (
        path.name, status.st_size, status.st_mtime_ns, library.versions(), processor_key(),
        widths, threads, gpu_layers if library.has_gpu() else 0,
    )  # fmt: skip
    digest = sha256(repr(key).encode()).hexdigest()[:16]
    return user_cache_path("specdec") / "exact" / f"{digest}.json"


def processor_key() -> str:
    """The processor with its instruction sets: what llama.cpp chooses kernels by."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return "".join(sorted({line for line in lines if line.startswith(("model name", "flags"))}))


def _recall(memory: Path) -> Probe | None:
    """An earlier result; anything unreadable counts as none."""
    try:
        known = json.loads(memory.read_text())
        numerics = Numerics(**known["settings"]) if known["settings"] else None
        tried = tuple((entry["settings"], entry["depends_on"]) for entry in known["tried"])
        return Probe(numerics, tried, float(known["seconds"]), remembered=True)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _remember(memory: Path, probe: Probe) -> None:
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        part = memory.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(probe.as_dict()))
        part.replace(memory)
    except OSError:  # a read-only cache costs a probe at every start, nothing else
        return
