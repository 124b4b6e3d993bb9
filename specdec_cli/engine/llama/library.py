"""llama.cpp as a library: started once, its log in our hands."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from functools import cache
from importlib.metadata import version

import llama_cpp

ERROR_LEVEL = 4  # GGML_LOG_LEVEL_ERROR
CONTINUED = 5  # GGML_LOG_LEVEL_CONT: the rest of the line before

_log: deque[tuple[int, str]] = deque(maxlen=2000)
_sink: Callable[[str], None] | None = None


# llama-cpp-python's own log handling redirects file descriptors, which would kill a live display.
@llama_cpp.llama_log_callback
def _on_log(level: int, text: bytes, _user_data: ctypes.c_void_p) -> None:
    line = text.decode("utf-8", "replace")
    if level == CONTINUED and _log:
        level = _log[-1][0]
    _log.append((level, line))
    if _sink is not None:
        _sink(line)


@cache
def start() -> None:
    """Initialise the backends and take over the log. Safe to call again."""
    llama_cpp.llama_log_set(_on_log, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()


def show_log(sink: Callable[[str], None] | None) -> None:
    """Pass every log line on to `sink` as it comes; None stops that."""
    global _sink
    _sink = sink


def log_text() -> str:
    """The log so far (its last 2000 pieces)."""
    return "".join(line for _, line in _log)


def last_error(since: int = 0) -> str:
    """The first error that llama.cpp logged after position `since` of the log, one line."""
    errors = [line.strip() for level, line in list(_log)[since:] if level == ERROR_LEVEL]
    return errors[0].split(": ", 1)[-1] if errors else ""


def clear_log() -> None:
    _log.clear()


def versions() -> dict[str, str]:
    """Versions of the binding and of llama.cpp itself."""
    return {
        "llama_cpp_python": version("llama_cpp_python"),
        "llama_cpp": llama_cpp.llama_version().decode(),
    }


def system() -> str:
    """The instruction sets and options that this build was made with."""
    return str(llama_cpp.llama_print_system_info().decode())


def has_gpu() -> bool:
    """Can this build of llama.cpp put layers on a GPU?"""
    return bool(llama_cpp.llama_supports_gpu_offload())
