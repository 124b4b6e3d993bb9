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
    header = read_header(source)
    if output.exists() and output.samefile(source):
        raise UsageError(
            f"{output} cannot be made from itself",
            why="the source would be lost",
            fix="choose another name for the new file",
        )
    known = origin(source)
    made = Origin(
        source.name,
        checksum(source),
        header.file_type or "unknown",
        type,
        known.words() if known else None,
    )
    quantize(source, output, type)
    try:
        record(output, made)
    except OSError as error:  # a file of unknown origin would pass for the real model
        output.unlink()
        raise ModelFileError(
            f"{output.name} was made, but not the note on its origin",
            why=error.strerror or str(error),
            fix="free some space, or choose another directory",
        ) from error
    return made
