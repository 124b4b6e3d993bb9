"""Two benchmarks against each other: what became faster or slower, and what else differs.

Speed-ups are compared, not tokens per second: a ratio taken within one run stays what it is on a
busy day or another machine's clock; a raw speed does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from specdec_cli.errors import UsageError

Interval = tuple[float, float]
Key = tuple[str, int | str, str]  # drafter, k, rule


@dataclass(frozen=True, slots=True)
class Measured:
    """A speed-up with its interval, where there is one."""

    speedup: float
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One candidate then and now: in one category, or over all shared ones (category None)."""

    candidate: Key
    category: str | None
    before: Measured
    after: Measured
    plain_tps: tuple[float, float] | None = None

    @property
    def ratio(self) -> float:
        return self.after.speedup / self.before.speedup

    @property
    def overlap(self) -> bool | None:
        """Do the intervals share a point? None where one of them is missing."""
        if self.before.interval is None or self.after.interval is None:
            return None
        (low, high), (new_low, new_high) = self.before.interval, self.after.interval
        return low <= new_high and new_low <= high


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that two documents have in common, and what only one of them has."""

    candidates: tuple[Change, ...]
    rows: tuple[Change, ...]
    conditions: tuple[str, ...]  # what differs, in words
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> Comparison:
    """Match rows by drafter, k, rule and category.

    A candidate's mean is over the categories that both have; it has an interval where these are
    all categories of both.

    Raises:
        UsageError: they share no row with a speed-up; a check would pass for want of anything.
    """
    old, new = _rows(before), _rows(after)
    shared = [key for key in new if key in old]
    rows = tuple(
        Change(
            key[0],
            key[1],
            Measured(old[key]["speedup"], _interval(old[key])),
            Measured(new[key]["speedup"], _interval(new[key])),
            _both(old[key]["plain_tps"], new[key]["plain_tps"]),
        )
        for key in shared
    )
    if not rows:
        raise UsageError(
            "there is nothing to compare",
            why="no candidate has a speed-up in the same category of both benchmarks",
            fix="run both with the same drafters, -k, --accept and prompts",
        )
    candidates = []
    for key in dict.fromkeys(row.candidate for row in rows):
        own = [row for row in rows if row.candidate == key]
        whole = len(own) == _count(old, key) == _count(new, key)
        candidates.append(
            Change(
                key,
                None,
                _mean([row.before for row in own], _overall(before, key) if whole else None),
                _mean([row.after for row in own], _overall(after, key) if whole else None),
            )
        )
    return Comparison(
        tuple(candidates),
        rows,
        tuple(_different(before["conditions"], after["conditions"])),
        tuple(_place(*key) for key in old if key not in new),
        tuple(_place(*key) for key in new if key not in old),
    )


def regressions(comparison: Comparison, tolerance: float) -> list[str]:
    """What fell by more than `tolerance` (0.05 = 5 %), one line each; empty: nothing did.

    A candidate counts by its mean over categories. A category alone counts only where the two
    intervals share nothing, as one category is a handful of prompts.
    """
    fallen = [change for change in comparison.candidates if change.ratio < 1 - tolerance]
    fallen += [
        change
        for change in comparison.rows
        if change.ratio < 1 - tolerance and change.overlap is False
    ]
    return [
        f"{_place(change.candidate, change.category)}: {change.before.speedup:.2f}x before, "
        f"{change.after.speedup:.2f}x now ({1 - change.ratio:.1%} less)"
        for change in fallen
    ]


def candidate_words(candidate: Key) -> str:
    drafter, k, accept = candidate
    return f"{drafter} k={k} ({accept})"


def _place(candidate: Key, category: str | None) -> str:
    return f"{candidate_words(candidate)}, {category or 'all categories'}"


def _rows(document: Mapping[str, Any]) -> dict[tuple[Key, str], Mapping[str, Any]]:
    return {
        (_key(result), result["category"]): result
        for result in document["results"]
        if result["speedup"] is not None
    }


def _count(rows: Mapping[tuple[Key, str], Any], candidate: Key) -> int:
    return sum(key[0] == candidate for key in rows)


def _key(entry: Mapping[str, Any]) -> Key:
    return entry["drafter"], entry["k"], entry["accept"]


def _interval(entry: Mapping[str, Any]) -> Interval | None:
    found = entry["speedup_ci"]
    return (found[0], found[1]) if found else None


def _both(before: float | None, after: float | None) -> tuple[float, float] | None:
    return None if before is None or after is None else (before, after)


def _overall(document: Mapping[str, Any], candidate: Key) -> Interval | None:
    entries = document["summary"]["candidates"]
    return next((_interval(entry) for entry in entries if _key(entry) == candidate), None)


def _mean(parts: list[Measured], interval: Interval | None) -> Measured:
    return Measured(geometric_mean(part.speedup for part in parts), interval)


NOT_CONDITIONS = ("date", "load_average", "target", "drafts", "versions", "sampling")
WORDS = {
    "cpu": "CPU",
    "gpu": "GPU",
    "os": "operating system",
    "memory_bytes": "bytes of memory",
    "max_tokens": "tokens an answer",
    "ctx_size": "context size",
    "exact": "exact mode",
    "prompts": "number of prompts",
    "synthetic_acceptance": "made-up acceptance",
}


def _different(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    yield from _models("target", before["target"], after["target"])
    drafts = [{draft["drafter"]: draft for draft in entry["drafts"]} for entry in (before, after)]
    for name in sorted(drafts[0].keys() & drafts[1].keys()):
        yield from _models(f"draft {name}", drafts[0][name], drafts[1][name])
    flat = [
        {key: value for key, value in entry.items() if key not in NOT_CONDITIONS}
        | {f"sampling {key}": value for key, value in entry["sampling"].items()}
        | {f"{key} version": value for key, value in entry["versions"].items()}
        for entry in (before, after)
    ]
    for key in dict.fromkeys([*flat[0], *flat[1]]):
        old, new = flat[0].get(key), flat[1].get(key)
        if old != new:
            yield f"{WORDS.get(key, key.replace('_', ' '))}: {_word(old)} before, {_word(new)} now"


def _models(role: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    if before["sha256"] == after["sha256"] and before["sha256"] is not None:
        return
    for key in ("name", "file", "quantisation"):
        if before[key] != after[key]:
            yield f"{role}: {_word(before[key])} before, {_word(after[key])} now"
            return
    old, new = (_word(model["sha256"])[:12] for model in (before, after))
    yield f"{role}: another file of that name, sha256 {old} before, {new} now"


def _word(value: Any) -> str:
    return "none" if value is None else str(value)
