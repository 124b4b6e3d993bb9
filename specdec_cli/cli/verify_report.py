"""The report of `specdec verify` for people, a line or a few for each result."""

from __future__ import annotations

from specdec_cli.app.frequencies import Frequencies
from specdec_cli.app.self_test import SelfTest
from specdec_cli.app.verify import Run

VERDICTS = {
    "identical": "identical: every speculative answer was the plain one, token for token",
    "tie": "tie: some answers part where two tokens were as good as equal; rounding, not a bug",
    "different": "different: at least one result cannot be explained by rounding",
}


def line(result: SelfTest | Run | Frequencies) -> str:
    """One result in words."""
    if isinstance(result, SelfTest):
        return _rule(result)
    return _run(result) if isinstance(result, Run) else _frequencies(result)


def _rule(test: SelfTest) -> str:
    return (
        f"rule {test.rule}: {'exact' if test.passed else 'WRONG'}, total variation "
        f"{test.total_variation:.1e} from the target's law on {test.models} small models"
    )


def _run(run: Run) -> str:
    kind = "greedy" if run.temp == 0 else f"temp {run.temp:g} seed {run.seed}"
    words = f"prompt {run.prompt + 1}, {kind}: {run.verdict}, {run.tokens} tokens"
    if run.drafted:
        words += f", {run.accepted}/{run.drafted} drafts accepted"
    if found := run.difference:
        words += (
            f"\n  first difference at token {found.position}: {found.tokens[0]} plainly, "
            f"{found.tokens[1]} speculatively; top-2 gaps {found.gaps[0]:.3g} and "
            f"{found.gaps[1]:.3g}\n  {found.reason}"
        )
    return words


def _frequencies(test: Frequencies) -> str:
    path = "through both models" if test.path == "full" else "on rows evaluated once"
    return (
        f"frequencies, rule {test.rule}, token {test.place}: {test.draws} draws {path} over "
        f"{test.support} tokens, p = {test.p_value:.3g}"
    )
