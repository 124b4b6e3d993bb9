"""The options that commands share, each declared once: name, environment variable, help, default.

Imports nothing heavy: `specdec --help` reads this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from specdec_cli.cli.settings import load_settings
from specdec_cli.errors import UsageError

MAX_DRAFT_TOKENS = 64
AUTO = "auto"
AUTO_DRAFT_TOKENS = 31  # rows that `-k auto` keeps room for, the target's own token aside


class Colour(StrEnum):
    auto = "auto"
    always = "always"
    never = "never"


class DrafterKind(StrEnum):
    auto = "auto"
    model = "model"
    self = "self"
    suffix = "suffix"
    none = "none"


class RuleName(StrEnum):
    coupled = "coupled"
    rejection = "rejection"
    block = "block"


class OnOffAuto(StrEnum):
    on = "on"
    off = "off"
    auto = "auto"


def option(*names: str, panel: str | None = None, env: bool = True, **more: Any) -> Any:
    """A typer option with the environment variable that its long name gives."""
    long = next(name for name in names if name.startswith("--")).split("/")[0]
    variable = "SPECDEC_" + long.removeprefix("--").upper().replace("-", "_")
    return typer.Option(
        *names, rich_help_panel=panel, envvar=variable if env else None, show_envvar=False, **more
    )


def parse_size(text: str) -> int:
    """`8192`, `8k` or `1m`, in units of 1024."""
    text = str(text).strip().lower()
    factor = {"k": 1024, "m": 1024**2}.get(text[-1:], 1)
    digits = text[:-1] if factor > 1 else text
    if not digits.isdigit() or int(digits) == 0:
        raise typer.BadParameter(f"{text!r} is not a size such as 4096 or 8k")
    return int(digits) * factor


def parse_length(text: str) -> int | None:
    """A number of guesses; None for `auto`."""
    text = text.strip().lower()
    if text == AUTO:
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_DRAFT_TOKENS):
        raise UsageError(
            f"--draft-tokens cannot be {text!r}",
            why=f"it must be auto or a number from 0 to {MAX_DRAFT_TOKENS}",
            fix="leave it out: auto is the default",
        )
    return int(text)


def refuse_no_length(text: str | None) -> str | None:
    """Callback of an option: what is wrong is said together with where it was written."""
    try:
        _ = text is None or parse_length(text)
    except UsageError as error:
        raise typer.BadParameter(error.why) from None
    return text


def parse_layers(option: str, text: str) -> int:
    """A number of layers; `all` and `auto` leave every layer to the GPU, if there is one."""
    if text in ("all", "auto"):
        return -1
    if not text.isdigit():
        raise UsageError(
            f"{option} cannot be {text!r}",
            why="it must be a number, all or auto",
            fix=f"for example {option} 20",
        )
    return int(text)


@dataclass(frozen=True)
class CommonFlags:
    """What every command takes, also after its name."""

    profile: Annotated[
        str | None,
        option(
            "--profile", help="Use a profile of the configuration.", is_eager=True,
            callback=load_settings,
        ),
    ] = None  # fmt: skip
    quiet: Annotated[bool, option("-q", "--quiet", help="Only answers and errors.")] = False
    verbose: Annotated[bool, option("-v", "--verbose", help="Show llama.cpp's log.")] = False
    json: Annotated[bool, option("--json", help="One JSON document on stdout.")] = False
    offline: Annotated[bool, option("--offline", help="Never use the network.")] = False
    color: Annotated[Colour, option("--color", help="When to use colours.")] = Colour.auto


@dataclass(frozen=True)
class TargetFlags:
    """Which target, and how models are run."""

    model: Annotated[
        str,
        option(
            "-m", "--model", metavar="REF", panel="Models",
            help="Target: a path, a name of `specdec list`, or hf:user/repo[:QUANT].",
        ),
    ] = "qwen2.5-coder:1.5b"  # fmt: skip
    cross_vocab: Annotated[
        bool,
        option("--cross-vocab", panel="Models",
               help="Take a draft with another vocabulary: it guesses what both share."),
    ] = False  # fmt: skip
    exact: Annotated[
        bool,
        option("--exact", panel="Speculation",
               help="The same bytes whatever is drafted: kernels chosen by a probe, some slower."),
    ] = False  # fmt: skip
    exact_best_effort: Annotated[
        bool,
        option("--exact-best-effort", panel="Speculation",
               help="As --exact, but go on with a notice where no kernels pass the probe."),
    ] = False  # fmt: skip
    ctx_size: Annotated[
        int | None,
        option(
            "-c", "--ctx-size", metavar="N", parser=parse_size, panel="Running", show_default=False,
            help="Context in tokens, as 4096 or 8k.  [default: the model's own, at most 8192]",
        ),
    ] = None  # fmt: skip
    batch_size: Annotated[
        int,
        option("-b", "--batch-size", metavar="N", min=1, max=8192, panel="Running",
               help="Prompt tokens evaluated in one call."),
    ] = 512  # fmt: skip
    threads: Annotated[
        int | None,
        option("-t", "--threads", metavar="N", min=1, max=1024, panel="Running",
               help="CPU threads.  [default: physical cores]", show_default=False),
    ] = None  # fmt: skip
    gpu_layers: Annotated[
        str,
        option("-ngl", "--gpu-layers", metavar="N|all|auto", panel="Running",
               help="Layers of the target on the GPU."),
    ] = "auto"  # fmt: skip
    gpu_layers_draft: Annotated[
        str | None,
        option("-ngld", "--gpu-layers-draft", metavar="N|all|auto", panel="Running",
               help="Layers of the draft on the GPU.  [default: as -ngl]", show_default=False),
    ] = None  # fmt: skip
    flash_attn: Annotated[
        OnOffAuto, option("-fa", "--flash-attn", help="Flash attention.", panel="Running")
    ] = OnOffAuto.auto

    @property
    def wants_exact(self) -> bool:
        return self.exact or self.exact_best_effort


@dataclass(frozen=True)
class LoadFlags(TargetFlags):
    """Which draft, and how guesses are made and checked."""

    draft_model: Annotated[
        str | None,
        option(
            "-md", "--draft-model", metavar="REF", panel="Models",
            help="Draft, a smaller model of the same vocabulary.  [default: the target's partner]",
            show_default=False,
        ),
    ] = None  # fmt: skip
    no_draft: Annotated[
        bool, option("--no-draft", help="Plain decoding: load no draft.", panel="Models")
    ] = False
    drafter: Annotated[
        DrafterKind,
        option("--drafter", metavar="KIND", panel="Speculation",
               help="Where guesses come from: model (a draft), self (a low-bit copy of the "
                    "target), suffix (the text's own repetitions), none, or auto (all there are)."),
    ] = DrafterKind.auto  # fmt: skip
    draft_tokens: Annotated[
        str,
        option(
            "-k", "--draft-tokens", metavar="N|auto", panel="Speculation",
            callback=refuse_no_length,
            help="Guesses a round: as many as pay (auto), or always N, 0 to 64; 0 is plain.",
        ),
    ] = AUTO  # fmt: skip
    draft_tokens_alias: Annotated[
        str | None,
        option(
            "--num-draft-tokens", "--spec-draft-n-max", "--draft-max", hidden=True, env=False,
            callback=refuse_no_length,
        ),
    ] = None  # fmt: skip
    accept: Annotated[
        RuleName,
        option("--accept", metavar="RULE", panel="Speculation",
               help="Verification rule: coupled (one seed, one text), rejection, or block "
                    "(both keep the distribution)."),
    ] = RuleName.coupled  # fmt: skip

    @property
    def wants_draft(self) -> bool:
        """May a model guess, and not the text alone?"""
        return not self.plain and self.drafter is not DrafterKind.suffix

    @property
    def guesses(self) -> int | None:
        """The draft length under whichever of its names it was given; None for as many as pay.

        Raises:
            UsageError: neither a length nor auto.
        """
        text = self.draft_tokens if self.draft_tokens_alias is None else self.draft_tokens_alias
        return parse_length(text)

    @property
    def length(self) -> str:
        """The draft length as it is written."""
        return AUTO if self.guesses is None else str(self.guesses)

    @property
    def most_guesses(self) -> int:
        """How many a round may have."""
        return AUTO_DRAFT_TOKENS if self.guesses is None else self.guesses

    @property
    def plain(self) -> str:
        """Why plain decoding was asked for; empty where it was not."""
        if self.no_draft:
            return "--no-draft"
        if self.drafter is DrafterKind.none:
            return "--drafter none"
        return "-k 0" if self.guesses == 0 else ""
