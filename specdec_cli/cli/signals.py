"""Ctrl-C and a polite kill stop the answer, not the program: what is there is kept."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from types import FrameType

import typer

from specdec_cli.cli.failures import INTERRUPTED, TERMINATED


@dataclass(slots=True)
class Signals:
    """What has arrived so far."""

    received: bool = False
    terminated: bool = False


@contextmanager
def stop_on_signals(stop: Event, *, insist: bool = True) -> Iterator[Signals]:
    """Set `stop` at the first SIGINT or SIGTERM; a second one raises KeyboardInterrupt.

    Without `insist` it does not. An exception raised inside `llama_decode` would leave its cache
    in an unknown state, so the first signal only asks llama.cpp to stop.
    """
    signals = Signals()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if signals.received and insist:
            raise KeyboardInterrupt
        signals.received = True
        signals.terminated |= number == signal.SIGTERM
        stop.set()

    previous = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield signals
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def exit_if_stopped(signals: Signals) -> None:
    """Leave with the exit code that belongs to the signal, if there was one."""
    if signals.received:
        raise typer.Exit(TERMINATED if signals.terminated else INTERRUPTED)
