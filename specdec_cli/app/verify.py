"""Does this pair, on this machine, keep its promise? Runs that a sceptic can repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from specdec_cli.app.first_difference import Class, Difference, judge
from specdec_cli.app.frequencies import SIGNIFICANT, Frequencies, compare_frequencies
from specdec_cli.app.self_test import SelfTest, check_rules
from specdec_cli.app.session import Session
from specdec_cli.core.chi_square import holm
from specdec_cli.core.distribution import Row, distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.verification import RULES
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafting import FixedLength, NoDrafting
from specdec_cli.engine.recording import Recorder

RULE = RULES["coupled"]  # the rule that promises the same text; at temperature 0 all are the same
PLACES = 3  # where frequencies are compared: the most open of the first tokens of an answer
PLACES_AMONG = 32
GUESSES_FOR_FREQUENCIES = 2  # more would multiply the rows to evaluate and test nothing new


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """What to run. Greedy always; with a temperature, also that many seeds, and frequencies."""

    sampling: SamplingOptions
    draft_tokens: int
    max_tokens: int
    drafter: str = "auto"
    seed: int = 0
    seeds: int = 2


@dataclass(frozen=True, slots=True)
class Run:
    """One prompt, plainly and speculatively."""

    prompt: int
    temp: float
    seed: int
    tokens: int
    accepted: int
    drafted: int
    difference: Difference | None

    @property
    def verdict(self) -> Class:
        return self.difference.verdict if self.difference else "identical"


@dataclass(frozen=True, slots=True)
class Report:
    """All results of one verification."""

    rules: tuple[SelfTest, ...]
    runs: tuple[Run, ...]
    frequencies: tuple[Frequencies, ...]

    @property
    def verdict(self) -> Class:
        if not all(rule.passed for rule in self.rules) or self.wrong_frequencies:
            return "different"
        verdicts = {run.verdict for run in self.runs}
        return next((v for v in ("different", "tie") if v in verdicts), "identical")

    @property
    def wrong_frequencies(self) -> bool:
        return holm([test.p_value for test in self.frequencies], SIGNIFICANT)


def verify(
    session: Session, prompts: Sequence[Sequence[int]], options: VerifyOptions
) -> Iterator[SelfTest | Run | Frequencies | Report]:
    """Yield every result as it comes, and the report at the end."""
    rules, runs, frequencies = [], [], []
    for test in check_rules():
        rules.append(test)
        yield test
    sampled = not options.sampling.greedy
    for number, prompt in enumerate(prompts):
        settings = [(replace(options.sampling, temp=0.0), options.seed)]
        if sampled:
            settings += [(options.sampling, options.seed + i) for i in range(options.seeds)]
        for sampling, seed in settings:
            plain = decode_plainly(session, prompt, sampling, seed, options.max_tokens)
            run = compare(session, plain, options.draft_tokens, number, drafter=options.drafter)
            runs.append(run)
            yield run
    if sampled and (drafter := session.drafter(options.sampling, options.drafter)):
        for number, (at, tokens) in enumerate(_open_places(session, prompts[0], options)):
            for result in compare_frequencies(
                session,
                drafter,
                options.sampling,
                tokens,
                place=at,
                guesses=min(GUESSES_FOR_FREQUENCIES, options.draft_tokens),
                seed=options.seed,
                full=number == 0,
            ):
                frequencies.append(result)
                yield result
    yield Report(tuple(rules), tuple(runs), tuple(frequencies))


def _open_places(
    session: Session, prompt: Sequence[int], options: VerifyOptions
) -> list[tuple[int, list[int]]]:
    """The places of an answer at which the most tokens are possible: (index, tokens before)."""
    target = Recorder(session.target)
    decoding = DecodeOptions(options.sampling, options.seed, PLACES_AMONG, frozenset())
    tokens = list(prompt)
    places: list[tuple[int, int, list[int]]] = []
    for round in decode(target, NoDrafting("plain"), RULE, prompt, decoding):
        support = len(distribution(target.rows[0], options.sampling, tokens).ids)
        places.append((-support, len(places), list(tokens)))
        tokens += round.emitted
    return [(at, before) for _, at, before in sorted(places)[:PLACES]]


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """What plain decoding answered, and the row of logits that it saw before each token."""

    prompt: Sequence[int]
    decoding: DecodeOptions
    tokens: list[int]
    rows: list[Row]


def decode_plainly(
    session: Session,
    prompt: Sequence[int],
    sampling: SamplingOptions,
    seed: int,
    max_tokens: int,
) -> Plain:
    session.forget()
    target = Recorder(session.target)
    decoding = DecodeOptions(sampling, seed, max_tokens, session.model.vocabulary.ends)
    plain = Plain(prompt, decoding, [], [])
    for round in decode(target, NoDrafting("plain"), RULE, prompt, decoding):
        plain.tokens.extend(round.emitted)
        plain.rows.append(target.rows[0].copy())
    return plain


def compare(
    session: Session, plain: Plain, draft_tokens: int, number: int = 0, *, drafter: str = "auto"
) -> Run:
    """The same answer speculatively, and a judgement of the first difference."""
    session.forget()
    target = Recorder(session.target)
    sampling, seed = plain.decoding.sampling, plain.decoding.seed
    source = session.drafter(sampling, drafter)
    drafting = FixedLength(source, draft_tokens) if source else NoDrafting("no draft")
    answer: list[int] = []
    accepted = drafted = 0
    difference = None
    for round in decode(target, drafting, RULE, plain.prompt, plain.decoding):
        accepted, drafted = accepted + round.accepted, drafted + len(round.proposal)
        for i, token in enumerate(round.emitted):
            at = len(answer)
            if token != plain.tokens[at]:
                difference = judge(
                    session.target,
                    plain.prompt,
                    answer,
                    tokens=(plain.tokens[at], token),
                    rows=(plain.rows[at], target.rows[i].copy()),
                    sampling=sampling,
                    chance=RULE.chance(seed, len(plain.prompt) + at),
                    width=draft_tokens + 1,
                )
                break
            answer.append(token)
        if difference:
            break
    return Run(number, sampling.temp, seed, len(answer), accepted, drafted, difference)


def document(
    report: Report, options: VerifyOptions, drafter: str, exact: dict[str, Any] | None
) -> dict[str, Any]:
    """The JSON of `verify --json`."""
    return {
        "verdict": report.verdict,
        "rules": {
            test.rule: {"total_variation": test.total_variation, "models": test.models}
            for test in report.rules
        },
        "runs": [
            {
                "prompt": run.prompt,
                "accept": RULE.name,
                "temp": run.temp,
                "seed": run.seed,
                "k": options.draft_tokens,
                "drafter": drafter,
                "tokens": run.tokens,
                "drafted": run.drafted,
                "accepted": run.accepted,
                "verdict": run.verdict,
                "first_difference": None if run.difference is None else _difference(run.difference),
            }
            for run in report.runs
        ],
        "frequencies": [asdict(test) for test in report.frequencies],
        "exact": exact,
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "position": difference.position,
        "tokens": list(difference.tokens),
        "gap": list(difference.gaps),
        "noise": difference.noise,
        "distances": list(difference.distances),
        "reason": difference.reason,
    }
