"""Where the figures of a benchmark go: stdout, files, and the exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specdec_cli.cli import failures
from specdec_cli.cli.bench_options import Format, ReportFlags, percentage
from specdec_cli.cli.console import Terminal
from specdec_cli.errors import CheckFailed, SpecdecError, UsageError

if TYPE_CHECKING:
    from specdec_cli.app.bench.plan import Candidate

Document = dict[str, Any]


class Report:
    """Checked before the run: a file that cannot be written must not cost an hour.

    Raises:
        UsageError: an output that cannot be written, or a saved benchmark that cannot be read.
    """

    def __init__(self, terminal: Terminal, flags: ReportFlags) -> None:
        self._terminal = terminal
        self._flags = flags
        self._form = Format.json if terminal.json else flags.output
        self._tolerance = percentage(flags.tolerance)
        _check_writable({"--save": flags.save, "--html": flags.html, "--plot": flags.plot})
        if flags.plot is not None:
            from specdec_cli.cli.bench_plot import check_plot

            check_plot(flags.plot)
        self._before = None
        if flags.against is not None:
            from specdec_cli.app.bench.saved import read

            self._before = read(flags.against)

    def check_shared(self, candidates: Iterable[Candidate], categories: Iterable[str]) -> None:
        """Raises:
        UsageError: nothing of what will be measured is in the saved benchmark.
        """
        if self._before is None:
            return
        known = {
            (row["drafter"], row["k"], row["accept"], row["category"])
            for row in self._before["results"]
            if row["speedup"] is not None
        }
        wanted = {
            (candidate.drafter, candidate.k, candidate.rule, category)
            for candidate, category in product(candidates, categories)
        }
        if not known & wanted:
            raise UsageError(
                f"{self._flags.against} has nothing in common with this benchmark",
                why="no category was measured there with one of these drafters, -k and --accept",
                fix="use the prompts and candidates that it was saved with",
            )

    def write(self, document: Document, failure: SpecdecError | None = None) -> int:
        """Put the document everywhere it was asked for; what went wrong decides the exit code.

        With JSON the error is a part of the one document on stdout.

        Args:
            failure: what ended the benchmark before its time.
        """
        errors = [failure] if failure else []
        errors += [*self._write_files(document), *self._checks(document)]
        if self._form is Format.json:
            error = {"error": failures.as_document(errors[0])} if errors else {}
            self._terminal.data(document | error)
        else:
            self._print(document)
        codes = [failures.report(error, as_json=False) for error in errors]
        return codes[0] if codes else 0

    def _write_files(self, document: Document) -> Iterator[SpecdecError]:
        flags = self._flags
        if flags.save is not None:
            text = json.dumps(document, indent=1, allow_nan=False) + "\n"
            yield from self._write("--save", flags.save, text.encode())
        if flags.html is not None:
            from specdec_cli.cli.bench_html import html

            yield from self._write("--html", flags.html, html(document).encode())
        if flags.plot is not None:
            from specdec_cli.cli.bench_plot import picture

            kind = flags.plot.suffix.lower().removeprefix(".")
            yield from self._write("--plot", flags.plot, picture(document, kind))

    def _write(self, option: str, path: Path, content: bytes) -> Iterator[SpecdecError]:
        """In one step: an older file is whole until the new one is.

        A disk that filled up during the run must not take the table on stdout with it.
        """
        final = _real(path)
        part = _part(final)
        try:
            part.write_bytes(content)
            part.replace(final)
            self._terminal.remark(f"wrote {path}")
        except OSError as error:
            full = failures.is_full_disk(error)
            yield UsageError(
                f"{option} {path} was not written",
                why="the disk is full" if full else error.strerror or str(error),
                fix="take the figures from stdout; free some space or choose another disk",
            )
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    def _print(self, document: Document) -> None:
        from specdec_cli.cli.bench_lines import csv, jsonl
        from specdec_cli.cli.bench_markdown import costs_markdown, markdown

        if self._form is Format.csv:
            sys.stdout.write(csv(document))
        elif self._form is Format.jsonl:
            sys.stdout.write(jsonl(document))
        elif document["results"] or not document["cost_depths"]:
            width = self._terminal.out.width if self._terminal.draws else None
            sys.stdout.write(markdown(document, width))
        else:
            sys.stdout.write(costs_markdown(document))
        sys.stdout.flush()
        if self._form is Format.md and self._terminal.draws:
            self._bars(document)

    def _bars(self, document: Document) -> None:
        from specdec_cli.cli.bench_terminal import cost_bars, speedup_bars

        bars = [speedup_bars(document)] if document["results"] else cost_bars(document)
        for chart in bars:
            self._terminal.chart(chart)

    def _checks(self, document: Document) -> Iterator[SpecdecError]:
        """What the figures fail; an interrupted benchmark has not got them all."""
        if not document["complete"]:
            return
        least, best = self._flags.fail_under, document["summary"]["speedup_geomean"]
        if least is not None and (best is None or best < least):
            reached = "nothing was measured" if best is None else f"the best is {best:.3f}x"
            yield CheckFailed(
                f"below --fail-under {least:g}: {reached}",
                why="no candidate makes these answers so much faster here",
                fix="try other drafters and lengths, for example --drafter suffix or -k 1-8",
            )
        if self._before is not None:
            from specdec_cli.app.bench.comparison import compare, regressions

            fallen = regressions(compare(self._before, document), self._tolerance)
            if fallen:
                allowed = f"--tolerance is {self._flags.tolerance}"
                yield CheckFailed(
                    f"slower than {self._flags.against}: {fallen[0]}",
                    why="; ".join([allowed, *fallen[1:]]),
                    fix="--save this run too: specdec bench compare shows the two side by side",
                )


def _check_writable(files: dict[str, Path | None]) -> None:
    """Raises:
    UsageError: a file that cannot be written, or two outputs for one.
    """
    seen: dict[Path, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        final = _real(path)
        why = _not_writable(final)
        if final in seen:
            why = f"{seen[final]} goes there"
        if why:
            raise UsageError(f"cannot write {option} {path}", why=why, fix="choose another file")
        seen[final] = option


def _not_writable(path: Path) -> str:
    if path.is_dir():
        return "it is a directory"
    if path.exists() and not path.is_file():
        return "it is not a regular file"
    if not path.parent.is_dir():
        return f"there is no directory {path.parent}"
    if path.exists() and not os.access(path, os.W_OK):
        return "it must not be written"
    probe = _part(path)
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _real(path: Path) -> Path:
    """Through links, which stay what they are."""
    return Path(os.path.realpath(path))


def _part(path: Path) -> Path:
    """Beside the file, so that it can take its place in one step."""
    return path.with_name(f".{path.name}.{os.getpid()}")
