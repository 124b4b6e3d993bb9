"""What a target and its drafts have taught, kept between runs in the user's cache."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from platformdirs import user_cache_path

from specdec_cli.app.exact import processor_key
from specdec_cli.core.experience import Experience
from specdec_cli.engine.llama import library
from specdec_cli.engine.llama.numerics import Numerics
from specdec_cli.models.origins import fingerprint

VERSION = 3


@dataclass(frozen=True, slots=True)
class Setting:
    """What costs depend on, besides the machine and the build."""

    target: Path
    threads: int
    gpu_layers: int
    draft_gpu_layers: int
    flash_attention: str
    numerics: Numerics


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was kept; `problem` says why nothing could be used where something was there."""

    experience: Experience
    problem: str = ""


def recall(setting: Setting) -> Recalled:
    """Never an error: what cannot be used is measured again."""
    file = _file(setting)
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
        if known["version"] != VERSION:
            return Recalled(
                Experience(), "is of another version of specdec: they are measured again"
            )
        return Recalled(Experience.from_dict(known))
    except FileNotFoundError:
        return Recalled(Experience())
    except OSError as error:
        return Recalled(
            Experience(), f"cannot be read ({error.strerror}): they are measured each time"
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return Recalled(Experience(), "is damaged: they are measured again")


def keep(setting: Setting, experience: Experience) -> str:
    """Replace what was kept; why it could not be, in words, or nothing. The last writer wins:
    two processes learn of the same machine."""
    file = _file(setting)
    part = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps({"version": VERSION, **experience.as_dict()}), encoding="utf-8")
        part.replace(file)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        return f"cannot be kept ({error.strerror}: {file.parent}): they are measured each time"
    return ""


def _file(setting: Setting) -> Path:
    gpu = (setting.gpu_layers, setting.draft_gpu_layers) if library.has_gpu() else 0
    key = (
        fingerprint(setting.target), setting.threads, gpu, setting.flash_attention,
        setting.numerics, library.versions(), library.system(), processor_key(),
    )  # fmt: skip
    digest = sha256(repr(key).encode()).hexdigest()[:16]
    return user_cache_path("specdec") / "experience" / f"{digest}.json"
