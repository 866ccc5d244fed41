"""Serves connectors: each is a dedicated connector of ours, with a worker cluster of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from keelman.api.connect.v1 import dedicated_connector_pb2 as pb
from keelman.api.connect.v1 import dedicated_connector_service_pb2 as calls
from keelman.api.connect.v1.operation_pb2 import Operation, OperationTarget
from keelman.api.connect.v1.operation_service_pb2 import ListOperationsRequest
from keelman.api.connect.v1.origin_pb2 import Origin
from keelman.gateway.access.accounts import Account
from keelman.gateway.access.signatures import SignedCaller
from keelman.gateway.calls import Calls
from keelman.gateway.managed_connect import arns, operations
from keelman.gateway.managed_connect import connector_documents as documents
from keelman.gateway.managed_connect.arns import Arn
from keelman.gateway.managed_connect.bounds import bound
from keelman.gateway.managed_connect.call import ManagedCall
from keelman.gateway.managed_connect.control import API, document_of, extra_of, is_taken, origin_of, present, tags_of
from keelman.gateway.managed_connect.errors import IDENTICAL, WireError, bad, bad_member, conflict, taken, worded
from keelman.gateway.managed_connect.managed_resources import ManagedResources
from keelman.gateway.managed_connect.members import CREATE_CONNECTOR, UPDATE_CONNECTOR, WORKER_SETTINGS
from keelman.gateway.managed_connect.pages import key_of, token_of
from keelman.gateway.managed_connect.pages import page as cut
from keelman.gateway.managed_connect.plugins import CustomPlugins
from keelman.gateway.managed_connect.worker_configurations import WorkerConfigurations
from keelman.model.errors import Conflict, FailedPrecondition, KeelmanError, NotFound

TOPIC_PREFIX = "__amazon_msk_connect_"
NOUN = "dedicated_connector"
ARN = "connectorArn"


class ConnectorChange(NamedTuple):
    """The changes of an update: the fields of a spec that it sets. `identical` is the member to name in the error if
    nothing differs from the present values, "" if something does."""

    spec: pb.DedicatedConnectorSpec
    fields: list[str]
    identical: str


class ManagedConnectors:
    """Calls on connectors and their operations. `account` returns what an account may name of the installation;
    `roles`: client properties for Kafka by execution role; `tls`: client properties for TLS without IAM;
    `most_workers`: the limit of workers in an account, 0 for none."""

    def __init__(
        self,
        control: Calls,
        plugins: CustomPlugins,
        configurations: WorkerConfigurations,
        *,
        account: Callable[[str], Account],
        roles: Mapping[str, Mapping[str, str]],
        tls: Mapping[str, str],
        most_workers: int,
    ) -> None:
        self._control = control
        self._plugins = plugins
        self._configurations = configurations
        self._account = account
        self._roles = roles
        self._tls = tls
        self._most_workers = most_workers
        self.kept: ManagedResources[pb.DedicatedConnector] = ManagedResources(
            control, arns.CONNECTOR, calls, noun="DedicatedConnector", field="dedicated_connector", part="spec"
        )

    async def create(self, call: ManagedCall) -> dict[str, Any]:
        """Begins the creation of a connector."""
        body = call.body(CREATE_CONNECTOR)
        documents.checked_config(body["connectorConfiguration"])
        capacity = documents.checked_capacity(body["capacity"])
        arn = arns.new_arn(arns.CONNECTOR, call.caller, body["connectorName"])
        spec = pb.DedicatedConnectorSpec(
            connector=arn.name, config=body["connectorConfiguration"], description=body.get("connectorDescription", ""),
            capacity=documents.capacity_message(capacity), topic_prefix=TOPIC_PREFIX, topic_suffix=arn.suffix,
            origin=origin_of(call.caller, arn.name), log_delivery=documents.log_delivery(body.get("logDelivery")),
            extra=extra_of(documents.document(arn, body, capacity), body.get("tags", {})),
        )  # fmt: skip
        spec.external.bootstrap_servers = body["kafkaCluster"]["apacheKafkaCluster"]["bootstrapServers"]
        properties = documents.client_properties(body, self._roles, self._tls, account=call.caller.account)
        spec.external.client_properties.update(properties)
        bound(spec, self._account(call.caller.account), call.caller)
        spec.plugins.extend(await self._plugins.reference(call.caller, body["plugins"]))
        ref = await self._configurations.reference(call.caller, body.get("workerConfiguration"))
        spec.MergeFrom(pb.DedicatedConnectorSpec(worker_configuration=ref))
        request = calls.CreateDedicatedConnectorRequest(
            name=arn.resource, spec=spec, request_id=call.request_id, max_workers_of_scope=self._most_workers
        )
        try:
            answer = await self._control.ask(request)
        except KeelmanError as error:
            raise taken("connectorName") if is_taken(error) else error from None
        connector = answer.dedicated_connector
        return {
            "connectorArn": str(documents.arn_of(connector)),
            "connectorName": connector.spec.connector,
            "connectorState": documents.state_of(connector),
        }

    async def describe(self, call: ManagedCall) -> dict[str, Any]:
        """Returns the whole description of a connector."""
        return documents.description(await self.kept.found(call.caller, self._arn(call)))

    async def page(self, call: ManagedCall) -> dict[str, Any]:
        """Returns a page of connectors."""
        prefix = call.parameter("connectorNamePrefix")
        request = calls.ListDedicatedConnectorsRequest(
            page_size=call.max_results, page_token=key_of(call, prefix), connector_prefix=prefix,
            origin=Origin(api=API, scope=call.caller.account),
        )  # fmt: skip
        answer = await self._control.ask(request)
        token = token_of(call, prefix, answer.next_page_token)
        return {"connectors": [documents.summary(connector) for connector in answer.dedicated_connectors]} | present(
            nextToken=token
        )

    async def update(self, call: ManagedCall) -> dict[str, Any]:
        """Begins a change of a connector's configuration, or of its workers."""
        arn, body, version = self._arn(call), call.body(UPDATE_CONNECTOR), call.parameter("currentVersion")
        if not version:
            raise bad_member("currentVersion", "The parameter is required.")
        connector = await self.kept.found(call.caller, arn)
        change = await self._change(call.caller, connector, body)
        request = calls.UpdateDedicatedConnectorRequest(
            name=connector.name, request_id=call.request_id, spec=change.spec, version=version, etag=connector.etag,
            skip_health_check=body.get("skipHealthValidation", False), max_workers_of_scope=self._most_workers,
        )  # fmt: skip
        request.update_mask.paths.extend(change.fields)
        # Always calls the state service: it knows whether this request itself has made the present change.
        answer = await self._ask(request)
        if change.identical and not answer.HasField("operation"):
            raise bad_member(change.identical, IDENTICAL)
        return self._begun(arn, answer) | {"connectorState": documents.state_of(answer.dedicated_connector)}

    async def delete(self, call: ManagedCall) -> dict[str, Any]:
        """Begins the deletion of a connector, also during another operation."""
        arn = self._arn(call)
        connector = await self.kept.found(call.caller, arn)
        request = calls.DeleteDedicatedConnectorRequest(
            name=connector.name, request_id=call.request_id, version=call.parameter("currentVersion")
        )
        try:
            answer = await self._ask(request)
        except NotFound:
            raise arns.unknown(arn) from None
        return {"connectorArn": str(arn), "connectorState": documents.state_of(answer.dedicated_connector)}

    async def pause(self, call: ManagedCall) -> dict[str, Any]:
        """Begins to pause a connector."""
        return await self._steered(call, calls.PauseDedicatedConnectorRequest)

    async def resume(self, call: ManagedCall) -> dict[str, Any]:
        """Begins to resume a connector."""
        return await self._steered(call, calls.ResumeDedicatedConnectorRequest)

    async def restart(self, call: ManagedCall) -> dict[str, Any]:
        """Begins to restart a connector, or only its failed tasks."""
        arn, only_failed = self._arn(call), call.flag("onlyFailedTasks")
        connector = await self.kept.found(call.caller, arn)
        version = document_of(connector.spec.extra)["kafkaConnectVersion"]
        if only_failed and not documents.restarts_tasks(version):
            raise bad_member("onlyFailedTasks", f"kafkaConnectVersion must be 3.7 or later; it is {version}.")
        request = calls.RestartDedicatedConnectorRequest(
            name=connector.name, request_id=call.request_id, only_failed=only_failed
        )
        return self._begun(arn, await self._control.ask(request))

    async def list_operations(self, call: ManagedCall) -> dict[str, Any]:
        """Returns a page of a connector's operations, the newest first."""
        arn = self._arn(call)
        connector = await self.kept.found(call.caller, arn)
        part, token = cut(
            call, "", await self._operations(connector),
            lambda operation: f"{operation.create_time.ToNanoseconds():020d}/{operation.uid}",
            newest_first=True,
        )  # fmt: skip
        return {"connectorOperations": [operations.summary(arn, operation) for operation in part]} | present(
            nextToken=token
        )

    async def describe_operation(self, call: ManagedCall) -> dict[str, Any]:
        """Returns the whole description of an operation."""
        arn = arns.parsed("connectorOperationArn", call.arn, arns.OPERATION, caller=call.caller)
        try:
            connector = await self.kept.found(call.caller, arn.connector)
        except WireError:
            raise arns.unknown(arn) from None
        for operation in await self._operations(connector):
            if operation.uid == arn.part:
                return operations.description(arn.connector, operation)
        raise arns.unknown(arn)

    async def _change(
        self, caller: SignedCaller, connector: pb.DedicatedConnector, body: dict[str, Any]
    ) -> ConnectorChange:
        """Returns the changes of an update. Raises WireError for members that exclude each other."""
        settings = {name: body[name] for name in WORKER_SETTINGS if body.get(name) not in (None, False)}
        if ("connectorConfiguration" in body) == bool(settings):
            raise bad(
                f"Exactly one of connectorConfiguration and worker settings ({', '.join(WORKER_SETTINGS)}) is legal."
            )
        if "connectorConfiguration" in body:
            return _changed_config(connector, body["connectorConfiguration"])
        if "workerConfiguration" in settings and "useDefaultWorkerConfiguration" in settings:
            raise bad_member("useDefaultWorkerConfiguration", "It excludes workerConfiguration.")
        stored = document_of(connector.spec.extra)
        changed, fields, spec = dict(stored), ["extra"], pb.DedicatedConnectorSpec()
        if "capacity" in settings:
            changed["capacity"] = documents.checked_capacity(settings["capacity"])
            spec.capacity.CopyFrom(documents.capacity_message(changed["capacity"]))
            fields.append("capacity")
        if "plugins" in settings:
            changed["plugins"] = settings["plugins"]
            spec.plugins.extend(await self._plugins.reference(caller, settings["plugins"]))
            fields.append("plugins")
        if "workerConfiguration" in settings:
            changed["workerConfiguration"] = settings["workerConfiguration"]
            ref = await self._configurations.reference(caller, settings["workerConfiguration"])
            spec.MergeFrom(pb.DedicatedConnectorSpec(worker_configuration=ref))
            fields.append("worker_configuration")
        elif "useDefaultWorkerConfiguration" in settings:
            changed.pop("workerConfiguration", None)
            fields.append("worker_configuration")
        spec.extra.CopyFrom(extra_of(changed, tags_of(connector.spec.extra)))
        return ConnectorChange(spec, fields, _member(settings) if changed == stored else "")

    async def _ask(self, request: Any) -> Any:
        """Returns the state service's answer. Raises WireError for a version that is not the present one."""
        try:
            return await self._control.ask(request)
        except Conflict as error:
            if error.reason != "VERSION_MISMATCH":
                raise
            reason = f"It is not the current version, which is {error.metadata['version']}."
            raise bad_member("currentVersion", reason) from None

    async def _steered(self, call: ManagedCall, request_type: Any) -> dict[str, Any]:
        arn = self._arn(call)
        connector = await self.kept.found(call.caller, arn)
        request = request_type(name=connector.name, request_id=call.request_id)
        try:
            return self._begun(arn, await self._control.ask(request))
        except NotFound:
            raise arns.unknown(arn) from None
        except FailedPrecondition as error:
            raise conflict(worded(error)) from None

    async def _operations(self, connector: pb.DedicatedConnector) -> list[Operation]:
        target = OperationTarget(noun=NOUN, name=connector.name)
        listed = await self._control.all(ListOperationsRequest, target=target)
        return [operation for operation in listed if operations.is_shown(operation)]

    def _arn(self, call: ManagedCall) -> Arn:
        return arns.parsed(ARN, call.arn, arns.CONNECTOR, caller=call.caller)

    def _begun(self, arn: Arn, answer: Any) -> dict[str, Any]:
        operation = arn.of_operation(answer.operation.uid) if answer.HasField("operation") else ""
        return present(connectorArn=str(arn), connectorOperationArn=str(operation))


def _changed_config(connector: pb.DedicatedConnector, config: dict[str, str]) -> ConnectorChange:
    documents.checked_config(config)
    present_config = dict(connector.spec.config)
    if config[documents.CLASS] != present_config[documents.CLASS]:
        raise bad_member(
            "connectorConfiguration", f"{documents.CLASS} cannot be changed; it is {present_config[documents.CLASS]}."
        )
    spec = pb.DedicatedConnectorSpec(config=config)
    return ConnectorChange(spec, ["config"], "connectorConfiguration" if config == present_config else "")


def _member(settings: Mapping[str, Any]) -> str:
    """Returns the member to name in the error if nothing would change."""
    capacity = settings.get("capacity")
    return next(iter(capacity)) if capacity else next(iter(settings))
