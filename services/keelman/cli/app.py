"""The list of commands: a line of help for each, and the module of `keelman.cli.commands` that contains it.

A module is imported only when one of its commands is called: the list itself must load fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from keelman.cli.exits import MEANINGS

COMMANDS = {
    "up": ("hosts.up", "Start the whole system on this machine."),
    "down": ("hosts.down", "Stop the system of this home."),
    "status": ("hosts.status", "Show what runs on this machine, and whether it is well."),
    "doctor": ("hosts.doctor", "Look for problems, and print a remedy for each."),
    "get": ("get", "Show one resource or all of a kind."),
    "describe": ("describe", "Show everything about one resource."),
    "create": ("create", "Create a cluster, connector, topic, plugin, node, ..."),
    "update": ("update", "Change a cluster, node, topic, definition, ..."),
    "scale": ("update", "Change the number of a cluster's workers."),
    "label": ("update", "Set or remove labels of clusters, nodes, topics, ..."),
    "apply": ("manifests.applying", "Make resources match files; or apply one of them."),
    "export": ("manifests.manifests", "Print resources as files that `apply -f` accepts."),
    "cancel": ("manifests.applying", "Cancel an operation."),
    "configure": ("connectors.configure", "Change a connector's configuration."),
    "validate": ("connectors.validate", "Check a connector's configuration."),
    "watch": ("connectors.watch", "Show the current copy runs, and each change."),
    "delete": ("verbs", "Delete a resource; prompts first on a terminal."),
    "start": ("verbs", "Start a cluster, or a stopped connector."),
    "stop": ("verbs", "Stop a cluster or a connector."),
    "pause": ("verbs", "Pause a connector and its tasks."),
    "resume": ("verbs", "Resume a paused or stopped connector."),
    "restart": ("verbs", "Restart workers, a connector, or tasks of one."),
    "cordon": ("hosts.nodes", "Place no new workloads on a node."),
    "uncordon": ("hosts.nodes", "Place new workloads on a node again."),
    "drain": ("hosts.nodes", "Move workloads from a node to other nodes."),
    "node": ("hosts.joining", "Let hosts join as nodes, and join as one."),
    "download": ("files.download", "Download a plugin's file."),
    "logs": ("logs", "Show the logs of a resource's processes."),
    "offsets": ("connectors.offsets", "Show, set or reset the offsets of a connector."),
    "peek": ("records.peek", "Show the last records of a topic."),
    "preview": ("records.preview", "Show how a connector changes a few real records."),
    "dead-letters": ("records.dead_letters", "Show the records that a connector could not copy."),
    "replay": ("records.dead_letters", "Send a connector's dead letters back."),
    "connector": ("connectors.connector", "Run a connector from one Python file."),
    "context": ("access.contexts", "Keep gateways by name, with how to reach each."),
    "print": ("access.acls", "Print the access rules of a worker cluster."),
    "authority": ("access.authority", "Show and replace the CA of the installation."),
    "token": ("access.tokens", "Make a token for a caller of the gateway."),
}
"""In the order of `keelman --help`: the command's module, and its line there."""


class KindCommands(TyperGroup):
    """The commands. Those whose first argument is a kind take KIND/NAME too."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns all commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Imports a command's module, and returns the command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"keelman.cli.commands.{COMMANDS[cmd_name][0]}")
        return typer.main.get_group(module.app).get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Returns the command and its words, with a first argument KIND/NAME split in two."""
        self.commands = cast("Any", dict.fromkeys(COMMANDS))  # the names to suggest from
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, rest if command is None else split_first_argument(command.params, rest)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the list, without importing the commands' modules."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Completes the names of commands, without importing their modules."""
        from typer._click.shell_completion import CompletionItem  # noqa: PLC0415

        named = [CompletionItem(name, help=COMMANDS[name][1]) for name in COMMANDS if name.startswith(incomplete)]
        return [*named, *super(TyperGroup, self).shell_complete(ctx, incomplete)]


def split_first_argument(params: list[Any], words: list[str]) -> list[str]:
    """Returns a command's words, with a first argument KIND/NAME split in two."""
    options = [p for p in params if p.param_type_name == "option"]
    arguments = [p for p in params if p.param_type_name == "argument"]
    if [p.name for p in arguments][:2] != ["kind", "name"]:
        return words
    valued = {text for p in options if not p.is_flag for text in p.opts}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in valued else 1
    kind, _, name = words[at].partition("/") if at < len(words) else ("", "", "")
    return [*words[:at], kind, name, *words[at + 1 :]] if name else words


app = typer.Typer(
    name="keelman",
    cls=KindCommands,
    help="Launches and supervises worker clusters that copy data in and out of Kafka, on Spark.",
    epilog="Exit codes: " + "; ".join(f"{code} {text}" for code, text in MEANINGS) + ". "
    "`keelman <service> run|config` runs one service: gateway, state, agent, broker, spark, worker; "
    "`keelman worker` needs only a broker.",
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Answers --version."""
    if version:
        from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415

        try:
            print(f"keelman {distribution('keelman').version}")
        except PackageNotFoundError:
            print("keelman, run from its sources without an installation")
        raise typer.Exit(0)
