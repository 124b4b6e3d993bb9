"""How fast a target is without any drafting, by number of threads and batch size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import psutil

from specdec_cli.app.bench.measure import Progress
from specdec_cli.app.bench.plan import order
from specdec_cli.app.prompts import built_in
from specdec_cli.app.session import Session, default_threads
from specdec_cli.engine.language_model import LanguageModel
from specdec_cli.engine.llama.context import ContextOptions, LlamaContext

READ, LONG, ANSWERED = 128, 768, 12  # tokens of a prompt, of a long one, and of an answer
TYPICAL = (256, 128)  # tokens of prompt and answer for which threads are chosen
REPETITIONS = 3
BATCHES = (512, 256, 1024)  # the default first
CLEARLY = 0.05  # by which another setting must be faster to be preferred to the default


@dataclass(frozen=True, slots=True)
class Speed:
    """With one number of threads or one batch size, in tokens per second."""

    setting: int
    prompt: float
    answer: float | None = None

    @property
    def seconds(self) -> float:
        """Of a typical prompt, and of its answer where that was measured."""
        prompt, answer = TYPICAL
        return prompt / self.prompt + (answer / self.answer if self.answer else 0.0)


def thread_choices() -> list[int]:
    """The physical cores, which is the default, then all threads they offer, and half of them."""
    cores, offered = default_threads(), int(psutil.cpu_count() or 1)
    return list(dict.fromkeys([cores, offered, max(1, cores // 2)]))


def fastest(speeds: Sequence[Speed], default: int) -> int:
    """The default, unless another setting is clearly faster."""
    known = {speed.setting: speed.seconds for speed in speeds}
    if default not in known:
        return default
    best = min(known, key=known.__getitem__)
    return best if known[best] < known[default] * (1 - CLEARLY) else default


def thread_speeds(
    session: Session, threads: Sequence[int], found: list[Speed]
) -> Iterator[Progress]:
    """Fill `found`. Raises Interrupted, and then leaves what was finished."""
    choices = {count: (count, session.options.batch) for count in threads}
    yield from _compare(session, "threads", choices, READ, ANSWERED, found)


def batch_speeds(
    session: Session, batches: Sequence[int], threads: int, found: list[Speed]
) -> Iterator[Progress]:
    """Fill `found` with the speeds of reading a long prompt. Raises Interrupted."""
    choices = {size: (threads, size) for size in batches}
    yield from _compare(session, "batch size", choices, LONG, 0, found)


def _compare(
    session: Session,
    name: str,
    choices: Mapping[int, tuple[int, int]],
    read: int,
    answered: int,
    found: list[Speed],
) -> Iterator[Progress]:
    """By turns.

    Args:
        choices: setting -> (threads, batch size).
        read: tokens of the prompt.
        answered: tokens that are evaluated one by one after it.
    """
    words = " ".join(entry.prompt for entry in built_in("bench"))
    text = session.model.vocabulary.tokenize(words, special=False)
    text = text[: min(read + answered, session.context_size)]
    with ExitStack() as stack:
        contexts = {
            setting: _context(session, stack, len(text), *choice)
            for setting, choice in choices.items()
        }
        settings = list(contexts)
        prompts: dict[int, list[float]] = {setting: [] for setting in settings}
        answers: dict[int, list[float]] = {setting: [] for setting in settings}
        for turn in range(REPETITIONS):
            for place in order(len(settings), turn):
                setting = settings[place]
                yield Progress(turn, REPETITIONS, None, f"{name} {setting}")
                prompt, answer = _tokens_per_second(contexts[setting], text, answered)
                prompts[setting].append(prompt)
                answers[setting] += [answer] if answer else []
            found[:] = [
                Speed(
                    setting,
                    median(prompts[setting]),
                    median(answers[setting]) if answers[setting] else None,
                )
                for setting in settings
            ]


def _context(
    session: Session, stack: ExitStack, size: int, threads: int, batch: int
) -> LanguageModel:
    """The session's target once more, with other settings."""
    asked, numerics = session.options.flash_attention, session.options.numerics
    options = ContextOptions(
        size=size,
        batch=batch,
        threads=threads,
        flash_attention=numerics.flash_attention if asked == "auto" else asked,
        pairs=numerics.pairs,
    )
    context = LlamaContext(session.model, options, stop=session.stop.is_set)
    stack.callback(context.close)
    return context


def _tokens_per_second(
    model: LanguageModel, text: Sequence[int], answered: int
) -> tuple[float, float | None]:
    """Of reading all but the last tokens of a text, and of evaluating those one by one."""
    read = len(text) - answered
    model.forget()
    started = perf_counter()
    model.logits(text[:read], last=1)
    prompt = perf_counter() - started
    started = perf_counter()
    for end in range(read + 1, len(text) + 1):
        model.logits(text[:end], last=1)
    return read / prompt, answered / (perf_counter() - started) if answered else None
