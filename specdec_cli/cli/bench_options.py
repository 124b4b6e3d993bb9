"""The options of `specdec bench`: several drafts, drafters, lengths and rules at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from specdec_cli.cli.options import (
    AUTO,
    MAX_DRAFT_TOKENS,
    DrafterKind,
    RuleName,
    TargetFlags,
    option,
)
from specdec_cli.errors import UsageError

NUMBER = r"[0-9]{1,3}"  # of digits: Python refuses to read 5,000 of them
RANGE = re.compile(rf"(?P<first>{NUMBER})(?:-(?P<last>{NUMBER})(?:\+(?P<step>{NUMBER}))?)?")


class Format(StrEnum):
    md = "md"
    csv = "csv"
    json = "json"
    jsonl = "jsonl"


@dataclass(frozen=True)
class SweepFlags(TargetFlags):
    """What is set against plain decoding: every drafter with every length and rule."""

    draft_model: Annotated[
        list[str] | None,
        option("-md", "--draft-model", metavar="REF", panel="Models", show_default=False,
               help="Draft; repeat it to compare drafts.  [default: the target's partner]"),
    ] = None  # fmt: skip
    drafter: Annotated[
        str,
        option("--drafter", metavar="KINDS", panel="Speculation",
               help="Drafters to compare: auto, model, self, suffix, none, as model,suffix."),
    ] = DrafterKind.auto  # fmt: skip
    draft_tokens: Annotated[
        str,
        option("-k", "--draft-tokens", metavar="LIST", panel="Speculation",
               help="Draft lengths to compare: auto, 2,4,7 or 2-8+2, or auto,4."),
    ] = AUTO  # fmt: skip
    accept: Annotated[
        str,
        option("--accept", metavar="RULES", panel="Speculation",
               help="Verification rules to compare, as coupled,block."),
    ] = RuleName.coupled  # fmt: skip

    @property
    def lengths(self) -> list[int | None]:
        """None stands for as many as pay.

        Raises:
            UsageError: no list of lengths, or one that names none.
        """
        found: list[int | None] = []
        for part in self.draft_tokens.split(","):
            found += [None] if part.strip() == AUTO else _range(part.strip())
        return list(dict.fromkeys(found))

    @property
    def drafters(self) -> list[DrafterKind]:
        return [DrafterKind(name) for name in _names("--drafter", self.drafter, DrafterKind)]

    @property
    def rules(self) -> list[RuleName]:
        return [RuleName(name) for name in _names("--accept", self.accept, RuleName)]


@dataclass(frozen=True)
class WorkFlags:
    """What is answered, how often, and how far."""

    quick: Annotated[
        bool,
        option("--quick", panel="Work", env=False,
               help="One prompt of each kind, 48 tokens, twice: a few minutes."),
    ] = False  # fmt: skip
    prompts: Annotated[
        Path | None,
        option("--prompts", metavar="FILE", panel="Work", env=False, show_default=False,
               help='JSON lines {"category": ..., "prompt": ...}.  [default: 50 of our own]'),
    ] = None  # fmt: skip
    category: Annotated[
        list[str] | None,
        option("--category", metavar="NAME", panel="Work", env=False,
               help="Only this kind of work. May be repeated, or a list."),
    ] = None  # fmt: skip
    sizes: Annotated[
        str | None,
        option("-p", "--n-prompt", metavar="LIST", panel="Work", env=False,
               help="Prompts of exactly so many tokens instead, as 128,512."),
    ] = None  # fmt: skip
    max_tokens: Annotated[
        int | None,
        option("-n", "--max-tokens", metavar="N", min=1, max=65536, panel="Work",
               show_default=False, help="Tokens an answer.  [default: 128, with --quick 48]"),
    ] = None  # fmt: skip
    repetitions: Annotated[
        int | None,
        option("-r", "--repetitions", metavar="N", min=1, max=1000, panel="Work",
               show_default=False,
               help="Times that each answer is measured.  [default: 3, with --quick 2]"),
    ] = None  # fmt: skip
    ignore_eos: Annotated[
        bool, option("--ignore-eos", help="Never choose an end token.", panel="Work")
    ] = False
    costs: Annotated[
        bool,
        option("--costs", panel="Work", env=False,
               help="Only what passes of 1 to 32 rows cost, and the acceptance each k needs."),
    ] = False  # fmt: skip
    depth: Annotated[
        str | None,
        option("--depth", metavar="LIST", panel="Work", env=False, show_default=False,
               help="With --costs: tokens in the context, as 256,2048.  [default: 256]"),
    ] = None  # fmt: skip
    synthetic_acceptance: Annotated[
        float | None,
        option("--synthetic-acceptance", metavar="P", min=0.0, max=1.0, panel="Work", env=False,
               help="Generate nothing: compute speeds from costs and this made-up acceptance."),
    ] = None  # fmt: skip

    @property
    def tokens(self) -> int:
        return self.max_tokens or (48 if self.quick else 128)

    @property
    def times(self) -> int:
        return self.repetitions or (2 if self.quick else 3)

    @property
    def depths(self) -> str:
        return "256" if self.depth is None else self.depth

    @property
    def categories(self) -> list[str]:
        named = [name.strip() for entry in self.category or () for name in entry.split(",")]
        return [name for name in named if name]


@dataclass(frozen=True)
class ReportFlags:
    """Where the figures go, and which of them fail the command."""

    output: Annotated[
        Format, option("-o", "--output", panel="Report", env=False, help="Form of the output.")
    ] = Format.md
    save: Annotated[
        Path | None,
        option("--save", metavar="FILE", panel="Report", env=False,
               help="Keep everything as JSON, to compare with later."),
    ] = None  # fmt: skip
    html: Annotated[
        Path | None,
        option("--html", metavar="FILE", panel="Report", env=False,
               help="One page with charts, to share."),
    ] = None  # fmt: skip
    plot: Annotated[
        Path | None,
        option("--plot", metavar="FILE", panel="Report", env=False,
               help="Charts as .svg or .png (needs specdec-cli[plot])."),
    ] = None  # fmt: skip
    fail_under: Annotated[
        float | None,
        option("--fail-under", metavar="X", min=0.0, panel="Report", env=False,
               help="Exit 5 unless the best candidate is X times as fast as plain."),
    ] = None  # fmt: skip
    against: Annotated[
        Path | None,
        option("--against", metavar="FILE", panel="Report", env=False,
               help="Exit 5 if a speed-up fell below that of a saved benchmark."),
    ] = None  # fmt: skip
    tolerance: Annotated[
        str,
        option("--tolerance", metavar="PERCENT", panel="Report", env=False,
               help="With --against: how far one may fall."),
    ] = "5%"  # fmt: skip


def numbers(name: str, text: str) -> list[int]:
    """A list such as 128,512.

    Raises:
        UsageError: something else than whole numbers from 1.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch("[0-9]{1,9}", part) and int(part) > 0 for part in parts):
        raise UsageError(
            f"{name} cannot be {text!r}",
            why="it must be whole numbers from 1, with commas between them",
            fix=f"for example {name} 128,512",
        )
    return [int(part) for part in parts]


def percentage(text: str) -> float:
    """`5%` or `0.05` as a share."""
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if rest or not 0 <= value < 1:
        raise UsageError(
            f"--tolerance cannot be {text!r}",
            why="it must be a share from 0 to below 100 %",
            fix="for example --tolerance 5%",
        )
    return value


def _range(part: str) -> range:
    found = RANGE.fullmatch(part)
    if found:
        first = int(found["first"])
        last, step = int(found["last"] or first), int(found["step"] or 1)
        if step and first <= last <= MAX_DRAFT_TOKENS:
            return range(first, last + 1, step)
    raise UsageError(
        f"--draft-tokens cannot be {part!r}",
        why=f"it names no length from 0 to {MAX_DRAFT_TOKENS}",
        fix="for example -k auto, -k 2,4,7 or -k 2-8+2",
    )


def _names(name: str, text: str, kinds: type[StrEnum]) -> list[str]:
    allowed = [kind.value for kind in kinds]
    named = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [part for part in named if part not in allowed]
    if unknown or not named:
        raise UsageError(
            f"{name} cannot be {unknown[0] if unknown else text!r}",
            why=f"it must be of {', '.join(allowed)}, with commas between several",
            fix=f"for example {name} {allowed[1]}",
        )
    return named
