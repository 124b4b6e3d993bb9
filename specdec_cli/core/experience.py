"""What a target and its drafts have taught so far: costs, and how often guesses stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from specdec_cli.core.acceptance import START, Acceptance, Rate
from specdec_cli.core.pass_seconds import PassSeconds


class Kind(StrEnum):
    """What a source is, which is all that is known of it at first."""

    model = "model"
    self = "self"
    suffix = "suffix"


# What is believed before anything was seen: of a guess by its confidence, and of one not drawn
# yet. Rounded from what the Qwen2.5-Coder pair and a Q4_0 copy did on thirty-two answers, eight of
# them to prompts that nothing else was chosen by. A model's confidence is nearly its acceptance, a
# copy of the target is wrong where its two best tokens are close and hardly ever elsewhere, and a
# repeated passage goes on the surer the longer it is; of those a little less is believed than was
# seen, since watching them costs nothing.
STANDS = {
    Kind.model: (0.2, 0.3, 0.41, 0.47, 0.6, 0.73, 0.88, 0.94, 0.97, 0.99),
    Kind.self: (0.3, 0.4, 0.67, 0.81, 0.95, 0.99, 0.995, 0.995, 0.995, 0.998),
    Kind.suffix: (0.1, 0.2, 0.3, 0.4, 0.5, 0.72, 0.86, 0.93, 0.97, 0.98),
}
FIRST = {Kind.model: 0.75, Kind.self: 0.93, Kind.suffix: 0.5}


@dataclass(slots=True)
class Experience:
    """Learned while running, by the names of sources; kept between runs.

    Attributes:
        verify: seconds of the target's passes; None until they were measured.
        drafts: seconds of each draft's passes.
        acceptance: of each source, by `(source, kind of sampling)`.
    """

    verify: PassSeconds | None = None
    drafts: dict[str, PassSeconds] = field(default_factory=dict)
    acceptance: dict[tuple[str, str], Acceptance] = field(default_factory=dict)

    def of(self, source: str, sampling: str, kind: Kind) -> Acceptance:
        """What is known of a source, or believed of any of its kind."""
        if (source, sampling) not in self.acceptance:
            known = Acceptance.believing(STANDS[kind], FIRST[kind])
            self.acceptance[source, sampling] = known
        return self.acceptance[source, sampling]

    def next_answer(self) -> None:
        """Another text begins: what is believed at its start moves towards what was seen."""
        for known in self.acceptance.values():
            for rate in (*known.stands, *known.follows):
                rate.next_text()

    def forget_answers(self) -> None:
        """Keep what passes cost; believe of guesses what is believed of any."""
        self.acceptance.clear()

    def as_dict(self) -> dict[str, Any]:
        return {
            "verify": _points(self.verify),
            "drafts": {name: _points(seconds) for name, seconds in self.drafts.items()},
            "acceptance": [
                {
                    "source": source,
                    "sampling": sampling,
                    "stands": [rate.afterwards for rate in known.stands],
                    "follows": [rate.afterwards for rate in known.follows],
                    "savings": known.savings,
                    "patience": known.patience,
                }
                for (source, sampling), known in self.acceptance.items()
            ],
        }

    @staticmethod
    def from_dict(known: Mapping[str, Any]) -> Experience:
        """Raises:
        ValueError, KeyError, TypeError, AttributeError: not what `as_dict` wrote.
        """
        verify = known["verify"]
        return Experience(
            None if verify is None else _seconds(verify),
            {str(name): _seconds(points) for name, points in known["drafts"].items()},
            {
                (str(entry["source"]), str(entry["sampling"])): Acceptance(
                    _rates(entry["stands"], START),
                    _rates(entry["follows"], START + 1),
                    _amount(entry["savings"]),
                    _amount(entry["patience"]),
                )
                for entry in known["acceptance"]
            },
        )


def _points(seconds: PassSeconds | None) -> dict[str, float] | None:
    """As measured at the last pace: that of the machine as it is."""
    if seconds is None:
        return None
    return {str(rows): value * seconds.pace for rows, value in sorted(seconds.points.items())}


def _seconds(points: Mapping[str, float]) -> PassSeconds:
    found = {int(rows): float(value) for rows, value in points.items()}
    if 1 not in found or not all(rows > 0 and 0 < value < 1e4 for rows, value in found.items()):
        raise ValueError("not a cost curve")
    return PassSeconds(found)


def _rates(values: list[float], count: int) -> list[Rate]:
    if len(values) != count or not all(0 <= value <= 1 for value in values):
        raise ValueError("not rates of acceptance")
    return [Rate(float(value)) for value in values]


def _amount(value: float) -> float:
    if not 0 <= value < 1e6:
        raise ValueError("neither time nor patience")
    return float(value)
