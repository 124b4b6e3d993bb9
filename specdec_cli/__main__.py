"""The entry point. Imports inside the guard: Ctrl-C while Python still starts is no traceback."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    try:
        from specdec_cli.cli.main import run_command

        code = run_command(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
