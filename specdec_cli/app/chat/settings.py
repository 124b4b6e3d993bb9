"""What can be set in a chat."""

from __future__ import annotations

from dataclasses import dataclass, field

from specdec_cli.app.chat.prompts import OnFull
from specdec_cli.app.draft_models import Draft
from specdec_cli.app.generate import AnswerOptions
from specdec_cli.app.session import Session
from specdec_cli.core.options import SamplingOptions
from specdec_cli.errors import UsageError


@dataclass(frozen=True, slots=True)
class Settings:
    """What `/set` changes; `dataclasses.replace` makes the next one.

    Attributes:
        plain: the reason where speculation is off (`/spec off`), else empty.
        draft_tokens: at most what the session was loaded for; None: as many as pay.
    """

    sampling: SamplingOptions = field(default_factory=SamplingOptions)
    seed: int = 0
    rule: str = "coupled"
    drafter: str = "auto"
    draft_tokens: int | None = None
    max_tokens: int | None = None
    stops: tuple[str, ...] = ()
    plain: str = ""
    on_full: OnFull = "stop"

    def options(self, session: Session, seed: int) -> AnswerOptions:
        """For one answer.

        Raises:
            UsageError: more guesses a round than the session has room for.
        """
        most = session.options.draft_tokens
        if self.draft_tokens is not None and self.draft_tokens > most:
            raise UsageError(
                f"{self.draft_tokens} guesses a round are too many here",
                why=f"the models were loaded for {most} at most",
                fix=f"start with -k {self.draft_tokens}",
            )
        return AnswerOptions(
            sampling=self.sampling,
            seed=seed,
            rule=self.rule,
            drafter=self.drafter,
            draft_tokens=self.draft_tokens,
            max_tokens=self.max_tokens,
            stops=self.stops,
        )

    def drafts(self, session: Session) -> list[Draft]:
        """Those that may read along: none for plain decoding and guesses without a model."""
        if self.draft_tokens == 0 or self.plain or not session.target.can_roll_back:
            return []
        return [draft for draft in session.drafts if self.drafter in (draft.name, "auto")]
