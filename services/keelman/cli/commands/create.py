"""`keelman create`, `configure` and `validate`: specs of clusters, and configurations of connectors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers, ManagedBrokers
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec, WorkerNodes
from keelman.cli import kinds
from keelman.cli.client.effects import before, wait_for
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.rest import ConnectorRest, Where
from keelman.cli.client.target import Target
from keelman.cli.exits import FAILED, OK, plain_plugins
from keelman.cli.kinds import Kind, cluster_and_name, kind_of
from keelman.cli.options import (
    Cluster,
    ConfigFile,
    ConfigValues,
    Form,
    GatewayAddress,
    HomeFolder,
    Name,
    TextForm,
    Wait,
    WaitSeconds,
    Worker,
    command_group,
    kind_word,
    seconds_of,
)
from keelman.cli.output import columns
from keelman.cli.output.printing import TEXT_FORMATS, checked_format, on_one_line, print_document, print_one
from keelman.model.errors import InvalidArgument, KeelmanError, NotFound

app = command_group()
UNKNOWN_CLASS = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException: "
LIMITS = "keelman.limit."
"""Keys that change while the copy runs of a connector live on."""
_CLUSTERS = (kinds.BROKER_CLUSTERS, kinds.WORKER_CLUSTERS)
_MEANT_FOR: Mapping[str, tuple[Kind, ...]] = {
    "--nodes": _CLUSTERS,
    "--managed": (kinds.BROKER_CLUSTERS,),
    "--bootstrap-servers": (kinds.BROKER_CLUSTERS,),
    "--count": (kinds.WORKER_CLUSTERS,),
    "--property": _CLUSTERS,
    "--cluster": (kinds.CONNECTORS,),
    "--config-file": (kinds.CONNECTORS,),
    "--set": (kinds.CONNECTORS,),
}


@app.command()
def create(
    kind: Annotated[str, kind_word("create")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    *,
    nodes: Annotated[str, typer.Option("--nodes", metavar="A,B", help="Nodes for its brokers or workers.")] = "",
    managed: Annotated[bool, typer.Option("--managed", help="Brokers on our nodes.")] = False,
    bootstrap_servers: Annotated[str, typer.Option("--bootstrap-servers", help="Brokers that exist already.")] = "",
    broker_cluster: Annotated[
        str, typer.Option("--broker-cluster", help="Broker cluster of a worker cluster.")
    ] = "default",
    count: Annotated[int | None, typer.Option("--count", help="So many workers, anywhere [1].", min=1)] = None,
    properties: Annotated[
        list[str] | None, typer.Option("--property", metavar="K=V", help="Broker, client or worker property.")
    ] = None,
    cluster: Cluster = "",
    config_file: ConfigFile = None,
    values: ConfigValues = None,
    start: Annotated[bool, typer.Option("--start", help="Also start the new worker cluster.")] = False,
    wait: Wait = False,
    timeout: WaitSeconds = None,
    output: Form = "name",
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Create a broker cluster, a worker cluster (stopped, unless --start) or a connector."""
    seconds, found, form = seconds_of(wait, timeout), kind_of(kind, "create"), checked_format(output)
    given = (nodes, managed, bootstrap_servers, count, properties, cluster, config_file, values)
    check_options(found, dict(zip(_MEANT_FOR, given, strict=True)), start=start)
    owner, plain = cluster_and_name(found, name, cluster)
    if found is kinds.CONNECTORS and not owner:
        raise InvalidArgument.of("connector", name, "CLUSTER/NAME, or NAME with --cluster WC")
    if seconds is not None and found is kinds.WORKER_CLUSTERS and not start:
        raise InvalidArgument("--wait: a new worker cluster is stopped; give --start too, or wait on `keelman start`")
    made_of: Any
    if found is kinds.BROKER_CLUSTERS:
        made_of = broker_spec(nodes, properties or (), managed=managed, bootstrap_servers=bootstrap_servers)
    elif found is kinds.WORKER_CLUSTERS:
        made_of = worker_spec(nodes, properties or (), count=count, broker_cluster=broker_cluster)
    else:
        made_of = connector_config(config_file, values or ())

    async def body(client: Gateway) -> None:
        if found is kinds.BROKER_CLUSTERS:
            made = await client.create_broker_cluster(name, made_of)
        elif found is kinds.WORKER_CLUSTERS:
            made = await client.create_worker_cluster(name, made_of)
            if start:
                made = await client.act("start", found, name)
        else:
            made = await client.create_connector(owner, plain, made_of)
        if seconds is not None:
            made = await wait_for(client, "start", found, columns.key_of(found, made), seconds=seconds)
        print_one(found, made, form)

    return Target(gateway, home).run(body)


@app.command()
def configure(
    kind: Annotated[str, kind_word("configure")],
    name: Name,
    *,
    config_file: Annotated[
        Path | None,
        typer.Option("--config-file", metavar="FILE", help="In place of its configuration, .json or .properties."),
    ] = None,
    values: ConfigValues = None,
    gone: Annotated[
        list[str] | None, typer.Option("--unset", metavar="K", help="A key to remove; may be repeated.")
    ] = None,
    cluster: Cluster = "",
    wait: Wait = False,
    timeout: WaitSeconds = None,
    output: Form = "name",
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Change a connector's configuration. Its limits (keelman.limit.*) change while it runs; all else restarts it."""
    seconds, found, form = seconds_of(wait, timeout), kind_of(kind, "configure"), checked_format(output)
    given, removed = pairs("--set", values or ()), gone or ()
    if config_file is None and not given and not removed:
        raise InvalidArgument("nothing to change: give --config-file FILE, --set KEY=VALUE or --unset KEY")
    whole = None if config_file is None else read_config(config_file)
    if both := sorted(set(given) & set(removed)):
        raise InvalidArgument(f"--unset: {both[0]} is also given with --set")

    async def body(client: Gateway) -> None:
        connector = await client.get(found, name, cluster=cluster)
        config = {**(connector.config if whole is None else whole), **given}
        for key in removed:
            if key not in config:
                where = f"connector {connector.name}" if config_file is None else config_file
                raise InvalidArgument(f"--unset: {where} has no {key}")
            del config[key]
        full = columns.key_of(found, connector)
        changed = {key for key in {**connector.config, **config} if connector.config.get(key) != config.get(key)}
        lives_on = all(key.startswith(LIMITS) for key in changed)
        was = None if seconds is None or lives_on else await before(client, "configure", found, full)
        made = await client.configure_connector(connector.worker_cluster, connector.name, config)
        if seconds is not None:
            made = await wait_for(client, "configure", found, full, seconds=seconds, was=was)
        print_one(found, made, form)

    return Target(gateway, home).run(body)


@app.command()
def validate(
    name: Name,
    *,
    config_file: ConfigFile = None,
    values: ConfigValues = None,
    cluster: Cluster = "",
    worker: Worker = "",
    output: TextForm = "text",
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Check a connector's configuration, new or stored, and change nothing. Exit code 1 when something is wrong.

    Without --config-file it is the configuration that the connector has, with each --set over it.
    """
    form, given = checked_format(output, TEXT_FORMATS), pairs("--set", values or ())
    whole = None if config_file is None else read_config(config_file)
    new = whole is not None or "connector.class" in given

    async def body(rest: ConnectorRest) -> int:
        config = {**(whole or {}), **given} if new else {**await rest.ask("GET", "/config"), **given}
        config.setdefault("name", rest.name)
        kind = config.get("connector.class", "")
        if not kind:
            raise InvalidArgument("connector.class: not set: give it in the file, or --set connector.class=...")
        wrong = await _problems(rest, kind, config)
        if form != "text":
            print_document({"connector": rest.full, "problems": wrong}, form)
        elif not wrong:
            print(f"connector/{rest.full}: no problem found")
        else:
            for one in wrong:
                print(on_one_line(f"{one['key']}: {one['problem']}"))
        return FAILED if wrong else OK

    where = Where(Target(gateway, home), cluster, worker)
    try:
        return where.ask_connector(name, body, new=new)
    except NotFound as error:
        if new:
            raise
        hint = "give the configuration of a new one with --config-file FILE or --set connector.class=..."
        raise NotFound(f"{error.message}; {hint}") from None


async def _problems(rest: ConnectorRest, kind: str, config: Mapping[str, str]) -> list[dict[str, str]]:
    try:
        path = f"/connector-plugins/{quote(kind, safe='')}/config/validate"
        return problems_of(await rest.cluster.ask("PUT", path, config))
    except KeelmanError as error:  # Connect finds no class, or no version of it: it says nothing of other keys then
        if not error.message.startswith(UNKNOWN_CLASS):
            raise
        return [{"key": "connector.class", "problem": plain_plugins(error.message.removeprefix(UNKNOWN_CLASS))}]


def problems_of(answer: Mapping[str, Any]) -> list[dict[str, str]]:
    """Key and text of each problem in what Connect answers to a configuration, by key."""
    found = sorted((one["value"]["name"], text) for one in answer["configs"] for text in one["value"]["errors"])
    return [{"key": key, "problem": text} for key, text in found]


def check_options(kind: Kind, given: Mapping[str, object], *, start: bool) -> None:
    """Raises InvalidArgument for an option that says nothing about this kind."""
    for option, value in given.items():
        if value and kind not in (meant := _MEANT_FOR[option]):
            raise InvalidArgument(f"{option}: not for a {kind.singular}, only for {', '.join(k.plural for k in meant)}")
    if start and kind is not kinds.WORKER_CLUSTERS:
        raise InvalidArgument(f"--start: only for worker-clusters; a {kind.singular} starts by itself")


def broker_spec(
    nodes: str, properties: Sequence[str], *, managed: bool = False, bootstrap_servers: str = ""
) -> BrokerClusterSpec:
    """Spec of a broker cluster. Raises InvalidArgument unless it is either managed or external."""
    found = pairs("--property", properties)
    if bootstrap_servers and (managed or nodes):
        raise InvalidArgument("--bootstrap-servers: not together with --managed or --nodes: the brokers run elsewhere")
    if bootstrap_servers:
        return BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers=bootstrap_servers, client_properties=found))
    names = listed(nodes)
    if not names:
        raise InvalidArgument(
            "--nodes: a managed broker cluster needs its nodes (see `keelman get nodes`); "
            "brokers that exist already are named with --bootstrap-servers host:port"
        )
    return BrokerClusterSpec(managed=ManagedBrokers(nodes=names, properties=found))


def worker_spec(
    nodes: str, properties: Sequence[str], *, count: int | None, broker_cluster: str = "default"
) -> WorkerClusterSpec:
    """Spec of a worker cluster: on the given nodes, or so many workers anywhere (1 when nothing is said)."""
    if nodes and count is not None:
        raise InvalidArgument("--count: not together with --nodes: one worker runs on each of these")
    spec = WorkerClusterSpec(broker_cluster=broker_cluster, properties=pairs("--property", properties))
    if nodes:
        spec.nodes.CopyFrom(WorkerNodes(names=listed(nodes)))
    else:
        spec.count = count or 1
    return spec


def connector_config(file: Path | None, values: Sequence[str]) -> dict[str, str]:
    """A connector's configuration: the file's, with --set over it. Raises InvalidArgument for an unreadable file."""
    config = {**(read_config(file) if file else {}), **pairs("--set", values)}
    if "connector.class" not in config:
        raise InvalidArgument("connector.class: not set: give --config-file FILE, or --set connector.class=...")
    return config


def read_config(file: Path) -> dict[str, str]:
    """A configuration from a .properties file, or from JSON: the bare map, or Connect's {"name":…, "config":{…}}."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InvalidArgument(f"--config-file: {file}: {reason}") from None
    if file.suffix != ".json":
        import javaproperties  # noqa: PLC0415  (part of the worker's extra, needed for such files only)

        return {str(k): str(v) for k, v in javaproperties.loads(text).items()}
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidArgument(f"--config-file: {file} is not JSON: {error}") from None
    config = document.get("config", document) if isinstance(document, dict) else None
    if not isinstance(config, dict) or any(isinstance(v, dict | list) for v in config.values()):
        raise InvalidArgument(f"--config-file: {file}: wanted a JSON object of texts, or one under the key config")
    return {k: _text(v) for k, v in config.items() if v is not None}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """key=value texts as a map. Raises InvalidArgument for a text without '='."""
    made: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InvalidArgument.of(option, text, "key=value")
        made[key.strip()] = value
    return made


def listed(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
