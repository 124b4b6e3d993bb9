"""Commands whose options are dataclasses, so that five commands can share thirty options.

A command asks for `load: LoadFlags, sampling: SamplingFlags`; typer sees one option per field.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, get_args, get_origin, get_type_hints


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """The same command, its dataclass parameters spread into one parameter per field."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if dataclasses.is_dataclass(hints[name]):
            names = _fields(hints[name], parameters)
            groups[name] = (hints[name], names)
        else:
            _word_metavar(hints[name])
            parameters.append(
                parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            )

    @functools.wraps(command)
    def spread(**values: Any) -> None:
        for name, (group, names) in groups.items():
            values[name] = group(**{field: values.pop(field) for field in names})
        command(**values)

    del spread.__wrapped__  # typer must not see the original
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return spread


def _fields(group: type, parameters: list[inspect.Parameter]) -> list[str]:
    hints = get_type_hints(group, include_extras=True)
    fields = dataclasses.fields(group)
    for field in fields:
        _word_metavar(hints[field.name])
        parameters.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=hints[field.name],
            )
        )
    return [field.name for field in fields]


def _word_metavar(hint: Any) -> None:
    """In help, say nothing beside a flag, and the choices beside a choice."""
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    for note in notes:
        if getattr(note, "metavar", "") is None:
            if kind is bool:
                note.metavar = ""
            elif isinstance(kind, type) and issubclass(kind, StrEnum):
                note.metavar = "|".join(kind)
