"""Another precision of a model file, by llama.cpp's own quantiser."""

from __future__ import annotations

import os
from pathlib import Path

import llama_cpp

from specdec_cli.engine.gguf import read_header
from specdec_cli.engine.llama import library
from specdec_cli.errors import ModelFileError

TYPES = {"Q4_0": 2, "Q4_1": 3, "Q5_0": 8, "Q8_0": 7, "BF16": 32}  # llama.cpp's `llama_ftype`


def quantize(
    source: Path, output: Path, type: str, *, pure: bool = False, threads: int = 0
) -> None:
    """Write `source` to `output` in another type; `output` is complete or not there.

    A wider type than the source's costs what that type costs and knows no more than the source.

    Args:
        pure: the output matrix too, which llama.cpp would keep wider. It is read for every token,
            and in a small or low-bit model takes a good part of the time.

    Raises:
        ModelFileError: the source is damaged, or llama.cpp's quantiser failed.
    """
    library.start()
    read_header(source)
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = TYPES[type]
    params.nthread = threads
    params.allow_requantize = True
    params.pure = pure
    part = part_of(output)
    library.clear_log()
    try:
        code = llama_cpp.llama_model_quantize(os.fsencode(source), os.fsencode(part), params)
        if code != 0:
            raise failed(output, library.last_error() or f"its quantiser gave {code}")
        part.replace(output)
    except OSError as error:
        raise failed(output, error.strerror or str(error)) from error
    finally:
        part.unlink(missing_ok=True)


def part_of(output: Path) -> Path:
    """Where the file grows until it is complete."""
    return output.with_name(output.name + ".part")


def failed(output: Path, why: str) -> ModelFileError:
    return ModelFileError(
        f"llama.cpp could not make {output.name}",
        why=why,
        fix="check the source file, and the free space where the new one goes",
    )
