"""What `/set` can change: options of the command line, read by the command line's own parser."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from specdec_cli.cli.failures import usage_error
from specdec_cli.cli.loading import check_together
from specdec_cli.cli.options import LoadFlags, option
from specdec_cli.cli.request_options import EndFlags, PromptFlags, SamplingFlags
from specdec_cli.errors import UsageError

if TYPE_CHECKING:
    from specdec_cli.app.chat.settings import Settings

DEFAULT = "default"  # as a value: what the chat was started with
SWITCHES = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
ROOM = 15  # guesses a round that `/set k` can go up to where `-k` asked for less


class OnFull(StrEnum):
    stop = "stop"
    drop_oldest = "drop-oldest"

    @property
    def drops(self) -> bool:
        return self is OnFull.drop_oldest


@dataclass(frozen=True)
class ChatFlags:
    """What only a chat has."""

    ghost: Annotated[
        bool,
        option("--ghost", panel="Chat",
               help="Show drafted tokens faintly before the target has judged them."),
    ] = False  # fmt: skip
    on_full: Annotated[
        OnFull,
        option("--on-full", panel="Chat",
               help="When the context is full: stop, or drop the oldest turns."),
    ] = OnFull.stop  # fmt: skip
    prompt_cache: Annotated[
        bool,
        option("--prompt-cache", panel="Chat",
               help="Keep what the models have read on disk, to resume at once."),
    ] = False  # fmt: skip
    no_save: Annotated[
        bool,
        option("--no-save", panel="Chat",
               help="Write nothing that was said or typed to disk; no prompt cache either."),
    ] = False  # fmt: skip


@dataclass(frozen=True)
class Flags:
    """The options of a running chat. `seed` is drawn by now."""

    load: LoadFlags
    sampling: SamplingFlags
    ends: EndFlags
    chat: ChatFlags
    seed: int

    def settings(self, *, plain: str = "") -> Settings:
        """For the next answer; `plain` is a reason beside the options' own."""
        from specdec_cli.app.chat.settings import Settings

        return Settings(
            sampling=self.sampling.options(),
            seed=self.seed,
            rule=self.load.accept.value,
            drafter=self.load.drafter.value,
            draft_tokens=self.load.guesses,
            max_tokens=self.ends.limit,
            stops=self.ends.stops,
            plain=plain or self.load.plain,
            on_full="drop-oldest" if self.chat.on_full.drops else "stop",
        )

    def values(self) -> dict[str, Any]:
        """Parameter name -> value, of all that can be set."""
        values = {name: getattr(getattr(self, group), name) for name, group in SETTABLE.items()}
        return {**values, "draft_tokens": self.load.length, "seed": self.seed}


SETTABLE = {  # parameter name -> the group of Flags it is in
    **{field.name: "sampling" for field in dataclasses.fields(SamplingFlags)},
    **dict.fromkeys(("draft_tokens", "drafter", "accept"), "load"),
    **{field.name: "ends" for field in dataclasses.fields(EndFlags)},
    **dict.fromkeys(("ghost", "on_full"), "chat"),
}


class Setter:
    """Changes one option of a chat at a time.

    Args:
        context: the parsed command line of the chat.
        start: the options it was started with.
    """

    def __init__(self, context: typer.Context, start: Flags) -> None:
        self._context = context
        self._start = start
        parameters = [p for p in context.command.params if p.name in SETTABLE]
        self._options: dict[str, Any] = {opt.lstrip("-"): p for p in parameters for opt in p.opts}
        self.names = sorted(_long(parameter) for parameter in parameters)

    def change(self, flags: Flags, name: str, value: str, *, most: int) -> Flags:
        """The options with another value, as `--name value` would have set it.

        Args:
            most: the draft length that the session was loaded for.

        Raises:
            UsageError: unknown, out of range, or not together with the other options.
        """
        parameter = self.parameter(name)
        assert parameter.name is not None
        if value == DEFAULT:
            new = self._start.values()[parameter.name]
        elif isinstance(flags.values()[parameter.name], bool):
            new = _switch(_long(parameter), value)
        else:
            new = self._parsed(parameter, value)
        changed = _with(flags, parameter.name, new)
        check_together(
            changed.load, changed.sampling.options(), PromptFlags(), [changed.load.accept]
        )
        if (changed.load.guesses or 0) > most:
            raise UsageError(
                f"-k cannot be {value} in this chat",
                why=f"the models were loaded for at most {most} guesses a round",
                fix=f"choose {most} or less, or start with -k {value}",
            )
        return changed

    def changed(self, flags: Flags) -> list[str]:
        """Names of what is not as it is built in."""
        groups = (LoadFlags(), SamplingFlags(), EndFlags(), ChatFlags())
        usual = Flags(*groups, seed=-1).values()
        now = flags.values()
        return [name for name in self.names if now[key := self._key(name)] != usual[key]]

    def parameter(self, name: str) -> Any:
        """Raises:
        UsageError: no option of that name can be set.
        """
        bare = name.lstrip("-").replace("_", "-")
        if bare in self._options:
            return self._options[bare]
        near = get_close_matches(bare, [*self._options, "system"], 1)
        raise UsageError(
            f"there is no setting {name!r}",
            why=f"the nearest is {near[0]}" if near else "it is none of the options of a chat",
            fix="/set lists them all; what loads a model is set when a chat starts",
        )

    def _key(self, name: str) -> str:
        return str(self.parameter(name).name)

    def choices(self, name: str) -> tuple[str, ...]:
        """Values to complete with."""
        parameter = self._options.get(name.lstrip("-"))
        if parameter is None:
            return ()
        if parameter.type_descriptor.annotation is bool:
            return ("on", "off", DEFAULT)
        return (*map(str, parameter.type_descriptor.choices or ()), DEFAULT)

    def _parsed(self, parameter: Any, value: str) -> Any:
        arguments = [f"--{_long(parameter)}={value}"]
        name, command, parent = self._context.info_name, self._context.command, self._context.parent
        try:
            made = command.make_context(name, list(arguments), parent=parent)
            return made.params[parameter.name]
        except TyperException as error:
            problem = usage_error(error, arguments)
            raise UsageError(
                problem.message, why=problem.why, fix="/set lists all values"
            ) from None


def _with(flags: Flags, name: str, value: Any) -> Flags:
    if name == "draft_tokens":
        load = replace(flags.load, draft_tokens=value, draft_tokens_alias=None)
        return replace(flags, load=load)
    group = SETTABLE[name]
    changed = replace(flags, **{group: replace(getattr(flags, group), **{name: value})})
    if name == "seed":
        return replace(changed, seed=changed.sampling.chosen_seed())
    return changed


def _switch(name: str, value: str) -> bool:
    if value.lower() not in SWITCHES:
        raise UsageError(
            f"{name} cannot be {value!r}", why="it is on or off", fix=f"/set {name} on"
        )
    return SWITCHES[value.lower()]


def _long(parameter: Any) -> str:
    return str(next(opt for opt in parameter.opts if opt.startswith("--"))).removeprefix("--")
