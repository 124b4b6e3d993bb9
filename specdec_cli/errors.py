"""Everything that can go wrong for a user, as one tree.

SpecdecError                 message, why, fix; an exit code and a machine-readable type
├── UsageError               2  wrong usage or an invalid option value
├── ModelFileError           3  missing, unreadable, truncated, not GGUF, unsupported
├── IncompatibleModels       4  draft and target do not share a vocabulary
├── CheckFailed              5  a check that the user asked for did not hold
├── OutOfMemory              6  not enough memory, or a context could not be created
├── DownloadError            7  download or checksum failed
├── PromptTooLong            8  the prompt does not fit the context
├── ExactUnavailable         9  `--exact` cannot be had with this model on this build
└── EvaluationError          1  llama.cpp failed in the middle of an answer

Whatever is not in this tree is a bug and exits 1.
"""

from __future__ import annotations

from typing import ClassVar


class SpecdecError(Exception):
    """An error meant for a person: what happened, why, and what to do about it, one line each."""

    code: ClassVar[int] = 1
    type: ClassVar[str] = "error"

    def __init__(self, message: str, *, why: str, fix: str) -> None:
        super().__init__(message)
        self.message = message
        self.why = why
        self.fix = fix


class UsageError(SpecdecError):
    code, type = 2, "usage"


class ModelFileError(SpecdecError):
    code, type = 3, "model_file"


class IncompatibleModels(SpecdecError):
    code, type = 4, "incompatible_models"


class CheckFailed(SpecdecError):
    code, type = 5, "check_failed"


class OutOfMemory(SpecdecError):
    code, type = 6, "out_of_memory"


class DownloadError(SpecdecError):
    code, type = 7, "download"


class PromptTooLong(SpecdecError):
    code, type = 8, "prompt_too_long"


class ExactUnavailable(SpecdecError):
    code, type = 9, "exact_unavailable"


class EvaluationError(SpecdecError):
    code, type = 1, "evaluation"
