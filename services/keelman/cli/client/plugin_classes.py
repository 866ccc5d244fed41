"""Lists the plugin classes that the workers of a cluster can run, each with its place and its problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from keelman.api.connect.v1 import plugin_service_pb2 as pb
from keelman.api.connect.v1.plugin_pb2 import WorkerPlugin
from keelman.api.connect.v1.plugin_service_pb2_grpc import PluginServiceStub
from keelman.cli.client.gateway import CALL_SECONDS, Gateway
from keelman.cli.client.rest import Where
from keelman.cli.client.target import GatewayTarget
from keelman.model.errors import NotFound, Unavailable


@dataclass(frozen=True, slots=True)
class ListedClass:
    """A connector, converter, transform, predicate or similar class; `name` is its class, empty for a file that cannot
    be read. `where` names the workers and the plugin with its file; it is empty for the workers' built-in classes."""

    name: str
    type: str
    version: str
    where: str = ""
    problem: str = ""

    @property
    def names(self) -> tuple[str, str, str]:
        """The class, its simple name, and the simple name without Connector."""
        simple = self.name.rpartition(".")[2]
        return self.name, simple, simple.removesuffix("Connector")


async def plugins_of(client: Gateway, target: GatewayTarget, cluster: str, name: str | None) -> Sequence[ListedClass]:
    """Returns the plugin classes that a worker cluster can run, only those with `name` if it is given: classes with
    problems first, then connectors, then by class. Raises NotFound for an unknown name."""
    reported = [_plugin(report) for report in await _read_reports(client, cluster)]
    listed: list[ListedClass] = []
    try:
        async with Where(cluster=cluster, target=target).open() as rest:
            entries = await rest.ask("GET", "/connector-plugins?connectorsOnly=false")
        listed = [ListedClass(entry["class"], entry["type"], entry.get("version") or "") for entry in entries]
    except (NotFound, Unavailable):
        if not reported:  # no worker is up: the reports may contain the reason
            raise
    reported_keys = {(plugin.name, plugin.version) for plugin in reported}
    everything = [*reported, *(plugin for plugin in listed if (plugin.name, plugin.version) not in reported_keys)]
    chosen = [plugin for plugin in everything if name in (None, *plugin.names)]
    if name is not None and not chosen:
        raise NotFound(f"no plugin {name!r}: see `keelman get plugins --cluster {cluster}`")
    return sorted(
        chosen, key=lambda plugin: (not plugin.problem, plugin.type not in ("source", "sink"), plugin.type, plugin.name)
    )


async def _read_reports(client: Gateway, cluster: str) -> Sequence[WorkerPlugin]:
    stub, reports = PluginServiceStub(client.link), list[WorkerPlugin]()
    request = pb.ListWorkerPluginsRequest(worker_cluster=cluster, page_size=1000)
    while True:
        answer = await stub.ListWorkerPlugins(request, timeout=CALL_SECONDS)
        reports += answer.worker_plugins
        if not answer.next_page_token:
            return reports
        request.page_token = answer.next_page_token


def _plugin(worker_plugin: WorkerPlugin) -> ListedClass:
    plugin = ListedClass(
        worker_plugin.class_name, worker_plugin.type, worker_plugin.version, problem=worker_plugin.problem
    )
    inside = f"{worker_plugin.plugin} {worker_plugin.path}".strip()
    return replace(plugin, where=f"{', '.join(worker_plugin.workers)}: {inside}")
