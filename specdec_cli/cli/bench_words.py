"""How a benchmark is read and spoken of: the words and numbers that all its reports share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from specdec_cli.cli.console import harmless
from specdec_cli.core.options import SamplingOptions

Document = Mapping[str, Any]
Key = tuple[str, int | str, str]  # drafter, k, rule

NONE = "-"
MANY = 8  # rows: a long draft, and the target's own token
BUSY = 0.5  # of the cores: a load above it shows in the timings


def clean(text: object) -> str:
    """One line of harmless text: names come from files, and may hold anything."""
    words = " ".join(str(text).split())
    return harmless(words.encode("utf-8", "replace").decode("utf-8"))


def key(entry: Mapping[str, Any]) -> Key:
    return entry["drafter"], entry["k"], entry["accept"]


def candidates(document: Document) -> list[Key]:
    """In the order of the summary; an interrupted run may have rows without one."""
    entries = [*document["summary"]["candidates"], *document["results"]]
    return list(dict.fromkeys(map(key, entries)))


def categories(document: Document) -> list[str]:
    return list(dict.fromkeys(result["category"] for result in document["results"]))


def results_of(document: Document, candidate: Key) -> list[Mapping[str, Any]]:
    return [result for result in document["results"] if key(result) == candidate]


def label(document: Document, candidate: Key) -> str:
    """`model k=4`, or `auto`; with the rule only where rules are compared."""
    drafter, k, accept = candidate
    rules = {entry[2] for entry in candidates(document)}
    name = drafter if drafter == k == "auto" else f"{drafter} k={k}"
    return clean(name + (f" {accept}" if len(rules) > 1 else ""))


def drafter_words(document: Document, drafter: str) -> str:
    """What guesses: the draft model's own name where there is one."""
    for draft in document["conditions"]["drafts"]:
        if draft["drafter"] == drafter:
            return model_words(draft)
    if drafter == "suffix":
        return "repeats of the text so far"
    return clean(drafter)


def model_words(model: Mapping[str, Any]) -> str:
    """Its name, with the quantisation where that does not say it already."""
    name, quantisation = clean(model["name"]), clean(model["quantisation"] or "unknown")
    known = quantisation == "unknown" or quantisation.lower() in name.lower()
    return name if known else f"{name} {quantisation}"


def factor(value: float | None, times: str = "x") -> str:
    return NONE if value is None else f"{value:.2f}{times}"


def interval(bounds: Sequence[float] | None, dash: str = "-") -> str:
    return "" if bounds is None else f"{bounds[0]:.2f}{dash}{bounds[1]:.2f}"


def percent(share: float | None) -> str:
    return NONE if share is None else f"{share:.0%}"


def decimal(value: float | None, digits: int = 1) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return NONE
    return f"{milliseconds / 1e3:.2f} s" if milliseconds >= 1e3 else f"{milliseconds:.0f} ms"


def same_text(result: Mapping[str, Any]) -> str:
    """`yes`, `no (token 41)`, or nothing where the rule promises no text."""
    if result["identical"] is None:
        return NONE
    if result["identical"]:
        return "yes"
    found = result["first_difference"]
    return f"no (token {found['position']})" if found else "no"


def verdict(document: Document) -> str:
    """The one sentence to take home."""
    summary = document["summary"]
    best = None if summary["best"] is None else summary["candidates"][summary["best"]]
    if best is None or best["speedup_geomean"] is None:
        return _cost_words(document) or "No speed-up was measured"
    ratio, bounds = best["speedup_geomean"], best["speedup_ci"]
    how = f"drafting with {drafter_words(document, best['drafter'])} {_length(best['k'])}"
    if best["drafter"] == best["k"] == "auto":
        how = "letting specdec choose drafts and lengths"
    kinds = _kinds(document)
    synthetic = document["conditions"]["synthetic_acceptance"]
    if synthetic is not None:
        return (
            f"If {synthetic:.0%} of the guesses were accepted, {how} would make answers "
            f"{ratio:.2f} times as fast on this machine"
        )
    if bounds is not None and bounds[0] <= 1 <= bounds[1]:
        return (
            f"On this machine, {how} made no clear difference: {ratio:.2f} times the speed of "
            f"plain decoding ({kinds}, interval {bounds[0]:.2f} to {bounds[1]:.2f})"
        )
    if ratio <= 1:
        return (
            f"On this machine, plain decoding was faster: {how}, the best that was tried, "
            f"reached {ratio:.2f} of its speed ({kinds})"
        )
    once = "" if bounds else ", each measured once"
    return f"On this machine, {how} made answers {ratio:.2f} times as fast ({kinds}{once})"


def _cost_words(document: Document) -> str | None:
    if document["results"] or not document["costs"]:
        return None
    target = document["costs"]["target"]
    rows = max((int(count) for count in target if int(count) <= MANY), default=1)
    ratio = target[str(rows)] / target["1"]
    return f"On this machine, checking {rows} tokens at once takes {ratio:.2f} times as long as one"


def _length(k: int | str) -> str:
    return "at a length chosen while it runs" if k == "auto" else f"at k={k}"


def _kinds(document: Document) -> str:
    names = categories(document)
    if len(names) == 1:
        return f"{clean(names[0])} only"
    return f"geometric mean of {len(names)} kinds of work"


def speedup_words(document: Document) -> str:
    """What a chart of speed-ups shows; a computed one never passes for a measured one."""
    made_up = document["conditions"]["synthetic_acceptance"]
    if made_up is None:
        return "speed-up over plain"
    return f"synthetic speed-up over plain, if {made_up:.0%} were accepted"


def notes(document: Document) -> list[str]:
    """What a reader must know before believing a number, one sentence each."""
    conditions = document["conditions"]
    lines = []
    if (made_up := conditions["synthetic_acceptance"]) is not None:
        lines.append(
            f"Synthetic: nothing was generated. The speed-ups follow from measured costs and a "
            f"made-up acceptance of {made_up:.0%}."
        )
    if not document["complete"]:
        lines.append("Interrupted: this is what was finished until then.")
    for role, model in [("target", conditions["target"])] + [
        (f"draft {clean(draft['drafter'])}", draft) for draft in conditions["drafts"]
    ]:
        if model["origin"] is not None:
            lines.append(f"The {role} was {clean(model['origin'])}.")
    load, cores = conditions["load_average"], conditions["cores"]
    if load is not None and cores and load > BUSY * cores:
        lines.append(f"The machine was busy before the first run: load {load:.1f}, {cores} cores.")
    stopped = {
        f"{label(document, key(result))}, {clean(result['category'])}: {clean(result['decision'])}."
        for result in document["results"]
        if result["decision"].startswith("drafting stopped")
    }
    lines += sorted(stopped)
    for skipped in document["skipped"]:
        prompt, category = skipped["prompt"] + 1, clean(skipped["category"])
        lines.append(f"Prompt {prompt} ({category}) was left out: {clean(skipped['reason'])}.")
    return lines


def machine(document: Document) -> str:
    conditions = document["conditions"]
    parts = [clean(conditions["cpu"])]
    if conditions["gpu"]:
        parts.append(f"GPU: {clean(conditions['gpu'])}")
    if conditions["threads"] is not None:
        parts.append(f"{conditions['threads']} threads")
    return ", ".join(parts)


def sampling(document: Document) -> str:
    """`greedy`, or the temperature, and whatever else is not as usual."""
    settings = document["conditions"]["sampling"]
    usual = asdict(SamplingOptions())
    words = [
        f"{name} {value}"
        for name, value in settings.items()
        if name != "temp" and value and value != usual.get(name)
    ]
    temp = settings.get("temp")
    return clean(", ".join(["greedy" if temp == 0 else f"temp {temp}", *words]))
