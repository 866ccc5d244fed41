"""Serves worker configurations: each has one revision, a file of properties, sent as base64."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from keelman.api.connect.v1 import worker_configuration_service_pb2 as pb
from keelman.api.connect.v1.dedicated_connector_pb2 import WorkerConfigurationRef
from keelman.api.connect.v1.worker_configuration_pb2 import WorkerConfiguration, WorkerConfigurationRevision
from keelman.gateway.access.signatures import SignedCaller
from keelman.gateway.calls import Calls
from keelman.gateway.managed_connect import arns
from keelman.gateway.managed_connect.arns import Arn
from keelman.gateway.managed_connect.call import ManagedCall
from keelman.gateway.managed_connect.control import extra_of, is_taken, iso, origin_of, present
from keelman.gateway.managed_connect.errors import bad_member, not_found, taken
from keelman.gateway.managed_connect.managed_resources import ManagedResources
from keelman.gateway.managed_connect.members import CREATE_WORKER_CONFIGURATION
from keelman.gateway.managed_connect.pages import page as cut
from keelman.model.errors import InvalidArgument, KeelmanError

ACTIVE, DELETING = "ACTIVE", "DELETING"


class WorkerConfigurations:
    """Calls on worker configurations. `most` is the limit of configurations in an account, 0 for none."""

    def __init__(self, control: Calls, *, most: int) -> None:
        self._control, self._most = control, most
        self.kept: ManagedResources[WorkerConfiguration] = ManagedResources(
            control, arns.WORKER_CONFIGURATION, pb,
            noun="WorkerConfiguration", field="worker_configuration", with_secrets=True,
        )  # fmt: skip

    async def create(self, call: ManagedCall) -> dict[str, Any]:
        """Creates a worker configuration."""
        body = call.body(CREATE_WORKER_CONFIGURATION)
        name, description = body["name"], body.get("description", "")
        content = _content(body["propertiesFileContent"])
        arn = arns.new_arn(arns.WORKER_CONFIGURATION, call.caller, name)
        extra = extra_of({"region": arn.region}, body.get("tags", {}))
        request = pb.CreateWorkerConfigurationRequest(
            name=arn.resource, content=content, description=description, origin=origin_of(call.caller, name),
            extra=extra, request_id=call.request_id, max_of_scope=self._most,
        )  # fmt: skip
        try:
            answer = await self._control.ask(request)
        except InvalidArgument as error:
            raise bad_member("propertiesFileContent", error.message) from None
        except KeelmanError as error:
            raise taken("name") if is_taken(error) else error from None
        shown = self._summary(answer.worker_configuration)
        return {key: value for key, value in shown.items() if key != "description"}

    async def describe(self, call: ManagedCall) -> dict[str, Any]:
        """Returns a worker configuration, with its content as it was sent."""
        configuration = await self.kept.found(call.caller, self._arn(call))
        revision = configuration.revisions[-1]
        content = base64.b64encode(revision.content).decode()
        return self._summary(configuration) | {
            "latestRevision": _revision(revision) | {"propertiesFileContent": content}
        }

    async def page(self, call: ManagedCall) -> dict[str, Any]:
        """Returns a page of worker configurations."""
        prefix = call.parameter("namePrefix")
        configurations = [
            configuration
            for configuration in await self.kept.all(call.caller)
            if configuration.origin.key.startswith(prefix)
        ]
        part, token = cut(call, prefix, configurations, lambda configuration: configuration.name)
        return {"workerConfigurations": [self._summary(configuration) for configuration in part]} | present(
            nextToken=token
        )

    async def delete(self, call: ManagedCall) -> dict[str, Any]:
        """Deletes an unused worker configuration."""
        arn = self._arn(call)
        await self.kept.found(call.caller, arn)
        request = pb.DeleteWorkerConfigurationRequest(name=arn.resource, request_id=call.request_id)
        await self._control.ask(request)
        return {"workerConfigurationArn": str(arn), "workerConfigurationState": DELETING}

    async def reference(self, caller: SignedCaller, submitted: dict[str, Any] | None) -> WorkerConfigurationRef | None:
        """Returns the revision that a connector's `workerConfiguration` names. Raises WireError: 404 if unknown."""
        if submitted is None:
            return None
        member = "workerConfiguration.workerConfigurationArn"
        arn = arns.parsed(member, submitted["workerConfigurationArn"], arns.WORKER_CONFIGURATION, caller=caller)
        configuration, revision = await self.kept.found(caller, arn), submitted["revision"]
        if revision not in {revision.revision for revision in configuration.revisions}:
            raise not_found(f"The specified resource does not exist: revision {revision} of {arn}.")
        return WorkerConfigurationRef(name=configuration.name, revision=revision)

    def _arn(self, call: ManagedCall) -> Arn:
        return arns.parsed("workerConfigurationArn", call.arn, arns.WORKER_CONFIGURATION, caller=call.caller)

    def _summary(self, configuration: WorkerConfiguration) -> dict[str, Any]:
        return present(
            workerConfigurationArn=str(self.kept.arn_of(configuration)),
            workerConfigurationState=ACTIVE,
            name=configuration.origin.key,
            description=configuration.description,
            creationTime=iso(configuration.create_time),
            latestRevision=_revision(configuration.revisions[-1]),
        )


def _revision(revision: WorkerConfigurationRevision) -> dict[str, Any]:
    return present(creationTime=iso(revision.create_time), description=revision.description, revision=revision.revision)


def _content(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()).encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        raise bad_member("propertiesFileContent", "The content is not base64.") from None
