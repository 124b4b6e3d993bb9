"""A target's self draft: a low-bit copy of it, made once, that drafts for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from specdec_cli.app.make_draft import described, note
from specdec_cli.engine.gguf import read_header
from specdec_cli.engine.gguf_header import GGUFHeader
from specdec_cli.engine.language_model import Interrupted
from specdec_cli.engine.llama.quantizing import quantize_apart
from specdec_cli.errors import DownloadError, ModelFileError, UsageError
from specdec_cli.models.events import Done, Notice
from specdec_cli.models.files import check_space, prepare_directory, readable
from specdec_cli.models.origins import fingerprint, note_of, origin
from specdec_cli.models.pairing import SelfDraft, self_drafts
from specdec_cli.models.quants import bits_of, stem_of
from specdec_cli.models.store import models_directory

BITS = {"Q4_0": 4.5, "Q4_1": 5.0, "Q5_0": 5.5, "Q8_0": 8.5}  # a weight, its block's scale included
SPARE = 1.05  # the vocabulary, and vectors that are not quantised
PATIENCE = 0.2  # seconds between two looks at a lock


@dataclass(frozen=True, slots=True)
class Share:
    """How much of the copy is done, 0 to 1."""

    done: float


def make_self_draft(
    target: Path, type: str, *, force: bool = False, stop: Callable[[], bool] = lambda: False
) -> Iterator[Share | Notice | Done]:
    """Write the copy into the models directory and record whose draft it is.

    Args:
        type: one of BITS.
        force: make it again where it is there already.

    Raises:
        ModelFileError: the target is damaged, or there is no room or right to write the copy.
        UsageError: the copy would not be smaller, or its name is taken by another file.
        Interrupted: `stop` said so. Nothing half-made is left.
    """
    header = read_header(target)
    _require_smaller(target, header, type)
    own = fingerprint(target)
    output = models_directory() / f"{stem_of(target.name)}-{type}.gguf"
    if _is_there(output, target, own, force=force):
        yield Notice(f"{output.name} is there already (--force makes it again)")
        yield Done(output)
        return
    with _as_model_errors():
        prepare_directory(output.parent)
    yield Notice(
        f"making {output.name}, about {readable(_size(header, type))}: once for this model"
    )
    lock = FileLock(output.with_name(f".{output.name}.lock"), thread_local=False)
    try:
        yield from _wait(lock, output, stop)
        if _is_there(output, target, own, force=force):  # somebody else was faster
            yield Done(output)
            return
        with _as_model_errors():
            check_space(output.parent, _size(header, type))
        made = described(target, type, draft_of=own)
        for share in quantize_apart(target, output, type, stop=stop):
            yield Share(share)
        note(output, made)
    finally:
        if lock.is_locked:
            lock.release()
            with suppress(OSError):
                Path(lock.lock_file).unlink()
    yield Done(output)


def remove(name: str) -> SelfDraft:
    """Delete a self draft, named by its file name, stem or path.

    Raises:
        UsageError: there is none of that name; models of other kinds are never deleted.
        ModelFileError: the directory does not allow it.
    """
    made = {draft.path.name: draft for draft in self_drafts()}
    for draft in made.values():
        if name in (draft.path.name, draft.path.stem, str(draft.path)):
            try:
                draft.path.unlink()
                note_of(draft.path).unlink(missing_ok=True)
            except OSError as error:
                raise ModelFileError(
                    f"cannot delete {draft.path}",
                    why=error.strerror or str(error),
                    fix="check the permissions of the directory",
                ) from error
            return draft
    raise UsageError(
        f"there is no self draft {name}",
        why=f"there are {', '.join(made)}" if made else "none was made",
        fix="see what there is: specdec draft list",
    )


def _require_smaller(target: Path, header: GGUFHeader, type: str) -> None:
    """A copy of nearly the same size would be as slow as the target itself."""
    known = header.file_type and bits_of(header.file_type)
    bits = known or (8 * header.size / header.parameters if header.parameters else 0)
    if int(BITS[type]) < bits:
        return
    smaller = [name for name, size in BITS.items() if int(size) < bits]
    raise UsageError(
        f"a {type} copy of {target.name} would not be smaller",
        why=f"the model itself has about {bits:.0f} bits a weight",
        fix=f"take --low-bit {smaller[0]}"
        if smaller
        else "a draft model of the same family may help: -md",
    )


def _is_there(output: Path, target: Path, own: str, *, force: bool) -> bool:
    """Is the copy made already, and wanted as it is?

    Raises:
        UsageError: another file has its name.
    """
    if not output.exists():
        return False
    made = origin(output)
    if made is not None and made.draft_of == own:
        return not force
    if made is not None and made.draft_of is not None and force:
        return False
    raise UsageError(
        f"{output} is another file",
        why=f"it was not made as the self draft of this {target.name}",
        fix="--force replaces it"
        if made is not None and made.draft_of is not None
        else "move it away, or choose another directory with SPECDEC_MODELS",
    )


def _size(header: GGUFHeader, type: str) -> int:
    """About how many bytes the copy will have."""
    return int(header.parameters * header.split_count * BITS[type] / 8 * SPARE)


def _wait(lock: FileLock, output: Path, stop: Callable[[], bool]) -> Iterator[Notice]:
    """Take the lock; two that make one file take turns."""
    waiting = False
    while True:
        try:
            lock.acquire(timeout=PATIENCE if waiting else 0)
            return
        except Timeout:
            if not waiting:
                yield Notice(f"{output.name} is being made elsewhere; waiting for it")
            waiting = True
        if stop():
            raise Interrupted


@contextmanager
def _as_model_errors() -> Iterator[None]:
    """What the disk refuses has nothing to do with a download here."""
    try:
        yield
    except DownloadError as error:
        raise ModelFileError(error.message, why=error.why, fix=error.fix) from None
