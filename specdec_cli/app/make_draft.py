"""Make a model file of another precision, and record beside it what it was made from."""

from __future__ import annotations

from pathlib import Path

from specdec_cli.engine.gguf import read_header
from specdec_cli.engine.llama.quantize import quantize
from specdec_cli.errors import ModelFileError, UsageError
from specdec_cli.models.origins import Origin, checksum, origin, record


def make(source: Path, output: Path, type: str) -> Origin:
    """Raises:
    UsageError: `output` is the source itself.
    ModelFileError: the source is damaged, or something failed; a new `output` is not there then.
    """
    if output.exists() and output.samefile(source):
        raise UsageError(
            f"{output} cannot be made from itself",
            why="the source would be lost",
            fix="choose another name for the new file",
        )
    made = described(source, type)
    quantize(source, output, type)
    note(output, made)
    return made


def described(source: Path, type: str, *, draft_of: str | None = None) -> Origin:
    """What is to be recorded of a copy. Raises ModelFileError where the source is damaged."""
    header = read_header(source)
    known = origin(source)
    return Origin(
        source.name,
        checksum(source),
        header.file_type or "unknown",
        type,
        known.words() if known else None,
        draft_of,
    )


def note(output: Path, made: Origin) -> None:
    """Record the origin of a new file, or take the file away again."""
    try:
        record(output, made)
    except OSError as error:  # a file of unknown origin would pass for the real model
        output.unlink()
        raise ModelFileError(
            f"{output.name} was made, but not the note on its origin",
            why=error.strerror or str(error),
            fix="free some space, or choose another directory",
        ) from error
