"""For the rules that keep a distribution and not a text: are tokens drawn as often as they should?

At a few places of an answer the rows are evaluated once, as a speculative pass does it, and the
shipped rule draws thousands of first tokens from them; a few hundred more go through everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specdec_cli.app.session import Session
from specdec_cli.core.chance import Chance
from specdec_cli.core.chi_square import p_value
from specdec_cli.core.distribution import Distribution, distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Guess, Proposal
from specdec_cli.core.verification import RULES, Rule
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafters import Drafter
from specdec_cli.engine.drafting import FixedLength

DRAWS = 20_000
FULL_DRAWS = 200
SIGNIFICANT = 1e-3  # for all tests of a report together


@dataclass(frozen=True, slots=True)
class Frequencies:
    """One test: how well the counts at one place fit the target's distribution."""

    rule: str
    place: int  # index into the answer
    draws: int
    path: str  # "rule": on remembered rows; "full": through both models
    support: int  # tokens that can occur at all
    p_value: float


def compare_frequencies(
    session: Session,
    drafter: Drafter,
    sampling: SamplingOptions,
    tokens: Sequence[int],
    *,
    place: int,
    guesses: int,
    seed: int,
    full: bool,
) -> Iterator[Frequencies]:
    """Test `rejection` and `block` on the token after `tokens`, `place` tokens into the answer."""
    spot = _Spot(session, drafter, sampling, list(tokens), guesses)
    spot.first_token(RULES["rejection"], seed)  # evaluates the place as a speculative pass does
    law = spot.target(())
    for rule in (RULES["rejection"], RULES["block"]) if len(law.ids) > 1 else ():
        counts = Counter(spot.first_token(rule, seed + draw) for draw in range(DRAWS))
        yield Frequencies(rule.name, place, DRAWS, "rule", len(law.ids), p_value(counts, law))
        if full:
            options = DecodeOptions(sampling, seed, max_tokens=guesses + 1, ends=frozenset())
            counts = Counter(
                _through_both_models(session, drafter, rule, spot, options, seed + draw)
                for draw in range(FULL_DRAWS)
            )
            yield Frequencies(
                rule.name, place, FULL_DRAWS, "full", len(law.ids), p_value(counts, law)
            )


class _Spot:
    """Laws of draft and target after a text and the first guesses, each evaluated once."""

    def __init__(
        self,
        session: Session,
        drafter: Drafter,
        sampling: SamplingOptions,
        tokens: list[int],
        guesses: int,
    ) -> None:
        self.tokens = tokens
        self.guesses = guesses
        self._session = session
        self._drafter = drafter
        self._sampling = sampling
        self._draft: dict[tuple[int, ...], Guess | None] = {}
        self._target: dict[tuple[int, ...], Distribution] = {}

    def first_token(self, rule: Rule, seed: int) -> int:
        """One round with the shipped rule; the first token it emits."""
        start = len(self.tokens)
        chance = rule.chance(seed, start)
        guesses: list[Guess] = []
        guessed: tuple[int, ...] = ()
        while len(guesses) < self.guesses and (guess := self._guess(guessed, chance)):
            if guess.distribution is not None:
                token = chance.draw(start + len(guesses), guess.distribution)
                guess = Guess(token, guess.distribution)
            guesses.append(guess)
            guessed += (guess.token,)

        def target(i: int) -> Distribution:
            # The first token does not depend on the bonus: no pass is spent on its many prefixes.
            return self.target(guessed, upto=i if i < len(guesses) else 0)

        verdict = rule.verify(Proposal(tuple(guesses)), target, chance, start)
        return guessed[0] if verdict.accepted else verdict.token

    def target(self, guessed: tuple[int, ...], upto: int = 0) -> Distribution:
        """The target's law after `guessed[:upto]`; its whole pass is evaluated at once."""
        if guessed[:upto] not in self._target:
            tokens = [*self.tokens, *guessed]
            rows = self._session.target.logits(tokens, last=len(guessed) + 1)
            for i, row in enumerate(rows):
                history = tokens[: len(self.tokens) + i]
                # The first row of a prefix stands: another pass may give it other last bits, and
                # draws have to be compared with the law that they were drawn from.
                self._target.setdefault(guessed[:i], distribution(row, self._sampling, history))
        return self._target[guessed[:upto]]

    def _guess(self, guessed: tuple[int, ...], chance: Chance) -> Guess | None:
        if guessed not in self._draft:
            stream = self._drafter.draft([*self.tokens, *guessed], chance)
            self._draft[guessed] = next(stream, None)
        return self._draft[guessed]


def _through_both_models(
    session: Session,
    drafter: Drafter,
    rule: Rule,
    spot: _Spot,
    options: DecodeOptions,
    seed: int,
) -> int:
    drafting = FixedLength(drafter, spot.guesses, at_once=True)
    options = DecodeOptions(options.sampling, seed, options.max_tokens, options.ends)
    return next(decode(session.target, drafting, rule, spot.tokens, options)).emitted[0]
