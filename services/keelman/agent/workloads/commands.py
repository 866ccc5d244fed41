"""Turns each kind of workload into a process: its files, its command, its ports, its health check."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import javaproperties

from keelman.agent.trust.broker_certificate import AUTHORITY, KEYSTORE, Certificate
from keelman.agent.trust.secrets import SECRETS, SecretFiles
from keelman.agent.workloads.driver_settings import driver_properties, driver_settings, link_settings, own_name
from keelman.api.node.v1.workload_pb2 import Workload
from keelman.connect.config.providers import secret_providers, with_secrets_file
from keelman.connect.policy.policy import INSTALLATION, PATHS, with_data_folder
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.workload import joined_address, spark_name
from keelman.runtime.home import Home, read_json
from keelman.runtime.processes.private_hosts import with_routes
from keelman.workers import reach_note
from keelman.workers.properties.plugin_folders import with_folders


@dataclass(frozen=True, slots=True)
class PreparedProcess:
    """A future process: its command line, its text files (by name in its folder), the (host, port) pairs that it opens.

    Every process answers gRPC health on `home.socket(<name of the workload>)`.
    """

    command: tuple[str, ...]
    files: Mapping[str, str]
    ports: tuple[tuple[str, int], ...]
    routes: Path | None = None
    """The file with its routes, if it has any."""
    folders: tuple[Path, ...] = ()
    """Its folders beside its own."""


REPORTS = "reports.properties"
PLUGINS = "plugins.json"  # digests of the plugins that it was last prepared with
OWN_KEYS = "keelman."  # of worker properties that Apache Kafka Connect does not know
HEAP_SHARE, MIN_HEAP_MB = 0.6, 128  # of the limit of a Java worker: the rest is for memory outside the heap
ROUTES = "routes.json"
MAX_BYTES = 1 << 20  # of PLUGINS and ROUTES: they are in a folder of the workload's user
STORES = {"tls_keystore": KEYSTORE, "tls_truststore": AUTHORITY}
MEMBER = "member.json"  # a worker's note of its place in its group, and whose; none when it has left in order
Command: TypeAlias = Callable[[Workload, Home], PreparedProcess]


def broker(
    workload: Workload, home: Home, data_root: Path | None = None, certificate: Certificate | None = None
) -> PreparedProcess:
    """Returns a managed broker; its data stays in the workload's folder, and its partitions in the folders below
    `data_root` that its spec names. `certificate` is that of the node's brokers."""
    spec, folder, socket = workload.spec.broker, home.workload(workload.name), home.socket(workload.name)
    votes = spec.controller or not spec.voters  # without voters it is the only controller
    settings = {
        "home": folder / "data",
        "host": spec.host,
        "port": spec.port,
        "node_id": spec.broker_id,
        "cluster_id": spec.kafka_cluster_id,
        "controller": "true" if votes else "false",
        "voters": spec.voters,
        "replicas": spec.replicas,
        "health_socket": socket,
        "properties": dict(spec.properties),
        **({"heap_mb": spec.heap_mb} if spec.heap_mb else {}),
        **({"metrics_port": spec.metrics_port} if spec.metrics_port else {}),
    }
    files = _stores(workload, spec.host, certificate) if spec.tls else {}
    settings |= {setting: folder / name for setting, name in STORES.items() if name in files}
    if spec.client_certificates:
        settings["client_certificates"] = "true"
    folders = data_folders(workload, home.broker_data if data_root is None else data_root)
    if folders:
        settings["data_folders"] = ",".join(map(str, folders))
    ports = [spec.port, *([spec.metrics_port] if spec.metrics_port else [])]
    if votes:
        settings["controller_port"] = spec.controller_port
        ports.append(spec.controller_port)
    opened = tuple((spec.host, port) for port in ports)
    prepared = PreparedProcess(
        _run("broker", folder), {**files, "settings.toml": toml(settings)}, opened, folders=folders
    )
    return routed(prepared, spec.routes, folder) if spec.routes else prepared


def _stores(workload: Workload, host: str, certificate: Certificate | None) -> Mapping[str, str]:
    """Returns the files with which a broker or a driver speaks TLS at its host. Raises FailedPrecondition where this
    node has no CA to get a certificate from, and Unavailable while the certificate has not come."""
    if certificate is None:
        raise FailedPrecondition(
            f"{workload.name} needs TLS, and this node has no certificate of the installation's CA to request its "
            "certificate with: join it with `keelman node join`",
            reason="NO_AUTHORITY",
        )
    return certificate.files(host)


def data_folders(workload: Workload, root: Path) -> tuple[Path, ...]:
    """Returns the folders of a broker's partitions, below the root; none for other workloads. Raises
    InvalidArgument."""
    return tuple(_below(root, data_folder) for data_folder in workload.spec.broker.data_folders)


def _below(root: Path, folder: str) -> Path:
    """Returns a folder of a spec, below the root. Raises InvalidArgument for a path that leaves it."""
    parts = PurePosixPath(folder).parts
    if ".." in parts or "," in str(root / folder):
        raise InvalidArgument.of("spec.broker.data_folders", folder, "a path without '..', and no comma in it or above")
    return root.joinpath(*(part for part in parts if part != "/"))


def spark(
    workload: Workload, home: Home, *, trust: str = "loopback", certificate: Certificate | None = None
) -> PreparedProcess:
    """Returns the node's Spark service or a driver of a Spark cluster, with this node's own settings for it if its home
    has a spark.toml. `trust` is the agent's setting of how traffic that leaves the host is secured; `certificate` that
    of the node's brokers, which drivers with TLS show too."""
    spec, folder, socket = workload.spec.spark, home.workload(workload.name), home.socket(workload.name)
    settings = {
        "master": spec.master,
        "trust": trust,
        **own_settings("spark", home),
        **({"master": spec.master, **driver_settings(spec, folder)} if spec.cluster else {}),
        "host": spec.host,
        "port": spec.port,
        "work_folder": folder / "work",
        "node": own_name(workload),
        "reports_bootstrap_servers": spec.reports_bootstrap_servers,
        "health_socket": socket,
        "reach_file": folder / reach_note.FILE,
    }
    files = {
        **_reports_file(spec.reports_client_properties, folder, settings),
        **(driver_properties(spec, folder, settings) if spec.cluster else {}),
        **(_stores(workload, spec.host, certificate) if spec.tls else {}),
        "settings.toml": toml(settings),
    }
    ports = tuple((spec.host, port) for port in (spec.port, spec.slot_port) if port)
    return PreparedProcess(_run("spark", folder), files, ports)


def _reports_file(properties: Mapping[str, str], folder: Path, settings: dict[str, Any]) -> dict[str, str]:
    """Returns the file with the client properties for the brokers of reports, named in the settings; none if they need
    none."""
    if not properties:
        return {}
    settings["reports_properties_file"] = folder / REPORTS
    return {REPORTS: javaproperties.dumps(sorted(properties.items()), timestamp=None)}


def own_settings(service: str, home: Home) -> dict[str, str]:
    """Returns the operator's settings for a service from <service>.toml of the node's home. Raises InvalidArgument."""
    file = home.root / f"{service}.toml"
    try:
        text = file.read_text(encoding="utf-8")
        return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in tomllib.loads(text).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InvalidArgument.of(str(file), "", f"a readable TOML file ({error})") from None


def worker(
    workload: Workload, home: Home, secrets: SecretFiles | None = None, tenant_users: str = ""
) -> PreparedProcess:
    """Returns a Connect worker, configured by a worker.properties like Connect's own, with a file of the secrets it may
    read. `tenant_users`: numbers of the users of tenants, whose connections it refuses."""
    spec, folder, socket = workload.spec.worker, home.workload(workload.name), home.socket(workload.name)
    if spec.kafka_connect:
        return kafka_connect(workload, home)
    plugins = {str(home.plugin(file.sha256)): f"{file.name} {file.version}" for file in spec.plugins}
    libraries = [str(home.plugin(file.sha256)) for file in spec.libraries]
    data = home.data(spec.worker_cluster)
    properties = with_data_folder(with_folders(spec.properties, list(plugins), libraries), str(data))
    secret_files: Mapping[str, str] = {}
    if secret_providers(properties):
        properties = with_secrets_file(properties, str(folder / SECRETS))
        secret_files = (secrets or SecretFiles(home)).files_of(workload.name)
    settings = {
        "properties_file": folder / "worker.properties",
        "member_file": folder / MEMBER,
        "brokers_file": folder / reach_note.FILE,
        "worker_cluster": spec.worker_cluster,
        "spark_address": _spark_address(workload, home),
        "reports_bootstrap_servers": spec.reports_bootstrap_servers,
        "health_socket": socket,
        **({"plugins": plugins} if plugins else {}),
        **_limits(workload),
        **({"refused_users": tenant_users} if tenant_users else {}),
        **({"routes": dict(spec.routes)} if spec.routes else {}),
    }
    files = {
        **_reports_file(spec.reports_client_properties, folder, settings),
        **secret_files,
        **link_settings(spec, folder, settings),
        "settings.toml": toml(settings),
        "worker.properties": javaproperties.dumps(sorted(properties.items()), timestamp=None),
        PLUGINS: json.dumps([file.sha256 for file in (*spec.plugins, *spec.libraries)]),
    }
    opened = tuple((spec.host, port) for port in (spec.port, spec.admin_port, spec.metrics_port) if port)
    folders = (data,) if str(data) in properties.get(INSTALLATION + PATHS, "").split(",") else ()
    return routed(PreparedProcess(_run("worker", folder), files, opened, folders=folders), spec.routes, folder)


def _spark_address(workload: Workload, home: Home) -> str:
    """Returns the address of the Spark service that copies for a worker: a tenant's has a Unix socket only."""
    spec = workload.spec.worker
    if spec.spark_address or not spec.tenant:
        return str(spec.spark_address)
    return f"unix:{home.socket(spark_name(workload.node, spec.tenant))}"


def _limits(workload: Workload) -> dict[str, Any]:
    """Returns the workload's limits, for the metrics of its process."""
    limits = workload.limits
    settings = {"limit_cpus": str(limits.cpus) if limits.cpus else "", "limit_memory_bytes": limits.memory_bytes}
    return {name: value for name, value in settings.items() if value}


def kafka_connect(workload: Workload, home: Home) -> PreparedProcess:
    """Returns a worker of Apache Kafka Connect; its heap follows from the workload's limit."""
    spec, folder, socket = workload.spec.worker, home.workload(workload.name), home.socket(workload.name)
    folders = [str(home.plugin(file.sha256)) for file in spec.plugins]
    own_properties = {key: value for key, value in spec.properties.items() if not key.startswith(OWN_KEYS)}
    properties = with_folders(own_properties, folders, [])
    settings: dict[str, Any] = {
        **own_settings("kafka_connect", home),
        "home": folder / "connect",
        "properties_file": folder / "worker.properties",
        "url": f"{'https' if spec.https else 'http'}://{joined_address(spec.host, spec.port)}",
        "libraries": ",".join(str(home.plugin(file.sha256)) for file in spec.libraries),
        "metrics_host": spec.host,
        "metrics_port": spec.metrics_port,
        "health_socket": socket,
    }
    if workload.limits.memory_bytes:
        settings["heap_mb"] = max(MIN_HEAP_MB, int(workload.limits.memory_bytes * HEAP_SHARE) >> 20)
    files = {
        "settings.toml": toml(settings),
        "worker.properties": javaproperties.dumps(sorted(properties.items()), timestamp=None),
        PLUGINS: json.dumps([file.sha256 for file in (*spec.plugins, *spec.libraries)]),
    }
    opened = tuple((spec.host, port) for port in (spec.port, spec.admin_port, spec.metrics_port) if port)
    return routed(PreparedProcess(_run("kafka_connect", folder), files, opened), spec.routes, folder)


def routed(prepared: PreparedProcess, routes: Mapping[str, str], folder: Path) -> PreparedProcess:
    """Returns the process with its own host names, if it has any."""
    file = folder / ROUTES
    files = {**prepared.files, ROUTES: json.dumps(dict(sorted(routes.items())))}
    if not routes:
        return replace(prepared, files=files)
    return replace(prepared, files=files, command=with_routes(prepared.command, file), routes=file)


def prepared_plugins(folder: Path) -> set[str]:
    """Digests of the plugins that the workload of a folder was last prepared with."""
    try:
        return set(read_json(folder / PLUGINS, MAX_BYTES))
    except (OSError, ValueError, TypeError):
        return set()


def farewell(folder: Path) -> tuple[str, ...]:
    """Returns the farewell command for a worker that died in this folder; empty when there is no note.

    The worker's note is put aside: the next worker of this folder notes its own place there.
    """
    aside = folder / f"gone-{MEMBER}"
    try:
        (folder / MEMBER).replace(aside)
    except FileNotFoundError:
        if not aside.exists():  # else an earlier agent ended before the farewell
            return ()
    files = ("--properties-file", str(folder / "worker.properties"), "--member-file", str(aside))
    command = (sys.executable, "-P", "-m", "keelman.worker.group.farewell", *files)
    return with_routes(command, folder / ROUTES) if _has_routes(folder) else command


def _has_routes(folder: Path) -> bool:
    try:
        return bool(read_json(folder / ROUTES, MAX_BYTES))
    except (OSError, ValueError):
        return False


def command_table(
    trust: str = "loopback",
    secrets: SecretFiles | None = None,
    data_root: Path | None = None,
    certificate: Certificate | None = None,
    tenant_users: str = "",
) -> dict[str, Command]:
    """Returns the starter of each kind of workload. `secrets` are those of the node's workers. Brokers' data folders
    are below `data_root`, by default in the home; `certificate` is shown by brokers and drivers with TLS.
    `tenant_users`: numbers of the users of tenants."""
    return {
        "broker": partial(broker, data_root=data_root, certificate=certificate),
        "spark": partial(spark, trust=trust, certificate=certificate),
        "worker": partial(worker, secrets=secrets, tenant_users=tenant_users),
    }


COMMANDS: Mapping[str, Command] = command_table()


def _run(service: str, folder: Path) -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", f"keelman.{service}", "run", "--file", str(folder / "settings.toml"))


def toml(values: Mapping[str, Any]) -> str:
    """Returns a TOML document of texts, whole numbers, paths and one level of text tables, tables last."""
    plain = [f"{k} = {_value(v)}\n" for k, v in values.items() if not isinstance(v, Mapping)]
    tables = [
        f"\n[{_text(k)}]\n" + "".join(f"{_text(n)} = {_value(v)}\n" for n, v in sorted(table.items()))
        for k, table in values.items()
        if isinstance(table, Mapping)
    ]
    return "".join(plain + tables)


def _value(value: object) -> str:
    return str(value) if isinstance(value, int) else _text(str(value))


def _text(text: str) -> str:
    # JSON's escapes are TOML's, but for the one control character that JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
