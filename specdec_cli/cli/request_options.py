"""The options of one request: sampling, length, what goes before the prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from specdec_cli.cli.options import option
from specdec_cli.core.options import SamplingOptions
from specdec_cli.errors import UsageError

SAMPLING = SamplingOptions()

Temperature = Annotated[
    float,
    option("--temp", "--temperature", metavar="T", panel="Sampling",
           help="Temperature; 0 always takes the most likely token."),
]  # fmt: skip
Seed = Annotated[
    int,
    option("-s", "--seed", metavar="N", panel="Sampling",
           help="Same seed, same choices; -1 draws one and reports it."),
]  # fmt: skip


@dataclass(frozen=True)
class SamplingFlags:
    """What shapes the distribution of the next token."""

    temp: Temperature = SAMPLING.temp
    greedy: Annotated[bool, option("--greedy", help="The same as --temp 0.", panel="Sampling")] = (
        False
    )
    top_k: Annotated[
        int, option("--top-k", metavar="N", panel="Sampling", help="Keep the N likeliest; 0 all.")
    ] = SAMPLING.top_k
    top_p: Annotated[
        float,
        option("--top-p", metavar="P", panel="Sampling",
               help="Keep the likeliest that make up P together; 1 all."),
    ] = SAMPLING.top_p  # fmt: skip
    min_p: Annotated[
        float,
        option("--min-p", metavar="P", panel="Sampling",
               help="Keep what is at least P times as likely as the likeliest; 0 all."),
    ] = SAMPLING.min_p  # fmt: skip
    repeat_penalty: Annotated[
        float, option("--repeat-penalty", metavar="X", panel="Sampling", help="1 is off.")
    ] = SAMPLING.repeat_penalty
    presence_penalty: Annotated[
        float, option("--presence-penalty", metavar="X", panel="Sampling", help="0 is off.")
    ] = SAMPLING.presence_penalty
    frequency_penalty: Annotated[
        float, option("--frequency-penalty", metavar="X", panel="Sampling", help="0 is off.")
    ] = SAMPLING.frequency_penalty
    penalty_last_n: Annotated[
        int,
        option("--penalty-last-n", metavar="N", panel="Sampling",
               help="Tokens back that penalties look; -1 all, 0 off."),
    ] = SAMPLING.penalty_last_n  # fmt: skip
    logit_bias: Annotated[
        list[str] | None,
        option("--logit-bias", metavar="ID=VALUE", panel="Sampling",
               help="Add to one token's logit; -inf bans it. May be repeated."),
    ] = None  # fmt: skip
    seed: Seed = -1

    def options(self) -> SamplingOptions:
        """Raises:
        UsageError: a value outside its range.
        """
        return SamplingOptions(
            temp=0.0 if self.greedy else self.temp,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repeat_penalty=self.repeat_penalty,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            penalty_last_n=self.penalty_last_n,
            logit_bias=tuple(_parse_bias(text) for text in self.logit_bias or ()),
        )

    def chosen_seed(self) -> int:
        """The seed, drawn where none was given."""
        if self.seed == -1:
            from specdec_cli.app.generate import random_seed

            return random_seed()
        if not 0 <= self.seed < 2**64:
            raise UsageError(
                f"--seed cannot be {self.seed}",
                why="it must be -1 (random) or fit in 64 bits",
                fix="choose a number from 0 to 18446744073709551615",
            )
        return self.seed


@dataclass(frozen=True)
class MeasuredSamplingFlags(SamplingFlags):
    """The same for commands that measure: greedy and with a fixed seed unless told otherwise."""

    temp: Temperature = 0.0
    seed: Seed = 0


@dataclass(frozen=True)
class EndFlags:
    """Where an answer ends."""

    max_tokens: Annotated[
        int,
        option("-n", "--max-tokens", metavar="N", min=-1, panel="Length", show_default=False,
               help="At most N tokens.  [default: to the end of the answer or of the context]"),
    ] = -1  # fmt: skip
    stop: Annotated[
        list[str] | None,
        option("--stop", metavar="TEXT", panel="Length", env=False,
               help="End before this text. May be repeated."),
    ] = None  # fmt: skip

    @property
    def limit(self) -> int | None:
        return None if self.max_tokens < 0 else self.max_tokens

    @property
    def stops(self) -> tuple[str, ...]:
        return tuple(stop for stop in self.stop or () if stop)


@dataclass(frozen=True)
class LengthFlags(EndFlags):
    """The same for one answer, which may also go on past its end."""

    ignore_eos: Annotated[
        bool, option("--ignore-eos", help="Never choose an end token.", panel="Length")
    ] = False


@dataclass(frozen=True)
class SystemFlags:
    """What goes before all else."""

    system: Annotated[
        str | None,
        option("-sys", "--system", metavar="TEXT", help="System text.", panel="Prompt"),
    ] = None


@dataclass(frozen=True)
class PromptFlags(SystemFlags):
    """The same for one prompt, which may also go without a template."""

    raw: Annotated[
        bool, option("--raw", help="The prompt as it is: no chat template.", panel="Prompt")
    ] = False


def _parse_bias(text: str) -> tuple[int, float]:
    token, _, value = text.partition("=")
    try:
        return int(token), float(value)
    except ValueError:
        raise UsageError(
            f"--logit-bias cannot be {text!r}",
            why="it must be ID=VALUE, a token id and a number",
            fix="for example --logit-bias 151643=-2.5",
        ) from None
