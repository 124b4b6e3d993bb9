"""llama.cpp's quantiser in a process of its own: it takes minutes, and cannot be interrupted."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from select import select

from specdec_cli.engine.language_model import Interrupted
from specdec_cli.engine.llama import library
from specdec_cli.engine.llama.quantize import failed, part_of, quantize
from specdec_cli.errors import ModelFileError

TENSOR = re.compile(r"\[ *(\d+)/ *(\d+)\]")  # how the quantiser counts in its log
PATIENCE = 0.2  # seconds between two looks at whether to stop


def quantize_apart(
    source: Path, output: Path, type: str, *, stop: Callable[[], bool]
) -> Iterator[float]:
    """As `quantize`, all tensors in the one type; yields the share that is done.

    Raises:
        ModelFileError: as `quantize`, or the process died.
        Interrupted: `stop` said so, and nothing is left behind.
    """
    child = subprocess.Popen(
        [sys.executable, "-m", __name__, str(source), str(output), type],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,  # select must see whatever has not been read
    )
    assert child.stdout is not None
    last: dict[str, str] = {}
    try:
        while True:
            ready, _, _ = select([child.stdout], [], [], PATIENCE)
            if stop():
                raise Interrupted
            if not ready:
                continue
            line = child.stdout.readline()
            if not line:
                break
            message = json.loads(line)
            if isinstance(message, float):
                yield message
            else:
                last = message
        if child.wait() != 0:
            if last:
                raise ModelFileError(last["message"], why=last["why"], fix=last["fix"])
            raise failed(output, f"its quantiser ended with {child.returncode}")
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        part_of(output).unlink(missing_ok=True)


def main(source: str, output: str, type: str) -> int:
    """Numbers on stdout as it goes on; where it fails, the error in the end."""

    def on_log(text: str) -> None:
        if found := TENSOR.match(text):
            _say((int(found[1]) - 1) / int(found[2]))

    library.show_log(on_log)
    try:
        quantize(Path(source), Path(output), type, pure=True)
    except ModelFileError as error:
        _say({"message": error.message, "why": error.why, "fix": error.fix})
        return 1
    return 0


def _say(message: object) -> None:
    print(json.dumps(message), flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
