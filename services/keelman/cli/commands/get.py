"""`keelman get`: things of a kind, once or as they change."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from keelman.api.connect.v1.topic_pb2 import Topic
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.plugin_classes import plugins_of
from keelman.cli.client.target import GatewayTarget
from keelman.cli.client.topics import find_topics
from keelman.cli.commands import following
from keelman.cli.exits import OK
from keelman.cli.kinds import Kind, check_option, kind_of
from keelman.cli.moments import checked_past
from keelman.cli.options import Cluster, Form, MaybeName, check_meant, command_group, kind_word, option
from keelman.cli.output import states
from keelman.cli.output.lines import plan_lines, topic_line
from keelman.cli.output.printing import WATCH_FORMATS, checked_format, print_list, print_one
from keelman.cli.selectors import selector_of
from keelman.model.errors import InvalidArgument
from keelman.rpc.enums import state_word
from keelman.rpc.times import to_timestamp

app = command_group()
AUDIT_EVENTS = 1000
"""The number of audit events that are shown without --since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """The options that choose which ones are shown."""

    brokers: str = option(
        "--broker-cluster", "BC", "Broker cluster of topics [all; the only one].", (kinds.TOPICS,), default=""
    )
    state: str = option("--state", "STATE", "Only those in this state.", default="")
    workload: str = option("--workload", "W", "Only plans that change this workload.", (kinds.PLANS,), default="")
    of: str = option(
        "--of",
        "KIND/NAME",
        "Only operations on this topic, definition or dedicated connector.",
        (kinds.OPERATIONS,),
        default="",
    )
    selector: list[str] | None = option(
        "-l --selector", "SELECTOR", "Only those with these labels: K=V, K!=V, K in (A,B), K."
    )
    internal: bool = option(
        "--internal",
        None,
        "Also the topics of Kafka, of keelman and of worker clusters.",
        (kinds.TOPICS,),
        default=False,
    )
    caller: str = option("--caller", "NAME", "Only events of this caller.", (kinds.AUDIT,), default="")
    resource: str = option("--resource", "NAME", "Only events that name this resource.", (kinds.AUDIT,), default="")
    outcome: str = option(
        "--outcome", "WORD", "Only events with this outcome: OK, PERMISSION_DENIED, 403.", (kinds.AUDIT,), default=""
    )
    since: str = option(
        "--since",
        "WHEN",
        "Only events since then: 90d, 12h or 30m ago, or a date [the newest 1,000].",
        (kinds.AUDIT,),
        default="",
    )
    ended: bool = option("--ended", None, "Also copy runs that have ended.", (kinds.COPY_RUNS,), default=False)


@app.command()
def get(
    kind: Annotated[str, kind_word("get")],
    name: MaybeName = None,
    *,
    output: Form = "table",
    cluster: Cluster = "",
    only: Narrowing,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep showing changes, until Ctrl-C.")] = False,
    target: GatewayTarget,
) -> int:
    """Show one resource or all of a kind."""
    noun, form = kind_of(kind, "get", cluster=cluster), checked_format(output, *([WATCH_FORMATS] if watch else []))
    check_meant(noun, only)
    if noun is kinds.AUDIT and name is not None:
        raise InvalidArgument.of("name", name, "left out: --caller, --resource and --outcome choose events")
    about, audit = target_of(only.of), audit_fields(only)
    if noun is kinds.PLUGINS and cluster:
        noun = kinds.PLUGIN_CLASSES
    state, chosen = checked_state(noun, only.state), selector_of(noun, only.selector or ())
    lines = noun is kinds.PLANS and form in ("table", "wide")
    whole = noun is kinds.TOPICS and name is not None and form in ("json", "yaml") and not watch
    over = only.ended or state in states.OVER_STATES

    def keeps(resource: Any) -> bool:
        shown = topic_line(resource) if isinstance(resource, Topic) else resource
        is_of = not only.of or (resource.target.noun, resource.target.name) == about
        return is_of and (not state or states.state_of(noun, shown) == state) and chosen(resource)

    async def find(client: Gateway) -> Sequence[Any]:
        if noun is kinds.PLUGIN_CLASSES:
            everything: Sequence[Any] = await plugins_of(client, target, cluster, name)
        elif noun is kinds.TOPICS:
            everything = await find_topics(client, only.brokers, name, internal=only.internal)
        elif name is not None:
            everything = [await client.get(noun, name, cluster=cluster)]
        else:
            everything = await client.list(
                noun, cluster=cluster, ended=over, labels=chosen.equal, workload=only.workload, target=about,
                audit=audit,
            )  # fmt: skip
        if noun is kinds.TOPICS and not whole:
            everything = [topic_line(resource) if isinstance(resource, Topic) else resource for resource in everything]
        if lines:
            everything = plan_lines(everything, only.workload)
        return [resource for resource in everything if keeps(resource)]

    async def body(client: Gateway) -> None:
        if watch:
            if noun in following.WATCHED:
                await following.follow(client, noun, keeps, form, name=name, cluster=cluster)
            await following.look_again(client, noun, find, form)
        shown = await find(client)
        if name is not None and shown and not lines:
            print_one(noun, shown[0], form)
            return
        print_list(noun, shown, form, state=state)
        if noun is kinds.CONNECTORS and not shown and not state:
            for text in at_rest(await client.list(kinds.WORKER_CLUSTERS), cluster):
                print(text, file=sys.stderr)

    with contextlib.suppress(*([KeyboardInterrupt] if watch else [])):
        return target.run(body)
    return OK


def audit_fields(only: Narrowing) -> dict[str, Any]:
    """Returns the fields of a request for the audit. Raises InvalidArgument for an illegal time."""
    fields: dict[str, Any] = {"page_size": AUDIT_EVENTS}
    fields |= {"caller": only.caller, "resource": only.resource, "outcome": only.outcome.upper()}
    if only.since:
        fields["since"] = to_timestamp(checked_past("--since", only.since, datetime.now(UTC)))
    return fields


def target_of(text: str) -> tuple[str, str]:
    """Noun and name of what operations are on, typed as KIND/NAME; empty for any. Raises InvalidArgument."""
    if not text:
        return "", ""
    word, slash, name = text.partition("/")
    if not slash or not name:
        raise InvalidArgument.of("--of", text, "KIND/NAME, e.g. topic/orders")
    kind = kind_of(word)
    check_option("--of", kind, (*kinds.APPLIED, kinds.DEDICATED_CONNECTORS))
    return kind.field, name


def checked_state(kind: Kind, word: str) -> str:
    """The state that --state names; raises InvalidArgument that names the legal ones of this kind."""
    if not word:
        return ""
    legal = states.states(kind)
    if not legal:
        raise InvalidArgument(f"--state: {kind.plural} have no state")
    if word.upper() not in legal:
        raise InvalidArgument.of("--state", word, f"for {kind.plural} one of {', '.join(legal)}")
    return word.upper()


def at_rest(clusters: Sequence[Any], only: str) -> list[str]:
    """What to say of worker clusters that do not run: they may have connectors, which only their workers could show."""
    return [
        f"worker cluster {c.name} is {state_word(c.status)}: its connectors are shown once it runs"
        for c in clusters
        if not c.status.ready_workers and only in ("", c.name)
    ]
