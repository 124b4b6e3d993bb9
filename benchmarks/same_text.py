"""Is the text the same with and without drafting? The matrices behind docs/lossless.md.

    python benchmarks/same_text.py coupled   default kernels: seeds x prompts x draft lengths
    python benchmarks/same_text.py exact     --exact: contexts x drafters x lengths x prompt chunks
    python benchmarks/same_text.py turn      --exact: a second turn on a used cache, and anew

`coupled` compares with plain decoding and judges every first difference. `exact` demands equal
token ids from every run of a setting, and times plain decoding with and without `--exact`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from specdec_cli.app.draft_models import DraftFile
from specdec_cli.app.exact import find_exact, require_exact
from specdec_cli.app.generate import Answer, AnswerOptions, answer
from specdec_cli.app.prompts import built_in
from specdec_cli.app.session import LoadOptions, Session, default_threads
from specdec_cli.app.verify import compare, decode_plainly
from specdec_cli.core.options import SamplingOptions
from specdec_cli.engine.llama.chat_template import ChatTemplate
from specdec_cli.models.references import resolve

SAMPLED = SamplingOptions()  # temperature 0.8 and llama.cpp's filters
GREEDY = SamplingOptions(temp=0.0)


def prompts(session: Session) -> list[list[int]]:
    template = ChatTemplate(session.model)
    return [
        template.tokens([{"role": "user", "content": entry.prompt}]) for entry in built_in("verify")
    ]


def coupled(load: LoadOptions, asked: argparse.Namespace) -> bool:
    """Seeds x prompts x k at temperature 0.8 with the fastest kernels."""
    with Session(replace(load, draft_tokens=max(asked.lengths))) as session:
        found: Counter[str] = Counter()
        for number, prompt in enumerate(prompts(session)):
            for seed in range(asked.seeds):
                plain = decode_plainly(session, prompt, SAMPLED, seed, asked.tokens)
                for length in asked.lengths:
                    run = compare(session, plain, length)
                    found[run.verdict] += 1
                    if run.difference:
                        print(f"prompt {number} k {length} seed {seed}: {run.verdict}", flush=True)
                        print(f"  token {run.difference.position}: {run.difference.reason}")
    print(f"{load.target.name}: {dict(found)}", flush=True)
    return found["different"] == 0


def exact(load: LoadOptions, asked: argparse.Namespace) -> bool:
    """One text per context and sampling, whatever drafts and however the prompt is read."""
    probe = find_exact(
        load.target, draft_tokens=max(asked.lengths), threads=default_threads(), gpu_layers=0
    )
    print(f"{load.target.name}: {probe.words()}", flush=True)
    numerics = require_exact(probe, best_effort=False)
    texts: dict[tuple[int, float], set[tuple[int, ...]]] = {}
    runs = 0
    for settings, drafter in _settings(replace(load, numerics=numerics), asked):
        with Session(settings) as session:
            for size in asked.contexts:
                prompt = _long_prompt(session, size)
                session.forget()
                for sampling in (GREEDY, GREEDY, SAMPLED):  # the first reads the whole prompt
                    tokens = _answer(session, prompt, sampling, asked.tokens, drafter).tokens
                    texts.setdefault((size, sampling.temp), set()).add(tokens)
                    runs += 1
    same = all(len(found) == 1 for found in texts.values())
    print(f"{load.target.name}: {runs} runs of {len(texts)} settings, same ids: {same}", flush=True)
    for name, used in (("default", load), ("exact", replace(load, numerics=numerics))):
        with Session(replace(used, drafts=())) as session:
            _answer(session, prompts(session)[0], GREEDY, 4)
            session.forget()
            started = perf_counter()
            tokens = len(_answer(session, prompts(session)[0], GREEDY, asked.tokens).tokens)
            print(f"  plain, {name}: {tokens / (perf_counter() - started):.1f} tok/s", flush=True)
    return same


def turn(load: LoadOptions, asked: argparse.Namespace) -> bool:
    """The second turn of a chat: drafted on the cache of the first, plainly in a new process."""
    probe = find_exact(
        load.target, draft_tokens=max(asked.lengths), threads=default_threads(), gpu_layers=0
    )
    load = replace(load, numerics=require_exact(probe, best_effort=False))
    same = True
    for length in asked.lengths:
        with Session(replace(load, draft_tokens=length)) as session:
            for sampling in (GREEDY, SAMPLED):
                session.forget()
                first = prompts(session)[0]
                said = _answer(session, first, sampling, asked.tokens).tokens
                question = session.model.vocabulary.tokenize("\nGo on, please.\n", special=False)
                prompt = [*first, *said, *question]
                again = _answer(session, prompt, sampling, asked.tokens)
                fresh = _in_new_process(replace(load, drafts=()), prompt, sampling, asked.tokens)
                equal = again.tokens == fresh
                same &= equal
                print(
                    f"{load.target.name} k {length} temp {sampling.temp}: {again.cached_tokens} of "
                    f"{len(prompt)} tokens from the cache, same ids: {equal}",
                    flush=True,
                )
    return same


def _in_new_process(
    load: LoadOptions, prompt: list[int], sampling: SamplingOptions, tokens: int
) -> tuple[int, ...]:
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_plain_answer, (load, prompt, sampling, tokens))


def _plain_answer(
    load: LoadOptions, prompt: list[int], sampling: SamplingOptions, tokens: int
) -> tuple[int, ...]:
    with Session(load) as session:
        return _answer(session, prompt, sampling, tokens).tokens


def _settings(load: LoadOptions, asked: argparse.Namespace) -> Iterator[tuple[LoadOptions, str]]:
    """What to load, and the drafter to use."""
    yield replace(load, drafts=(), draft_tokens=0), "none"
    yield replace(load, drafts=(), draft_tokens=0, batch=32), "none"
    for length in asked.lengths:
        yield replace(load, draft_tokens=length), "model"
        yield replace(load, drafts=(), draft_tokens=length), "suffix"
    yield replace(load, draft_tokens=max(asked.lengths), batch=32), "model"


def _long_prompt(session: Session, size: int) -> list[int]:
    """About `size` tokens: a document and a question about it."""
    text = " ".join(entry.prompt for entry in built_in("verify"))
    ids = session.model.vocabulary.tokenize(text, special=False)
    document = [*ids] * (size // len(ids) + 1)
    template = ChatTemplate(session.model)
    question = template.tokens([{"role": "user", "content": "Continue the text above."}])
    return [*document[: max(1, size - len(question))], *question]


def _answer(
    session: Session,
    prompt: list[int],
    sampling: SamplingOptions,
    tokens: int,
    drafter: str = "auto",
) -> Answer:
    options = AnswerOptions(
        sampling,
        seed=3,
        max_tokens=tokens,
        drafter=drafter,
        draft_tokens=session.options.draft_tokens,
    )
    *_, last = answer(session, prompt, options)
    assert isinstance(last, Answer)
    return last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("matrix", choices=["coupled", "exact", "turn"])
    parser.add_argument("--target", default="qwen2.5-coder:1.5b")
    parser.add_argument("--draft", default="qwen2.5-coder:0.5b")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--lengths", type=int, nargs="+", default=[1, 3, 5, 8])
    parser.add_argument("--contexts", type=int, nargs="+", default=[50, 400, 1500])
    asked = parser.parse_args()
    target, draft = (_path(name) for name in (asked.target, asked.draft))
    load = LoadOptions(target, (DraftFile(draft),), context_size=2048)
    passed = {"coupled": coupled, "exact": exact, "turn": turn}[asked.matrix](load, asked)
    sys.exit(0 if passed else 5)


def _path(name: str) -> Path:
    found = resolve(name)
    assert isinstance(found, Path), f"specdec pull {name}"
    return found


if __name__ == "__main__":
    main()
