"""Which GGUF file of a repository a quantisation name means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from specdec_cli.engine.gguf import SPLIT_NAME

DEFAULT_QUANT = "Q4_K_M"
QUANT = re.compile(
    r"(?<![a-z0-9])((?:ud-)?(?:i?q\d(?:_[a-z0-9]+)*|tq\d_\d|mxfp4(?:_[a-z]+)*|bf16|f16|f32))"
    r"(?![a-z0-9])",
    re.IGNORECASE,
)


def quant_of(file: str) -> str | None:
    """The quantisation that a file name ends with, such as Q4_K_M."""
    found = QUANT.findall(stem_of(file))
    return found[-1].upper() if found else None


def bits_of(quant: str) -> int | None:
    """Bits of most weights, by a quantisation's name; None where the name does not say."""
    if found := re.search(r"(?<![A-Z])(?:I?Q|B?F|TQ|(?:MX|NV)FP)(\d+)", quant.upper()):
        return int(found[1])
    return None


def models_among(files: Iterable[str]) -> list[str]:
    """The language models among a repository's files; the first part stands for a split one."""
    return sorted(file for file in files if file.endswith(".gguf") and is_model(file))


def matching(files: Iterable[str], quant: str | None) -> list[str]:
    """The files that `quant` names: best one. Without a quant also a repository's only model."""
    models = models_among(files)
    wanted = (quant or DEFAULT_QUANT).upper()
    named = [file for file in models if quant_of(file) == wanted]
    if not named and quant is not None:
        # A name that the pattern above does not know, taken literally.
        literal = re.compile(rf"(?<![A-Z0-9]){re.escape(wanted)}(?![A-Z0-9_])")
        named = [file for file in models if literal.search(stem_of(file).upper())]
    if not named and quant is None and len(models) == 1:
        return models
    return named


def stem_of(file: str) -> str:
    name = PurePosixPath(file).name
    split = SPLIT_NAME.match(name)
    return split["stem"] if split else name.removesuffix(".gguf")


def is_model(file: str) -> bool:
    """Neither a vision projector nor a later part of a split model."""
    name = PurePosixPath(file).name
    split = SPLIT_NAME.match(name)
    return not name.lower().startswith("mmproj") and (split is None or int(split["part"]) == 1)
