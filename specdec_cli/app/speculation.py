"""How one answer is drafted: from which sources, by which policy, or not, and why."""

from __future__ import annotations

from specdec_cli.app.draft_models import Draft
from specdec_cli.app.session import NO_ROLL_BACK, SUFFIX, Session
from specdec_cli.core.experience import Kind
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.engine.adaptive import Adaptive
from specdec_cli.engine.drafters import ModelDrafter
from specdec_cli.engine.drafting import Drafting, FixedLength, NoDrafting
from specdec_cli.engine.first_use import FirstUse
from specdec_cli.engine.sources import Source

PASSES = (1, 2, 4, 8, 16, 32)  # rows at which an unknown draft's cost is guessed


def drafting(
    session: Session,
    sampling: SamplingOptions,
    *,
    rule: str,
    drafter: str,
    length: int | None,
    off: str = "",
) -> Drafting:
    """The policy for one answer.

    Args:
        drafter: a source by name, or auto: all there are, or with a fixed length the draft.
        length: guesses a round; None: as many as pay.
        off: the reason where drafting is not wanted.
    """
    if off or length == 0:
        return NoDrafting(off or "draft length 0")
    if not session.target.can_roll_back:
        return NoDrafting(NO_ROLL_BACK)
    nothing = session.options.left_out or "no draft model"
    if length is not None:
        found = session.drafter(sampling, drafter)
        return FixedLength(found, length) if found else NoDrafting(nothing)
    names = session.sources_of(drafter)
    if not names:
        return NoDrafting(nothing)
    session.experience.next_answer()

    def adaptive(verify: PassSeconds) -> Adaptive:
        session.experience.verify = verify
        return Adaptive(
            [_source(session, sampling, name, verify) for name in names],
            verify,
            session.options.draft_tokens,
            overlaps=rule != "coupled" and not sampling.greedy,
            note=session.options.left_out,
        )

    known = session.experience.verify
    rows = session.options.draft_tokens + 1
    return FirstUse(session.target, adaptive, rows) if known is None else adaptive(known)


def _source(session: Session, sampling: SamplingOptions, name: str, verify: PassSeconds) -> Source:
    chosen = "greedy" if sampling.greedy else "sampled"
    experience = session.experience
    if name == SUFFIX:
        known = experience.of(SUFFIX, chosen, Kind.suffix)
        return Source(session.suffix_drafter(), known)
    draft = session.draft(name)
    assert draft is not None  # `sources_of` names what there is
    drafter = draft.drafter(session.model, sampling)
    if draft.key not in experience.drafts:
        experience.drafts[draft.key] = guessed_seconds(draft, session, verify)
    return Source(
        drafter,
        experience.of(draft.key, chosen, Kind.self if name == Kind.self else Kind.model),
        experience.drafts[draft.key],
        drafter.behind,
        drafter.in_hindsight if isinstance(drafter, ModelDrafter) else None,
    )


def guessed_seconds(draft: Draft, session: Session, verify: PassSeconds) -> PassSeconds:
    """Before a draft has run: as the target's passes, by the bytes that have to be read."""
    share = draft.model.size / session.model.size
    return PassSeconds({rows: share * verify(rows) for rows in PASSES})
