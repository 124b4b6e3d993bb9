"""What a request asks of sampling. Free of numpy, so that the command line starts at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from specdec_cli.errors import UsageError


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """What shapes the distribution. Defaults are llama.cpp's.

    Raises:
        UsageError: a value outside its range, named as the command line spells it.
    """

    temp: float = 0.8  # 0 is greedy: a point mass at the lowest id among the maxima
    top_k: int = 40  # 0 keeps every token
    top_p: float = 0.95  # 1 keeps every token
    min_p: float = 0.05  # 0 keeps every token
    repeat_penalty: float = 1.0  # 1 is off
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_last_n: int = 64  # how many tokens back penalties look; 0 is off, -1 is all of them
    logit_bias: tuple[tuple[int, float], ...] = ()  # (token id, added to its logit); -inf bans it

    def __post_init__(self) -> None:
        _require("--temp", self.temp, 0 <= self.temp < math.inf, "0 or more (0 is greedy)")
        _require("--top-k", self.top_k, self.top_k >= 0, "0 or more (0 keeps every token)")
        _require("--top-p", self.top_p, 0 < self.top_p <= 1, "above 0 and at most 1")
        _require("--min-p", self.min_p, 0 <= self.min_p <= 1, "between 0 and 1")
        _require(
            "--repeat-penalty", self.repeat_penalty, 0 < self.repeat_penalty < math.inf, "above 0"
        )
        for option, penalty in (
            ("--presence-penalty", self.presence_penalty),
            ("--frequency-penalty", self.frequency_penalty),
        ):
            _require(option, penalty, math.isfinite(penalty), "a finite number")
        _require(
            "--penalty-last-n", self.penalty_last_n, self.penalty_last_n >= -1, "-1 (all) or more"
        )
        for token, bias in self.logit_bias:
            _require("--logit-bias", f"{token}={bias}", token >= 0, "a token id of 0 or more")
            _require(
                "--logit-bias", f"{token}={bias}", bias < math.inf, "finite, or -inf to ban the id"
            )

    @property
    def greedy(self) -> bool:
        return self.temp == 0

    @property
    def penalises(self) -> bool:
        return self.penalty_last_n != 0 and (
            self.repeat_penalty != 1 or self.presence_penalty != 0 or self.frequency_penalty != 0
        )


def _require(option: str, value: object, holds: bool, allowed: str) -> None:
    if not holds:  # a NaN fails every comparison and ends here too
        raise UsageError(
            f"{option} cannot be {value}", why=f"it must be {allowed}", fix="see specdec run --help"
        )
