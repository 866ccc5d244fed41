"""`keelman get`: things of a kind, once or as they change."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from keelman.api.connect.v1.topic_pb2 import Topic
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.plugin_classes import plugins_of
from keelman.cli.client.target import Target
from keelman.cli.client.topics import found_topics
from keelman.cli.commands import following
from keelman.cli.exits import OK
from keelman.cli.kinds import KINDS, Kind, check_option, kind_of
from keelman.cli.options import Cluster, Form, GatewayAddress, HomeFolder, MaybeName, command_group, kind_word, takes
from keelman.cli.output import columns, states
from keelman.cli.output.lines import plan_lines, topic_line
from keelman.cli.output.printing import WATCH_FORMATS, checked_format, print_list, print_one
from keelman.model.errors import InvalidArgument

app = command_group()


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """What was typed of which ones are wanted."""

    brokers: Annotated[
        str, typer.Option("--broker-cluster", metavar="BC", help="Broker cluster of topics [all; the only one].")
    ] = ""
    state: Annotated[str, typer.Option("--state", metavar="STATE", help="Only those in this state.")] = ""
    workload: Annotated[str, typer.Option("--workload", metavar="W", help="Only plans that change this workload.")] = ""
    of: Annotated[
        str,
        typer.Option(
            "--of", metavar="KIND/NAME", help="Only operations on this topic, definition or dedicated connector."
        ),
    ] = ""
    selector: Annotated[
        list[str] | None,
        typer.Option("-l", "--selector", metavar="K=V", help="Only those with this label: K=V, K!=V or K."),
    ] = None
    internal: Annotated[
        bool, typer.Option("--internal", help="Also the topics of Kafka, of keelman and of worker clusters.")
    ] = False
    ended: Annotated[bool, typer.Option("--ended", help="Also copy runs that have ended.")] = False

    def check(self, kind: Kind) -> None:
        """Raises InvalidArgument for what is not for this kind."""
        for option, given, legal in (
            ("--ended", self.ended, kinds.COPY_RUNS),
            ("--broker-cluster", self.brokers, kinds.TOPICS),
            ("--internal", self.internal, kinds.TOPICS),
            ("--workload", self.workload, kinds.PLANS),
            ("--of", self.of, kinds.OPERATIONS),
        ):
            if given:
                check_option(option, kind, [legal])


@app.command()
@takes(Narrowing, "only")
def get(
    kind: Annotated[str, kind_word("get")],
    name: MaybeName = None,
    *,
    output: Form = "table",
    cluster: Cluster = "",
    only: Narrowing,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep showing changes, until Ctrl-C.")] = False,
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Show one thing or all of a kind."""
    found, form = kind_of(kind, "get", cluster=cluster), checked_format(output, *([WATCH_FORMATS] if watch else []))
    only.check(found)
    about = target_of(only.of)
    if found is kinds.PLUGINS and cluster:
        found = kinds.PLUGIN_CLASSES
    wanted, chosen = checked_state(found, only.state), selector_of(found, only.selector or ())
    lines = found is kinds.PLANS and form in ("table", "wide")
    whole = found is kinds.TOPICS and name is not None and form in ("json", "yaml") and not watch
    target, over = Target(gateway, home), only.ended or wanted in states.OVER_STATES

    def keeps(one: Any) -> bool:
        shown = topic_line(one) if isinstance(one, Topic) else one
        is_of = not only.of or (one.target.noun, one.target.name) == about
        return is_of and (not wanted or states.state_of(found, shown) == wanted) and chosen(one)

    async def find(client: Gateway) -> Sequence[Any]:
        if found is kinds.PLUGIN_CLASSES:
            everything: Sequence[Any] = await plugins_of(client, target, cluster, name)
        elif found is kinds.TOPICS:
            everything = await found_topics(client, only.brokers, name, internal=only.internal)
        elif name is not None:
            everything = [await client.get(found, name, cluster=cluster)]
        else:
            everything = await client.list(
                found, cluster=cluster, ended=over, labels=chosen.equal, workload=only.workload, target=about
            )
        if found is kinds.TOPICS and not whole:
            everything = [topic_line(one) if isinstance(one, Topic) else one for one in everything]
        if lines:
            everything = plan_lines(everything, only.workload)
        return [one for one in everything if keeps(one)]

    async def body(client: Gateway) -> None:
        if watch:
            if found in following.NOUNS:
                await following.follow(client, found, keeps, form, name=name, cluster=cluster)
            await following.look_again(client, found, find, form)
        shown = await find(client)
        if name is not None and shown and not lines:
            print_one(found, shown[0], form)
            return
        print_list(found, shown, form, state=wanted)
        if found is kinds.CONNECTORS and not shown and not wanted:
            for text in at_rest(await client.list(kinds.WORKER_CLUSTERS), cluster):
                print(text, file=sys.stderr)

    with contextlib.suppress(*([KeyboardInterrupt] if watch else [])):
        return target.run(body)
    return OK


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


@dataclass(frozen=True, slots=True)
class Selector:
    """What -l asks of labels: a key, its value (None: any), and whether it is to be another one."""

    asked: Sequence[tuple[str, str | None, bool]]

    @property
    def equal(self) -> dict[str, str]:
        """What the state service can choose by itself."""
        return {key: value for key, value, other in self.asked if value is not None and not other}

    def __call__(self, resource: Any) -> bool:
        """Whether one has the labels that are asked for, each of them."""
        for key, value, other in self.asked:
            labels = columns.labels_of(resource)
            present = dict(labels).get(key)
            if (present is None) if value is None else ((present == value) == other):
                return False
        return True


def selector_of(kind: Kind, texts: Sequence[str]) -> Selector:
    """What -l says. Raises InvalidArgument."""
    if texts:
        check_option("-l", kind, [k for k in KINDS if "label" in k.verbs])
    asked: list[tuple[str, str | None, bool]] = []
    for text in (part.strip() for one in texts for part in one.split(",")):
        key, equals, value = text.partition("=")
        other = bool(equals) and key.endswith("!")
        key = (key[:-1] if other else key).strip()
        if not key:
            raise InvalidArgument.of("-l", text, "key=value, key!=value or key; several with commas")
        asked.append((key, value.strip() if equals else None, other))
    return Selector(asked)


def at_rest(clusters: Sequence[Any], only: str) -> list[str]:
    """What to say of worker clusters that do not run: they may have connectors, which only their workers could show."""
    return [
        f"worker cluster {c.name} is {columns.cluster_state(c)}: its connectors are known once it runs"
        for c in clusters
        if not c.status.ready_workers and only in ("", c.name)
    ]
