"""A client of the gateway, with the kinds and verbs of the command line."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import plugin_service_pb2 as pl
from keelman.api.connect.v1.operation_pb2 import OperationTarget
from keelman.api.connect.v1.plugin_import_pb2 import PluginImport
from keelman.api.connect.v1.worker_configuration_pb2 import WorkerConfiguration
from keelman.api.copy.v1 import copy_run_service_pb2 as cr
from keelman.cli import kinds
from keelman.cli.client.plugins import split_name
from keelman.cli.kinds import Kind
from keelman.model.document import document_parts
from keelman.model.errors import DeadlineExceeded, FailedPrecondition, InvalidArgument, NotFound, Unavailable
from keelman.rpc.batches import packed
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated_stream
from keelman.rpc.generated import messages_of, stub_of
from keelman.runtime.conflicts import again
from keelman.runtime.logs.redaction import HIDDEN

Resource: TypeAlias = Any  # a resource of the wire contract, of the given kind

CALL_SECONDS = 30.0
REPEAT_SECONDS = 1.0
"""After this time an unanswered write is sent again, so that a gateway that was just restarting can answer it."""
UID_LENGTH = 32
NO_LABELS: Mapping[str, str] = {}
WITH_TASKS: Mapping[str, bool] = {"include_tasks": True}


class Gateway:
    """Calls on one channel, its `link`. Errors come as the classes of keelman.model.errors."""

    def __init__(self, link: Any) -> None:
        self.link = link
        self._services: dict[Kind, Any] = {}

    def _service(self, kind: Kind) -> Any:
        """Returns the stub of the service of a kind."""
        if kind not in self._services:
            self._services[kind] = stub_of(self.link, kind.area, kind.field)
        return self._services[kind]

    async def list(
        self,
        kind: Kind,
        *,
        cluster: str = "",
        ended: bool = False,
        labels: Mapping[str, str] = NO_LABELS,
        workload: str = "",
        brokers: str = "",
        target: tuple[str, str] = ("", ""),
        audit: Mapping[str, Any] = NO_LABELS,
    ) -> Sequence[Resource]:
        """Returns all resources of a kind, from all pages. `cluster` narrows workers, connectors, copy runs and
        definitions, `labels` resources with labels, `workload` plans, `brokers` topics, `target` (noun and name)
        operations, `audit` the audit by fields of its request. Raises NotFound for an unknown cluster."""
        fields: dict[str, Any] = {"worker_cluster": cluster} if kind.in_cluster and kind is not kinds.PLUGINS else {}
        if labels:
            fields["labels"] = labels
        if workload:
            fields["workload"] = workload
        if brokers:
            fields["broker_cluster"] = brokers
        if any(target):
            fields["target"] = OperationTarget(noun=target[0], name=target[1])
        if kind is kinds.COPY_RUNS:
            fields["include_ended"] = ended
        if kind is kinds.AUDIT:
            fields |= audit
        items: list[Resource] = []
        while True:
            answer = await self.call("List", kind, **fields)
            for name, reason in getattr(answer, "unreachable", {}).items():
                print_unreachable(name, reason)
            items += getattr(answer, kind.fields)
            if not answer.next_page_token or (kind is kinds.AUDIT and "since" not in fields):
                return items
            fields["page_token"] = answer.next_page_token

    async def get(self, kind: Kind, name: str, *, cluster: str = "") -> Resource:
        """Returns one resource; `cluster` is its worker cluster. Raises NotFound."""
        fields = {"name": name}
        match kind:
            case kinds.PLANS:
                for plan in await self.list(kind):
                    if str(plan.revision) == name:
                        return plan
                raise NotFound(f"no plan {name!r}: see the newest in `keelman get plans`")
            case kinds.WORKLOADS:
                for workload in await self.list(kind):
                    if workload.name == name:
                        return workload
                raise NotFound(f"no workload {name!r}")
            case kinds.WORKERS:
                fields = {"name": await self.full_name(kind, name, cluster)}
            case kinds.CONNECTORS:
                owner, plain = await self.connector_name(name, cluster)
                fields = {"worker_cluster": owner, "name": plain}
            case kinds.DOCUMENTS:
                fields = dict(zip(("kind", "scope", "key"), document_parts(name), strict=True))
            case kinds.PLUGINS:
                plugin, version = split_name(name)
                fields = {"name": plugin, "version": version}
            case kinds.COPY_RUNS:
                fields = {"uid": await self._uid(name)}
        resource = _resource(kind, await self.call("Get", kind, **fields))
        if kind is kinds.COPY_RUNS and cluster not in ("", resource.worker_cluster):
            raise NotFound(f"copy run {name} belongs to worker cluster {resource.worker_cluster!r}, not to {cluster!r}")
        return resource

    def watch_copy_runs(self, *, cluster: str, connector: str) -> AsyncIterator[cr.WatchCopyRunsResponse]:
        """Yields the present copy runs, then each change; of one worker cluster and connector where they are named."""
        request = cr.WatchCopyRunsRequest(worker_cluster=cluster, connector=connector)
        return translated_stream(self._service(kinds.COPY_RUNS).WatchCopyRuns(request))

    async def _uid(self, name: str) -> str:
        """Returns the uid of the copy run whose uid begins with `name`. Raises InvalidArgument if several do."""
        if len(name) >= UID_LENGTH:
            return name
        uids = sorted({r.uid for r in await self.list(kinds.COPY_RUNS, ended=True) if r.uid.startswith(name)})
        if len(uids) > 1:
            raise InvalidArgument.of(
                "copy run", name, "more characters: several uids begin with it: " + ", ".join(uids)
            )
        return uids[0] if uids else name

    async def full_name(self, kind: Kind, name: str, cluster: str) -> str:
        """Returns the full name: a connector's and a worker's with its worker cluster, a plugin's with its version.
        Raises NotFound, and InvalidArgument for a name of another worker cluster than `cluster`."""
        if kind is kinds.CONNECTORS:
            return "/".join(await self.connector_name(name, cluster))
        if kind is kinds.WORKERS:
            return "/".join(filter(None, kinds.cluster_and_name(kind, name, cluster)))
        if kind is kinds.PLUGINS:
            return ":".join(await self.plugin_name(name))
        return name

    async def plugin_name(self, text: str) -> tuple[str, str]:
        """Returns name and version of a plugin; without a version in the text, its only version. Raises NotFound, and
        InvalidArgument where it has several."""
        name, version = split_name(text)
        if version:
            return name, version
        plugin = await self.get(kinds.PLUGINS, name)  # raises NotFound
        versions = [plugin.version for plugin in await self.list(kinds.PLUGINS) if plugin.name == name]
        if len(versions) > 1:
            raise InvalidArgument.of("plugin", text, f"NAME:VERSION, with one of {', '.join(versions)}")
        return name, plugin.version

    async def connector_name(self, name: str, cluster: str) -> tuple[str, str]:
        """Returns the worker cluster and the plain name of a connector; without a cluster, the only cluster that has
        the connector. Raises NotFound, and InvalidArgument where several clusters have it."""
        owner, plain = kinds.cluster_and_name(kinds.CONNECTORS, name, cluster)
        if owner:
            return owner, plain
        owners = [c.worker_cluster for c in await self.list(kinds.CONNECTORS) if c.name == name]
        if not owners:  # a list may be a second or two behind
            running = [c.name for c in await self.list(kinds.WORKER_CLUSTERS) if c.status.ready_workers]
            owners = [cluster for cluster in running if await self._has_connector(cluster, name)]
        if len(owners) == 1:
            return owners[0], name
        if not owners:
            raise NotFound(f"no connector {name!r}")
        raise InvalidArgument.of("connector", name, "CLUSTER/NAME, as it is in " + ", ".join(owners))

    async def _has_connector(self, cluster: str, name: str) -> bool:
        try:
            await self.call("Get", kinds.CONNECTORS, worker_cluster=cluster, name=name)
        except (NotFound, Unavailable):
            return False
        return True

    async def act(
        self,
        verb: str,
        kind: Kind,
        name: str,
        *,
        cluster: str = "",
        of: Mapping[str, bool] = WITH_TASKS,
        force: bool = False,
        etag: str = "",
    ) -> Resource:
        """Calls a verb on one resource; returns the resource if the answer contains it. `of` are the fields of a
        RestartConnectorRequest that select the parts to restart; `force` is for `stop` of clusters. Raises Conflict
        for an `etag` that is not the present one."""
        fields: dict[str, Any] = {"name": name}
        if kind is kinds.CONNECTORS:
            owner, plain = await self.connector_name(name, cluster)
            fields = {"worker_cluster": owner, "name": plain, **(of if verb == "restart" else {})}
            verb = "resume" if verb == "start" else verb
        if kind is kinds.PLUGINS:
            fields = dict(zip(("name", "version"), await self.plugin_name(name), strict=True))
        if force:
            fields["force"] = True
        if etag:
            fields["etag"] = etag
        return _resource(kind, await self.call(verb.capitalize(), kind, **fields))

    async def apply(self, kind: Kind, name: str, goal: int = 0) -> tuple[Resource, Any]:
        """Begins an operation on a topic or a definition; returns the resource and the operation. A `goal` of 0 is
        the goal that was requested last."""
        answer = await self.call("Apply", kind, name=name, goal=goal)
        return _resource(kind, answer), answer.operation

    async def write_batch(self, writes: Sequence[Any], *, validate_only: bool) -> Any:
        """Sends requests of several kinds in one transaction: if any is refused, none takes effect. With
        `validate_only` they are only judged."""
        return await self.call(
            "Write", kinds.BATCHES, writes=[packed(write) for write in writes], validate_only=validate_only
        )

    async def create(self, kind: Kind, name: str, spec: Any = None, **fields: Any) -> Resource:
        """Creates a resource from a spec or from other fields. A broker cluster starts, a worker cluster is stopped, a
        node is expected, a topic or definition is not applied yet.

        Prints notes on worker properties to stderr; `update` prints them for the properties that it sets."""
        fields |= {} if spec is None else {"spec": spec}
        return _noted(kind, await self.call("Create", kind, name=name, **fields))

    async def update(self, kind: Kind, name: str, edit: Callable[[Any], Sequence[str]]) -> tuple[Resource, bool]:
        """Changes the spec of a resource, or the description and labels of a plugin; returns the resource, and whether
        it changed.

        `edit` changes the given spec and returns the names of the changed fields. If the resource changes in between,
        it is read and edited once more. Raises Conflict if that happens again.
        """
        if kind is kinds.PLUGINS:
            name = ":".join(await self.plugin_name(name))

        async def work() -> tuple[Resource, bool]:
            resource = await self.get(kind, name)
            spec, present = _spec_of(kind, resource), _spec_of(kind, resource)
            mask = FieldMask(paths=edit(spec))
            if spec == present:
                return resource, False
            fields = {"name": name, "spec": spec}
            if kind in (kinds.PLUGINS, kinds.SECRETS):
                fields = {"name": resource.name, "description": spec.description, "labels": dict(spec.labels)}
                fields |= {"version": resource.version} if kind is kinds.PLUGINS else {}
            if kind in (kinds.WORKER_CONFIGURATIONS, kinds.PLUGIN_IMPORTS):
                fields = {"name": name, kind.field: spec}
            answer = await self.call("Update", kind, etag=resource.etag, update_mask=mask, **fields)
            return _noted(kind, answer), True

        return await again(work)

    async def add_revision(self, name: str, content: bytes, description: str) -> Resource:
        """Adds a revision to a worker configuration."""
        fields = {"name": name, "content": content, "description": description}
        answer = await self.call("Create", kinds.WORKER_CONFIGURATIONS, "Revision", **fields)
        return _resource(kinds.WORKER_CONFIGURATIONS, answer)

    async def create_connector(self, cluster: str, name: str, config: Mapping[str, str]) -> Resource:
        """Creates a connector in a running worker cluster; prints the notes on its configuration to stderr."""
        return await self._put_connector("Create", cluster, name, config)

    async def configure_connector(
        self, cluster: str, name: str, config: Mapping[str, str], *, etag: str = ""
    ) -> Resource:
        """Replaces a connector's whole configuration; prints the notes on it to stderr. Raises Conflict for an `etag`
        that is not the present one."""
        return await self._put_connector("Update", cluster, name, config, etag=etag)

    async def _put_connector(
        self, verb: str, cluster: str, name: str, config: Mapping[str, str], **more: str
    ) -> Resource:
        answer = await self.call(verb, kinds.CONNECTORS, worker_cluster=cluster, name=name, config=config, **more)
        for note in answer.connector.notes:
            print(f"keelman: note: {note}", file=sys.stderr)
        return answer.connector

    async def only_broker_cluster(self) -> str:
        """Returns the name of the only broker cluster, or `default` if several exist and it is among them. Raises
        NotFound where there is none, InvalidArgument for several without `default`."""
        names = [cluster.name for cluster in await self.list(kinds.BROKER_CLUSTERS)]
        if not names:
            raise NotFound("no broker cluster exists: see `keelman create broker-cluster --help`")
        if len(names) > 1 and "default" not in names:
            raise InvalidArgument(f"--broker-cluster: several exist: choose one of {', '.join(names)}")
        return names[0] if len(names) == 1 else "default"

    async def client_properties(self, broker_cluster: str) -> dict[str, str]:
        """Returns the Java client properties for a broker cluster; without a name for the only one, or `default`.

        Raises as `only_broker_cluster`, FailedPrecondition for a broker cluster without an address, and
        FailedPrecondition (HIDDEN) if its clients need hidden values.
        """
        name = broker_cluster or await self.only_broker_cluster()
        brokers = await self.get(kinds.BROKER_CLUSTERS, name)
        servers = brokers.status.bootstrap_servers or brokers.spec.external.bootstrap_servers
        if not servers:
            raise FailedPrecondition(f"broker cluster {name} has no address yet: see `keelman get bc {name}`")
        client = brokers.spec.external.client_properties or brokers.status.client_properties
        hidden = [key for key, value in sorted(client.items()) if HIDDEN in value]
        if profile := brokers.spec.external.credential_profile:
            hidden.append(f"what secret {profile!r} says")
        if hidden:
            raise FailedPrecondition(
                f"broker cluster {name}: its clients need {', '.join(hidden)}, which are secret: query its brokers "
                "with a client of your own",
                reason="HIDDEN",
            )
        return {**client, "bootstrap.servers": servers}

    async def storage_topics(self, worker_cluster: str) -> Any:
        """Returns the state service's description of a worker cluster's storage topics."""
        request = messages_of("connect", "worker_cluster").DescribeStorageTopicsRequest(name=worker_cluster)
        return await self._service(kinds.WORKER_CLUSTERS).DescribeStorageTopics(request, timeout=CALL_SECONDS)

    async def call(self, verb: str, kind: Kind, part: str = "", /, **fields: Any) -> Any:
        """Returns the answer of the RPC named by the verb and the kind, such as GetNode or ListNodes, plus a `part`.

        A request that can have a request id gets one, and is sent once more under the same id if the gateway was
        unreachable. Raises Unavailable without an answer in time, and the gateway's errors.
        """
        name = kind.rpc(verb) + part
        call = getattr(self._service(kind), name)
        request = getattr(messages_of(kind.area, kind.field), f"{name}Request")(**fields)
        repeats = "request_id" in request.DESCRIPTOR.fields_by_name
        if repeats:
            request.request_id = uuid.uuid4().hex
        try:
            try:
                return await call(request, timeout=CALL_SECONDS)
            except Unavailable as error:
                if not (repeats and error.reason == "UNREACHABLE"):
                    raise
            await asyncio.sleep(REPEAT_SECONDS)
            return await call(request, timeout=CALL_SECONDS, wait_for_ready=True)
        except DeadlineExceeded as error:
            raise Unavailable(f"the gateway gave no answer in time: {error.message}") from None


def print_unreachable(cluster: str, reason: str) -> None:
    """Prints to stderr that the connectors of a worker cluster are unknown."""
    who = "" if repr(cluster) in reason else f"worker cluster {cluster} did not answer: "
    print(f"keelman: {who}{reason}", file=sys.stderr, flush=True)


def _spec_of(kind: Kind, resource: Resource) -> Any:
    """Returns the part of a resource that can be changed, as a copy."""
    if kind in (kinds.PLUGINS, kinds.SECRETS):
        return pl.UpdatePluginRequest(description=resource.description, labels=dict(resource.labels))
    if kind in (kinds.WORKER_CONFIGURATIONS, kinds.PLUGIN_IMPORTS):
        spec: Any = WorkerConfiguration if kind is kinds.WORKER_CONFIGURATIONS else PluginImport
        return spec(description=resource.description, labels=dict(resource.labels))
    spec = type(resource.spec)()
    spec.CopyFrom(resource.spec)
    return spec


def _noted(kind: Kind, answer: Any) -> Resource:
    """Returns the resource in an answer, and prints the answer's notes to stderr."""
    for note in getattr(answer, "notes", ()):
        print(f"keelman: note: {note}", file=sys.stderr)
    return _resource(kind, answer)


def _resource(kind: Kind, answer: Any) -> Resource:
    """Returns the resource in an answer; None if it contains none."""
    return getattr(answer, kind.field, None)


@contextlib.asynccontextmanager
async def connect(address: str) -> AsyncIterator[Gateway]:
    """Yields a client of the gateway at host:port."""
    async with channel(address) as link:
        yield Gateway(link)
