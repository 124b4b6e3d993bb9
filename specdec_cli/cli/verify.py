"""`specdec verify`: a receipt for the promise that answers do not change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from specdec_cli.cli.console import Terminal
from specdec_cli.cli.declare import flat
from specdec_cli.cli.loading import check_together, open_session, prompt_ids
from specdec_cli.cli.options import CommonFlags, LoadFlags, option
from specdec_cli.cli.request_options import MeasuredSamplingFlags, PromptFlags
from specdec_cli.cli.signals import exit_if_stopped, stop_on_signals
from specdec_cli.errors import CheckFailed, UsageError

FIXED = 4  # guesses a round where `-k` is left to specdec: every round is to be checked


@flat
def verify(
    load: LoadFlags,
    sampling: MeasuredSamplingFlags,
    text: PromptFlags,
    *,
    prompts: Annotated[
        Path | None,
        option(
            "--prompts",
            metavar="FILE",
            env=False,
            panel="Verification",
            help='JSON lines {"prompt": ...}.  [default: four of our own]',
            show_default=False,
        ),
    ] = None,
    max_tokens: Annotated[
        int,
        option(
            "-n",
            "--max-tokens",
            metavar="N",
            min=1,
            max=4096,
            panel="Verification",
            help="Tokens an answer.",
        ),
    ] = 96,
    seeds: Annotated[
        int,
        option(
            "--seeds",
            metavar="N",
            min=1,
            max=100,
            env=False,
            panel="Verification",
            help="Seeds a prompt, where --temp is above 0.",
        ),
    ] = 2,
    strict: Annotated[
        bool,
        option("--strict", env=False, panel="Verification", help="Let a tie fail as well."),
    ] = False,
    common: CommonFlags,
) -> None:
    """Prove that speculation leaves this pair's answers as they are.

    The rules are checked by exact enumeration; then answers are compared, plain against
    speculative, and a first difference is judged: rounding, or a bug. Greedy by default; with
    `--temp` above 0 also sampled answers by seed, and the frequencies of the other rules.
    """
    if load.plain:
        raise UsageError(
            f"{load.plain} leaves nothing to verify",
            why="plain decoding is what answers are compared with",
            fix="leave it out",
        )
    chosen = sampling.options()
    check_together(load, chosen, text, [load.accept])
    terminal = Terminal(common)

    from specdec_cli.app import prompts as prompt_sets
    from specdec_cli.app.generate import check_prompt
    from specdec_cli.app.verify import Report, VerifyOptions, document
    from specdec_cli.app.verify import verify as verifying
    from specdec_cli.cli.verify_report import VERDICTS, line
    from specdec_cli.engine.language_model import Interrupted

    wanted = prompt_sets.read_file(prompts) if prompts else prompt_sets.built_in("verify")
    options = VerifyOptions(
        sampling=chosen,
        drafter=load.drafter.value,
        draft_tokens=FIXED if load.guesses is None else load.guesses,
        max_tokens=max_tokens,
        seed=max(0, sampling.seed),
        seeds=seeds,
    )
    fixed = replace(load, draft_tokens=str(options.draft_tokens), draft_tokens_alias=None)
    with open_session(terminal, common, fixed) as session, stop_on_signals(session.stop) as signals:
        ids = [
            prompt_ids(
                terminal, session, entry.prompt, replace(text, system=entry.system or text.system)
            )
            for entry in wanted
        ]
        for prompt in ids:
            check_prompt(prompt, session.context_size)
        report: Report | None = None
        try:
            for event in verifying(session, ids, options):
                if isinstance(event, Report):
                    report = event
                elif not common.json:
                    terminal.line(line(event))
        except Interrupted:
            exit_if_stopped(signals)
        assert report is not None
        found = session.drafter(chosen, load.drafter.value)
        name = found.source if found else "none"
        probe = session.options.probe
        result = document(report, options, name, probe.as_dict() if probe else None)
    if common.json:
        terminal.data(result)
    else:
        terminal.line(VERDICTS[report.verdict])
    if report.verdict == "different" or (strict and report.verdict == "tie"):
        raise typer.Exit(CheckFailed.code)
