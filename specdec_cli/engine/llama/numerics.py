"""Which kernels llama.cpp may use, so that a row's bits do not depend on its neighbours."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

TILED_SWITCH = "GGML_CPU_TILED_MM"  # read by llama.cpp once per process, at the first product


@dataclass(frozen=True, slots=True)
class Numerics:
    """Kernel settings. The default leaves llama.cpp its fastest choice.

    Attributes:
        pairs: evaluate at least two rows in every call and ask for at least two rows of logits:
            one row alone runs through other kernels, and llama.cpp cuts the last layer to the
            rows that are asked for.
        flash_attention: auto, on or off; its tiled path starts at 64 rows.
        repacked: weights may be rearranged in memory for kernels that work on several rows.
        tiled: tiled matrix products may be used.
    """

    pairs: bool = False
    flash_attention: str = "auto"
    repacked: bool = True
    tiled: bool = True

    def enter(self) -> None:
        """Apply what can only be chosen for the whole process, before its first evaluation."""
        if not self.tiled:
            os.environ[TILED_SWITCH] = "0"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def words(self) -> str:
        """What differs from the fastest choice."""
        off = [
            name
            for name, is_off in (
                ("flash attention", self.flash_attention == "off"),
                ("tiled products", not self.tiled),
                ("repacked weights", not self.repacked),
            )
            if is_off
        ]
        return f"without {', '.join(off)}" if off else "with all kernels"


FASTEST = Numerics()
# llama.cpp's flash attention for CPUs is made for long prompts. On the few rows of a guess or of
# what a draft has missed it goes through the whole context once a row: 54 ms a guess of a 0.5B
# draft 3,000 tokens in, 23 ms without it (8 rows: 326 and 56 ms), and 21 and 15 ms 256 tokens in.
FEW_ROWS_ON_CPU = Numerics(flash_attention="off")
CANDIDATES = (  # from the cheapest to the dearest; a probe takes the first that is invariant
    Numerics(pairs=True),
    Numerics(pairs=True, flash_attention="off"),
    Numerics(pairs=True, flash_attention="off", tiled=False),
    Numerics(pairs=True, flash_attention="off", tiled=False, repacked=False),
)
