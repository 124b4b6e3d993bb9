"""Where the figures of a benchmark go: stdout, files, and the exit code."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from specdec_cli.cli.bench_options import Format, ReportFlags, percentage
from specdec_cli.cli.console import Terminal
from specdec_cli.errors import UsageError

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
        files = {"--save": flags.save, "--html": flags.html, "--plot": flags.plot}
        for option, path in files.items():
            if path is not None:
                _check_writable(option, path)
        if flags.plot is not None:
            from specdec_cli.cli.bench_plot import check_plot

            check_plot(flags.plot)
        self._before = None
        if flags.against is not None:
            from specdec_cli.app.bench.saved import read

            self._before = read(flags.against)

    def write(self, document: Document) -> list[str]:
        """Put the document everywhere it was asked for; what it fails, in words."""
        self._write_files(document)
        self._print(document)
        return self._failures(document)

    def _write_files(self, document: Document) -> None:
        flags = self._flags
        if flags.save is not None:
            text = json.dumps(document, indent=1, allow_nan=False) + "\n"
            self._write("--save", flags.save, lambda: text.encode())
        if flags.html is not None:
            from specdec_cli.cli.bench_html import html

            self._write("--html", flags.html, lambda: html(document).encode())
        if flags.plot is not None:
            from specdec_cli.cli.bench_plot import picture

            kind = flags.plot.suffix.lower().removeprefix(".")
            self._write("--plot", flags.plot, lambda: picture(document, kind))

    def _write(self, option: str, path: Path, content: Callable[[], bytes]) -> None:
        """In one step: an older file is whole until the new one is.

        A disk that filled up during the run must not take the table on stdout with it.
        """
        part = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            part.write_bytes(content())
            part.replace(path)
        except OSError as error:
            why = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
            self._terminal.notice(f"{option} {path} was not written: {why}")
        else:
            self._terminal.remark(f"wrote {path}")
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    def _print(self, document: Document) -> None:
        from specdec_cli.cli.bench_lines import csv, jsonl
        from specdec_cli.cli.bench_markdown import costs_markdown, markdown

        if self._form is Format.json:
            self._terminal.data(document)
            return
        if self._form is Format.csv:
            sys.stdout.write(csv(document))
        elif self._form is Format.jsonl:
            sys.stdout.write(jsonl(document))
        elif document["results"] or not document["cost_depths"]:
            sys.stdout.write(markdown(document))
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

    def _failures(self, document: Document) -> list[str]:
        found = []
        least, best = self._flags.fail_under, document["summary"]["speedup_geomean"]
        if least is not None and (best is None or best < least):
            reached = "nothing was measured" if best is None else f"the best is {best:.3f}x"
            found.append(f"below --fail-under {least:g}: {reached}")
        if self._before is not None:
            from specdec_cli.app.bench.comparison import compare, regressions

            found += regressions(compare(self._before, document), self._tolerance)
        return found


def _check_writable(option: str, path: Path) -> None:
    why = ""
    if path.is_dir():
        why = "it is a directory"
    elif not path.parent.is_dir():
        why = f"there is no directory {path.parent}"
    elif not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        why = "it must not be written"
    if why:
        raise UsageError(f"cannot write {option} {path}", why=why, fix="choose another file")
