"""Small worlds on a clock of their own: a text that is known, drafts that are right as often as
they are told to be, and passes that take what a curve says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from toy import GREEDY

from specdec_cli.core.cost_curve import CostCurve
from specdec_cli.core.distribution import Row
from specdec_cli.core.experience import Experience, Kind
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.core.rounds import Round
from specdec_cli.core.verification import RULES
from specdec_cli.engine.adaptive import Adaptive
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafters import ModelDrafter, SuffixDrafter
from specdec_cli.engine.drafting import Drafting, FixedLength, NoDrafting
from specdec_cli.engine.first_use import FirstUse
from specdec_cli.engine.language_model import LanguageModel, Logits
from specdec_cli.engine.sources import Source

VOCAB = 97
ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64, 128)
MOST = 31  # guesses in a round

Curve = Callable[[int], float]


def curve(one: float, **times: float) -> CostCurve:
    """Seconds by rows, as multiples of what one row takes: `curve(0.1, r2=1.1, r4=1.4)`."""
    return CostCurve({1: one, **{int(name[1:]): one * ratio for name, ratio in times.items()}})


# Measured for a 1.5B target on two cores, and what a 0.5B draft takes there.
BF16 = curve(0.099, r2=1.1, r4=1.4, r5=1.45, r8=1.7, r16=2.5, r32=4.2, r128=14)
Q8_0 = curve(0.063, r2=1.6, r4=2.0, r5=2.9, r8=3.1, r16=5.1, r32=8, r128=30)
Q4_K_M = curve(0.032, r2=1.9, r4=3.2, r5=4.1, r8=6.5, r16=8.6, r32=12, r128=45)
SMALL = curve(0.012, r2=1.3, r4=1.9, r8=3.2, r16=4.2, r32=6, r128=18)
LARGE = curve(0.034, r2=1.5, r4=2.4, r8=4.5, r16=7, r32=11, r128=38)  # a low-bit copy
AS_DEAR = curve(0.099, r2=1.1, r4=1.4, r8=1.7, r16=2.5, r32=4.2, r128=14)


@dataclass
class Clock:
    """Time that passes only where a model evaluates."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Timed:
    """Another model with a memo; a pass takes time by its new rows.

    Attributes:
        slowed: how many times longer now than the curve says.
        lender: another whose memo it takes over, for nothing.
        passes: new rows of every pass.
    """

    model: LanguageModel
    seconds: Curve
    clock: Clock
    slowed: Callable[[], float] = lambda: 1.0
    lender: Timed | None = None
    passes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.vocab_size = self.model.vocab_size
        self.context_size = self.model.context_size
        self.can_roll_back = self.model.can_roll_back
        self._memo: list[int] = []

    def logits(self, tokens: Sequence[int], *, last: int) -> Logits:
        new = len(tokens) - min(self.cached(tokens), len(tokens) - last)
        self.clock.now += self.seconds(new) * self.slowed()
        self.passes.append(new)
        self._memo = list(tokens)
        return self.model.logits(tokens, last=last)

    def cached(self, tokens: Sequence[int]) -> int:
        pairs = enumerate(zip(self._memo, tokens, strict=False))
        same = next((i for i, (known, token) in pairs if known != token), None)
        own = min(len(self._memo), len(tokens)) if same is None else same
        return max(own, min(self.lender.cached(tokens), len(tokens) - 1)) if self.lender else own

    def forget(self) -> None:
        self._memo.clear()


class Script:
    """A model whose favourite at a place does not depend on what stands before it.

    Args:
        margins: by how much the favourite of a place leads; 0 is as good as any other.
    """

    vocab_size = VOCAB
    can_roll_back = True

    def __init__(self, favourites: Sequence[int], margins: Sequence[float] | None = None) -> None:
        self.context_size = len(favourites)
        self._favourites = favourites
        self._margins = margins

    def logits(self, tokens: Sequence[int], *, last: int) -> Logits:
        rows = np.zeros((last, VOCAB), dtype=np.float32)
        for i, place in enumerate(range(len(tokens) - last + 1, len(tokens) + 1)):
            if place < len(self._favourites):
                margin = 20.0 if self._margins is None else self._margins[place]
                rows[i, self._favourites[place]] = margin
        return rows

    def row(self, tokens: Sequence[int]) -> Row:
        row: Row = self.logits(tokens, last=1)[0]
        return row

    def cached(self, tokens: Sequence[int]) -> int:
        return 0

    def forget(self) -> None:
        pass


@dataclass(frozen=True)
class Draft:
    """One draft of a world.

    Attributes:
        right: how often its guess of a token is right, by the token's place in the answer.
        aware: how well it knows when: near 0 a guess is surely right or surely wrong, and it
            knows; much above 10 its confidence says nothing.
        modest: exponent by which it is less sure than it is right.
        kind: what it is taken for at first.
    """

    seconds: Curve
    right: Callable[[int], float]
    aware: float = 2.0
    modest: float = 1.3
    kind: Kind = Kind.model
    slowed: Callable[[int], float] = lambda place: 1.0


@dataclass(frozen=True)
class World:
    """What a target, its drafts and a text do, whatever policy is at work.

    Attributes:
        slowed: how many times longer passes of all models take, by place in the answer.
        noise: of a pass's time, as a standard deviation of its logarithm.
        repeats: the answer's token that each place repeats, None for something new.
    """

    target: Curve
    drafts: Mapping[str, Draft] = field(default_factory=dict)
    slowed: Callable[[int], float] = lambda place: 1.0
    noise: float = 0.0
    prompt: int = 40
    length: int = 128
    seed: int = 1
    suffix: bool = False
    text: Callable[[np.random.Generator, int], list[int]] | None = None

    @cached_property
    def script(self) -> list[int]:
        generator = np.random.default_rng([self.seed, 0])
        size = self.prompt + self.length + MOST + 4
        if self.text:
            return self.text(generator, size)
        return generator.integers(1, VOCAB, size).tolist()

    def draft_model(self, name: str) -> Script:
        draft = self.drafts[name]
        generator = np.random.default_rng([self.seed, *name.encode()])
        favourites, margins = [], []
        for place, token in enumerate(self.script):
            mean = min(1 - 1e-9, max(1e-9, draft.right(place - self.prompt)))
            chance = generator.beta(mean * draft.aware, (1 - mean) * draft.aware)
            stands = generator.random() < chance
            favourites.append(token if stands else token % (VOCAB - 1) + 1)
            sure = min(1 - 1e-6, 0.5 + chance**draft.modest / 2)
            margins.append(float(np.log(sure / (1 - sure))))
        return Script(favourites, margins)


class Play:
    """One process in a world: models with their memos, a clock, and what was learned."""

    def __init__(self, world: World, experience: Experience | None = None) -> None:
        self.world = world
        self.clock = Clock()
        self.experience = experience or knowing(world)
        self.noise = np.random.default_rng([world.seed, 77])
        self.place = 0
        self.target = self._timed(Script(world.script), world.target, lambda place: 1.0)
        self.drafts = {
            name: self._timed(
                world.draft_model(name),
                draft.seconds,
                draft.slowed,
                self.target if draft.kind is Kind.self else None,
            )
            for name, draft in world.drafts.items()
        }

    def _timed(
        self,
        model: LanguageModel,
        seconds: Curve,
        own: Callable[[int], float],
        lender: Timed | None = None,
    ) -> Timed:
        def slowed() -> float:
            random = float(np.exp(self.noise.normal(0, self.world.noise)))
            return self.world.slowed(self.place) * own(self.place) * random

        return Timed(model, seconds, self.clock, slowed, lender)

    def drafter(self, name: str, sampling: SamplingOptions = GREEDY) -> ModelDrafter:
        return ModelDrafter(
            self.drafts[name], sampling, target_vocab=VOCAB, ends=frozenset(), source=name
        )

    def sources(self) -> list[Source]:
        found = []
        for name, draft in self.world.drafts.items():
            drafter = self.drafter(name)
            found.append(
                Source(
                    drafter,
                    self.experience.of(name, "greedy", draft.kind),
                    self.experience.drafts[name],
                    drafter.behind,
                    drafter.in_hindsight,
                )
            )
        if self.world.suffix:
            known = self.experience.of("suffix", "greedy", Kind.suffix)
            found.append(Source(SuffixDrafter(ends=frozenset()), known))
        return found

    def auto(self) -> Drafting:
        """As an answer is drafted by default: the first one measures."""

        def adaptive(verify: PassSeconds) -> Adaptive:
            self.experience.verify = verify
            return Adaptive(self.sources(), verify, MOST, clock=self.clock)

        self.experience.next_answer()
        known = self.experience.verify
        if known is not None:
            return adaptive(known)
        return FirstUse(self.target, adaptive, MOST + 1, self.clock)

    def rounds(self, drafting: Drafting, length: int | None = None) -> Iterator[Round]:
        world = self.world
        options = DecodeOptions(GREEDY, 0, length or world.length, frozenset())
        prompt = world.script[: world.prompt]
        self.place = 0
        for round in decode(self.target, drafting, RULES["coupled"], prompt, options, self.clock):
            self.place += len(round.emitted)
            yield round

    def seconds(self, drafting: Drafting, length: int | None = None) -> float:
        """Of an answer from its first token on."""
        rounds = self.rounds(drafting, length)
        next(rounds)
        started = self.clock()
        for _ in rounds:
            pass
        return self.clock() - started


def knowing(world: World) -> Experience:
    """What passes cost is known; how good guesses are is not."""
    return Experience(
        PassSeconds({rows: world.target(rows) for rows in ROWS}),
        {
            name: PassSeconds({rows: draft.seconds(rows) for rows in ROWS})
            for name, draft in world.drafts.items()
        },
    )


def guessing(world: World, share: float) -> Experience:
    """Nothing was measured of the target; a draft is taken for a share of it, curve and all."""
    return Experience(
        None,
        {name: PassSeconds({r: share * world.target(r) for r in ROWS}) for name in world.drafts},
    )


def plain_time(world: World, length: int | None = None) -> float:
    return Play(world).seconds(NoDrafting("plain"), length)


def fixed_time(world: World, name: str, k: int, length: int | None = None) -> float:
    play = Play(world)
    drafter = play.drafter(name) if name != "suffix" else SuffixDrafter(ends=frozenset())
    return play.seconds(FixedLength(drafter, k), length)


def best_fixed(world: World, length: int | None = None) -> tuple[float, str, int]:
    """The best that one source and one draft length reach; none counts as k = 0."""
    names = [*world.drafts, *(["suffix"] if world.suffix else [])]
    runs = [
        (fixed_time(world, name, k, length), name, k)
        for name in names
        for k in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15)
    ]
    return min([(plain_time(world, length), "none", 0), *runs])
