"""`specdec run`: one answer."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specdec_cli.cli.console import Terminal
from specdec_cli.cli.declare import flat
from specdec_cli.cli.known_texts import KnownTextFlags, KnownTexts
from specdec_cli.cli.live import LiveStream
from specdec_cli.cli.loading import check_together, open_session, prompt_ids
from specdec_cli.cli.options import CommonFlags, LoadFlags, option
from specdec_cli.cli.prompt import read_prompt
from specdec_cli.cli.request_options import LengthFlags, PromptFlags, SamplingFlags
from specdec_cli.cli.signals import exit_if_stopped, stop_on_signals
from specdec_cli.cli.summary import live_line, summary
from specdec_cli.errors import UsageError

if TYPE_CHECKING:
    from specdec_cli.app.compare import Comparison
    from specdec_cli.app.generate import Answer, AnswerOptions
    from specdec_cli.app.session import Session

CHARACTERS = 4  # of a prompt for each of its tokens, roughly
CODE_BLOCK = re.compile(r"^```[^\n]*\n(.*?)(?:^```|\Z)", re.MULTILINE | re.DOTALL)


class Show(StrEnum):
    accepted = "accepted"
    none = "none"


@flat
def run(
    prompt: Annotated[
        str | None, typer.Argument(help="The prompt; - reads standard input.", show_default=False)
    ] = None,
    *,
    prompt_option: Annotated[
        str | None,
        option(
            "-p",
            "--prompt",
            metavar="TEXT",
            env=False,
            panel="Prompt",
            help="The prompt, another way; - reads standard input.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        option(
            "-f",
            "--file",
            metavar="PATH",
            env=False,
            panel="Prompt",
            help="Put a file before the prompt.",
        ),
    ] = None,
    text: PromptFlags,
    load: LoadFlags,
    known: KnownTextFlags,
    sampling: SamplingFlags,
    length: LengthFlags,
    show: Annotated[
        Show, option("--show", panel="Output", help="Colour the tokens that a draft guessed right.")
    ] = Show.accepted,
    jsonl: Annotated[
        bool,
        option("--jsonl", panel="Output", env=False, help="One JSON line a token, then the rest."),
    ] = False,
    extract: Annotated[
        bool,
        option("-x", "--extract", panel="Output", env=False, help="Only the first code block."),
    ] = False,
    compare: Annotated[
        bool,
        option(
            "--compare",
            panel="Output",
            env=False,
            help="Then answer again without a draft, and say which was faster.",
        ),
    ] = False,
    common: CommonFlags,
) -> None:
    """Answer one prompt, from the argument, a file or standard input."""
    _check_output_choice(common, jsonl=jsonl, extract=extract, compare=compare)
    wanted, notice = read_prompt(prompt, prompt_option, file)
    chosen, seed = sampling.options(), sampling.chosen_seed()
    check_together(load, chosen, text, [load.accept])
    terminal = Terminal(common)
    if notice:
        terminal.notice(notice)
    texts = KnownTexts.read(terminal, known, load)

    from specdec_cli.app.generate import AnswerOptions

    options = AnswerOptions(
        sampling=chosen,
        seed=seed,
        rule=load.accept.value,
        drafter=load.drafter.value,
        draft_tokens=load.guesses,
        max_tokens=length.limit,
        stops=length.stops,
        ignore_eos=length.ignore_eos,
    )
    with (
        open_session(
            terminal,
            common,
            load,
            answer=options.max_tokens,
            prompt=len(wanted) // CHARACTERS,
        ) as session,
        stop_on_signals(session.stop) as signals,
    ):
        ids = prompt_ids(terminal, session, wanted, text)
        texts.give(terminal, session)
        output = _Output(terminal, colours=show is Show.accepted, jsonl=jsonl, extract=extract)
        if compare:
            from specdec_cli.app.compare import warm_up

            warm_up(session)
        answer = output.stream(session, ids, options, load.plain)
        if not common.json:
            told = session.options.left_out
            terminal.remark(" · ".join(summary(answer, options.seed, told=told)))
        texts.keep(terminal, session, answer.tokens)
        if compare and answer.finish != "interrupted":
            _compare(terminal, session, ids, options, answer)
        if problem := session.remember():
            terminal.notice(problem)
    exit_if_stopped(signals)


class _Output:
    """The answer on stdout in the form that was asked for."""

    def __init__(self, terminal: Terminal, *, colours: bool, jsonl: bool, extract: bool) -> None:
        self._terminal = terminal
        self._live = LiveStream(terminal, colours=colours)
        self._jsonl = jsonl
        self._streams = not (terminal.json or jsonl or extract)
        self._extract = extract

    def stream(
        self, session: Session, prompt: list[int], options: AnswerOptions, plain: str
    ) -> Answer:
        from specdec_cli.app.generate import Token, answer
        from specdec_cli.core.statistics import Statistics

        try:
            for event in answer(session, prompt, options, no_draft=plain):
                if isinstance(event, Token):
                    self._token(event.id, event.source, event.pieces)
                elif isinstance(event, Statistics):
                    self._live.status(live_line(event, self._terminal.err.width))
                else:
                    result = event
        finally:
            self._live.close()
        self._end(session, result, options)
        return result

    def _token(self, token: int | None, source: str, pieces: tuple[tuple[str, str], ...]) -> None:
        if self._jsonl:
            text = "".join(text for text, _ in pieces)
            self._terminal.data({"type": "token", "id": token, "text": text, "source": source})
        elif self._streams:
            for text, chosen_by in pieces:
                self._live.write(text, chosen_by)

    def _end(self, session: Session, answer: Answer, options: AnswerOptions) -> None:
        for piece in answer.rest if self._jsonl else ():
            self._token(None, piece.source, (piece,))
        if self._terminal.json or self._jsonl:
            from specdec_cli.app.report import document

            done = document(session, answer, options)
            self._terminal.data({"type": "done", **done} if self._jsonl else done)
            return
        text = answer.text
        if self._extract:
            block = CODE_BLOCK.search(text)
            text = block[1] if block else text
            sys.stdout.write(text)
        for rest, source in answer.rest if self._streams else ():
            self._live.write(rest, source)
        self._live.close()
        if text and not text.endswith("\n"):
            sys.stdout.write("\n")
        sys.stdout.flush()


def _compare(
    terminal: Terminal,
    session: Session,
    prompt: list[int],
    options: AnswerOptions,
    answer: Answer,
) -> None:
    from specdec_cli.app.compare import compare_with_plain

    if not answer.statistics.drafted:
        terminal.notice("nothing was drafted, so there is nothing to compare")
        return
    with terminal.working("the same answer again, without a draft"):
        comparison = compare_with_plain(session, prompt, options, answer)
    if comparison is not None:
        one_text = options.sampling.greedy or options.rule == "coupled"
        terminal.remark(verdict(comparison, one_text=one_text))


def verdict(comparison: Comparison, *, one_text: bool) -> str:
    """Honest in one line, also where plain decoding won; `one_text` where both should agree."""
    rates = (
        f"{comparison.speculative_tps:.1f} tok/s speculative, "
        f"{comparison.plain_tps:.1f} tok/s plain (whole answers, same run)"
    )
    if comparison.speedup >= 1:
        result = f"speculation was {comparison.speedup:.2f}x as fast as plain"
    else:
        result = f"plain was faster: speculation ran at {comparison.speedup:.2f}x its speed"
    if not one_text:
        return f"{result} · {rates}"
    same = comparison.first_difference is None
    at = comparison.first_difference
    text = "same text" if same else f"texts part at token {at} (specdec verify judges it)"
    return f"{result} · {rates} · {text}"


def _check_output_choice(common: CommonFlags, **chosen: bool) -> None:
    names = [f"--{name}" for name, given in (("json", common.json), *chosen.items()) if given]
    if "--compare" in names and "--json" not in names and "--jsonl" not in names:
        names.remove("--compare")
    if len(names) > 1:
        raise UsageError(
            f"{names[0]} and {names[1]} do not go together",
            why="each is a form of the whole output",
            fix="give one of them",
        )
