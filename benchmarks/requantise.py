"""Make a target of another precision from a GGUF file, with llama.cpp's own quantiser.

    python benchmarks/requantise.py qwen2.5-coder:1.5b BF16 models/qwen2.5-coder-1.5b-bf16.gguf

The values stay those of the source: a BF16 copy of a Q4_K_M file costs what a full-precision model
costs and knows no more than the Q4_K_M one. Say so beside every number from it.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import llama_cpp  # noqa: TID251  # a tool beside the package, not a part of it

from specdec_cli.models.references import resolve

TYPES = {"Q4_0": 2, "Q8_0": 7, "BF16": 32}  # llama.cpp's `llama_ftype`


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("output", type=Path)
    asked = parser.parse_args()
    source = resolve(asked.source)
    assert isinstance(source, Path), f"specdec pull {asked.source}"
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = TYPES[asked.type]
    params.allow_requantize = True
    part = asked.output.with_suffix(".part")
    failed = llama_cpp.llama_model_quantize(str(source).encode(), str(part).encode(), params)
    assert not failed, f"llama.cpp's quantiser gave {failed}"
    os.replace(part, asked.output)
    print(asked.output)


if __name__ == "__main__":
    main()
