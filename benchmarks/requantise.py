"""Make a model of another precision from a GGUF file, and record what it was made from.

    python benchmarks/requantise.py qwen2.5-coder:1.5b BF16 models/qwen2.5-coder-1.5b-bf16.gguf
    python benchmarks/requantise.py qwen2.5-coder:0.5b Q4_0 models/qwen2.5-coder-0.5b-q4_0.gguf

The values stay those of the source: a BF16 copy of a Q4_K_M file costs what a full-precision model
costs and knows no more than the Q4_K_M one. `specdec bench` says so beside its numbers.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from specdec_cli.app.make_draft import make
from specdec_cli.engine.llama.quantize import TYPES
from specdec_cli.models.references import resolve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("output", type=Path)
    asked = parser.parse_args()
    source = resolve(asked.source)
    assert isinstance(source, Path), f"specdec pull {asked.source}"
    make(source, asked.output, asked.type)
    print(asked.output)


if __name__ == "__main__":
    main()
