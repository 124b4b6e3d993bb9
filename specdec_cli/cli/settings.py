"""Configured values reach options as click's defaults: flags and environment stay above them."""

from __future__ import annotations

from typing import Any

import typer

from specdec_cli.errors import UsageError

ORIGINS = "specdec.origins"  # under this key of a context's meta: parameter name -> origin
NOT_CONFIGURABLE = {"profile", "version", "help"}


def load_settings(context: typer.Context, profile: str | None) -> str | None:
    """Callback of `--profile`, which is parsed before all other options of its command."""
    if context.resilient_parsing or context.parent is None:  # completion; no command yet
        return profile
    from specdec_cli.app.configuration import read_settings

    given: dict[str, Any] = context.obj or {}
    profile = profile or given.get("profile")
    parameters = configurable(context)
    settings = read_settings(profile, known_keys(context))
    here = {parameters[key]: setting for key, setting in settings.items() if key in parameters}
    several = {p.name for p in context.command.params if getattr(p, "multiple", False)}
    context.default_map = {
        name: _checked(name, s.value, s.origin, several=name in several) for name, s in here.items()
    }
    context.default_map.update(given)  # flags before the command's name
    context.meta[ORIGINS] = {name: setting.origin for name, setting in here.items()}
    return profile


def pass_on(context: typer.Context, flags: object) -> None:
    """Flags that stand before the name of a command are that command's as well."""
    given = {
        name: value
        for name, value in vars(flags).items()
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    }
    context.obj = {**(context.obj or {}), **given}


def configurable(context: typer.Context) -> dict[str, str]:
    """Configuration key -> parameter name, for the options of this command."""
    keys = {}
    for parameter in context.command.params:
        longs = [name for name in parameter.opts if name.startswith("--")]
        if longs and parameter.name not in NOT_CONFIGURABLE and parameter.name is not None:
            keys[longs[0].removeprefix("--")] = parameter.name
    return keys


def known_keys(context: typer.Context) -> set[str]:
    """The keys of all commands: a key that only another command reads is not an error here."""
    root = context.find_root().command
    commands = [root]
    keys: set[str] = set()
    while commands:
        command = commands.pop()
        commands += getattr(command, "commands", {}).values()
        for parameter in command.params:
            keys |= {name.removeprefix("--") for name in parameter.opts if name.startswith("--")}
    return keys - NOT_CONFIGURABLE


def _checked(name: str, value: Any, origin: str, *, several: bool) -> Any:
    if isinstance(value, dict):
        key = name.replace("_", "-")
        raise UsageError(
            f"{key!r} in {origin} is a table", why="it needs a value", fix=f"write {key} = ..."
        )
    # One value will do where several may be: a draft that `run` takes is one that `bench` takes.
    return [value] if several and not isinstance(value, list) else value


def source_of(context: typer.Context, name: str) -> str:
    """Where the value of a parameter comes from, in words."""
    source = context.get_parameter_source(name)
    match source.name if source else "":
        case "COMMANDLINE":
            return "command line"
        case "ENVIRONMENT":
            parameter = next(p for p in context.command.params if p.name == name)
            return f"environment, {parameter.envvar}"
        case "DEFAULT_MAP":
            return str(context.meta[ORIGINS].get(name, "command line"))
    return "built-in"
