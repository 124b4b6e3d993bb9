"""Under which conditions numbers were measured: without them they say nothing."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from specdec_cli import __version__
from specdec_cli.app.report import effective
from specdec_cli.app.session import Session
from specdec_cli.core.options import SamplingOptions
from specdec_cli.engine.gguf import read_header
from specdec_cli.engine.llama import library
from specdec_cli.engine.llama.model import LlamaModel
from specdec_cli.models.origins import checksum, origin


def conditions(session: Session, sampling: SamplingOptions, **more: Any) -> dict[str, Any]:
    """Models, machine and settings; `more` is what the benchmark itself adds."""
    load = session.options
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "target": _model(session.model),
        "drafts": [{"drafter": draft.name, **_model(draft.model)} for draft in session.drafts],
        "cpu": processor(),
        "gpu": "by llama.cpp" if library.has_gpu() and load.gpu_layers != 0 else None,
        "cores": int(psutil.cpu_count(logical=False) or 1),
        "threads": session.threads,
        "memory_bytes": int(psutil.virtual_memory().total),
        "os": f"{platform.system()} {platform.machine()}",
        "load_average": load_average(),
        "batch_size": load.batch,
        "ctx_size": session.context_size,
        "flash_attention": load.flash_attention,
        "gpu_layers": load.gpu_layers,
        "extra_kernels": load.numerics.repacked and not session.model.crippled,
        "exact": load.probe.as_dict() if load.probe else None,
        "sampling": effective(sampling),
        **more,
        "versions": {"specdec": __version__, **library.versions()},
    }


def load_average() -> float | None:
    """How busy the machine is; None where the system does not say."""
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None


def processor() -> str:
    """The processor's name and its widest instruction sets, as llama.cpp sees them."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    sets = [word for word in ("AVX2", "AVX512", "AMX_INT8", "NEON") if _has(word)]
    return ", ".join([names[0] if names else name, *sets])


def _has(instruction_set: str) -> bool:
    return f"{instruction_set} = 1" in library.system()


def _model(model: LlamaModel) -> Mapping[str, Any]:
    header = read_header(model.path)
    made = origin(model.path)
    return {
        "name": model.path.stem,
        "file": model.path.name,
        "sha256": checksum(model.path),
        "bytes": model.path.stat().st_size,
        "description": model.description,
        "quantisation": header.file_type or "unknown",
        "origin": made.words() if made else None,
    }
