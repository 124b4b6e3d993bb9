"""Configuration files: `./specdec.toml` over the user's own, a chosen profile over both.

Keys are the long names of options (`draft-tokens = 6`); a profile is a table
`[profiles.NAME]` of the same keys. What flags and environment variables add is the command
line's business.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from specdec_cli.errors import UsageError

LOCAL_FILE = Path("specdec.toml")
PROFILES = "profiles"


@dataclass(frozen=True, slots=True)
class Setting:
    """A configured value and where it stands, in words."""

    value: Any
    origin: str


def user_file() -> Path:
    return user_config_path("specdec") / "config.toml"


def read_settings(profile: str | None, known: Collection[str]) -> dict[str, Setting]:
    """All configured values, by key.

    Args:
        profile: the chosen profile, None for none.
        known: the keys that mean something.

    Raises:
        UsageError: a file that is not TOML, an unknown key, or a profile that no file has.
    """
    settings: dict[str, Setting] = {}
    profiles: dict[str, Setting] = {}
    names: set[str] = set()
    for path in (user_file(), LOCAL_FILE):
        table = _read(path)
        tables = table.pop(PROFILES, {})
        if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
            raise UsageError(
                f"{path} cannot be used",
                why="`profiles` must hold tables",
                fix="write [profiles.NAME]",
            )
        names |= set(tables)
        settings |= _settings(table, known, str(path))
        if profile in tables:
            profiles |= _settings(tables[profile], known, f"{path}, profile {profile}")
    if profile is not None and profile not in names:
        raise UsageError(
            f"there is no profile {profile!r}",
            why=f"profiles here: {', '.join(sorted(names)) or 'none'}",
            fix=f"add a table [profiles.{profile}] to {LOCAL_FILE} or {user_file()}",
        )
    return settings | profiles


def _settings(table: dict[str, Any], known: Collection[str], origin: str) -> dict[str, Setting]:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            raise UsageError(
                f"unknown key {key!r} in {origin}",
                why="keys are the long names of options",
                fix=f"did you mean {near[0]!r}?" if near else "see specdec run --help",
            )
    return {key: Setting(value, origin) for key, value in table.items()}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(
            f"cannot read the configuration in {path}", why=str(error), fix="mend or move the file"
        ) from error
