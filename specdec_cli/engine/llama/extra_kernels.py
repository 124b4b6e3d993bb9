"""Does this build of llama.cpp survive its own extra kernels on this processor?

On processors with AMX, compilers may drop most of the tile configuration that llama.cpp prepares
(llama.cpp pull request 26954), and the first matrix product kills the process. Only a process
that may die can find out, so one is sent ahead, once for a build and a processor.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

import llama_cpp
from platformdirs import user_cache_path

from specdec_cli.engine.llama import library

SWITCH = "SPECDEC_EXTRA_KERNELS"  # on or off: what is known need not be tried
NOTICE = (
    "this build of llama.cpp crashes in its AMX kernels: running without extra kernels, slower; "
    "`make install` builds one that does not"
)


def usable(path: Path) -> bool:
    """May a model be loaded with weights rearranged for extra kernels?

    Args:
        path: the model to try with, where a trial is needed.
    """
    if (known := os.environ.get(SWITCH)) in ("on", "off"):
        return known == "on"
    return "AMX_INT8 = 1" not in library.system() or _survives(path)


@cache
def _survives(path: Path) -> bool:
    memory = user_cache_path("specdec") / "kernels" / _build()
    try:
        return memory.read_text() == "on"
    except OSError:
        pass
    child = subprocess.run(
        [sys.executable, "-m", "specdec_cli.engine.llama.trial", str(path)],
        env={**os.environ, SWITCH: "on"},
        capture_output=True,
        check=False,
    )
    if child.returncode > 0:  # an error, not a death: the load itself will say what is wrong
        return True
    found = child.returncode == 0
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_text("on" if found else "off")
    except OSError:  # a read-only cache costs a trial at every start, nothing else
        pass
    return found


def _build() -> str:
    file = Path(llama_cpp.__file__)
    key = (library.versions(), library.system(), platform.processor(), file.stat().st_mtime_ns)
    return sha256(repr(key).encode()).hexdigest()[:16]
