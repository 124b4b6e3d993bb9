"""Make a model file of another precision, and record beside it what it was made from."""

from __future__ import annotations

from pathlib import Path

from specdec_cli.engine.gguf import read_header
from specdec_cli.engine.llama.quantize import quantize
from specdec_cli.models.origins import Origin, checksum, record


def make(source: Path, output: Path, type: str) -> Origin:
    """Raises:
    ModelFileError: the source is damaged, or the quantiser failed; `output` is not there then.
    """
    source_type = read_header(source).file_type or "unknown"
    origin = Origin(source.name, checksum(source), source_type, type)
    quantize(source, output, type)
    record(output, origin)
    return origin
