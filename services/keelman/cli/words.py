"""The two words KIND NAME as one, `connector/demo/in`: what `-o name` prints can be typed again."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class Words(TyperGroup):
    """The commands. Those whose first argument is a kind take KIND/NAME too."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command and its words, in which a kind and a name that came as one are two."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, rest if command is None else apart(command.params, rest)


def apart(params: list[Any], words: list[str]) -> list[str]:
    """A command's words with the first argument in two where it is KIND/NAME."""
    options = [p for p in params if p.param_type_name == "option"]
    arguments = [p for p in params if p.param_type_name == "argument"]
    if [p.name for p in arguments] != ["kind", "name"]:
        return words
    valued = {text for p in options if not p.is_flag for text in p.opts}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in valued else 1
    kind, _, name = words[at].partition("/") if at < len(words) else ("", "", "")
    return [*words[:at], kind, name, *words[at + 1 :]] if name else words
