"""Builds requests from manifests of the kinds without a spec in the protocol: secrets, worker configurations, plugins,
plugin imports and documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message

from keelman.api.connect.v1.worker_configuration_pb2 import WorkerConfiguration
from keelman.api.connect.v1.worker_configuration_service_pb2 import CreateWorkerConfigurationRevisionRequest
from keelman.cli.client.gateway import Gateway
from keelman.cli.manifests.forms import Form, plain
from keelman.cli.manifests.manifest import HIDDEN, Manifest
from keelman.model.document import document_parts
from keelman.model.errors import InvalidArgument

WORDS = ("description", "labels")
NAMES = ("name", "request_id", "labels", "origin", "extra", "max_of_scope")


def described(resource: Any) -> dict[str, Any]:
    """Returns the description of a resource as a field, if it has one."""
    return {"description": resource.description} if resource.description else {}


@dataclass(frozen=True, slots=True)
class KeptForm(Form):
    """The form of resources that are created from fields of a request, some of which never change."""

    without: tuple[str, ...] = NAMES

    def labels_of(self, resource: Any) -> dict[str, str]:
        """Returns the labels of a resource."""
        return dict(resource.labels)

    def create(self, name: str, filled: Any) -> list[Message]:
        """Returns the requests that create a resource. Raises InvalidArgument."""
        filled.name = name
        return [filled]

    def _words(self, present: Any, filled: Any, **fields: Any) -> list[Message]:
        """Returns the request that sets description and labels of a resource."""
        return [self.request("Update", name=present.name, update_mask=FieldMask(paths=WORDS), **fields)]


@dataclass(frozen=True, slots=True)
class SecretForm(KeptForm):
    """The form of secrets, whose values are never shown."""

    def create(self, name: str, filled: Any) -> list[Message]:
        """Returns the requests that create a resource. Raises InvalidArgument."""
        if hidden := [key for key, value in filled.values.items() if value == HIDDEN]:
            raise InvalidArgument.of(
                f"spec.values.{hidden[0]}", HIDDEN, "its value: no secret is stored under this name"
            )
        return KeptForm.create(self, name, filled)

    def update(self, present: Any, filled: Any) -> list[Message]:
        """Returns the requests that change a resource. Raises InvalidArgument."""
        hidden = {key for key, value in filled.values.items() if value == HIDDEN}
        if hidden and (hidden != set(filled.values) or hidden != set(present.keys)):
            legal = f"all of its keys with {HIDDEN}, which leaves the values as they are, or all with their values"
            raise InvalidArgument.of(
                "spec.values", ", ".join(filled.values), f"{legal}; its keys: {', '.join(present.keys)}"
            )
        paths = WORDS if hidden else ("values", *WORDS)
        values = {} if hidden else dict(filled.values)
        return [
            self.request(
                "Update", name=present.name, values=values, description=filled.description, labels=dict(filled.labels),
                update_mask=FieldMask(paths=paths),
            )
        ]  # fmt: skip

    def shown(self, resource: Any) -> dict[str, Any]:
        """Returns a resource as the spec of its manifest."""
        return {**described(resource), "values": dict.fromkeys(resource.keys, HIDDEN)}


@dataclass(frozen=True, slots=True)
class ConfigurationForm(KeptForm):
    """The form of worker configurations; a manifest contains the newest revision."""

    def create(self, name: str, filled: Any) -> list[Message]:
        """Returns the requests that create a resource. Raises InvalidArgument."""
        self._check(filled.content)
        return KeptForm.create(self, name, filled)

    def update(self, present: Any, filled: Any) -> list[Message]:
        """Returns the requests that change a resource. Raises InvalidArgument."""
        said = WorkerConfiguration(description=filled.description, labels=dict(filled.labels))
        words = self._words(present, filled, worker_configuration=said)
        newest = present.revisions[-1].content
        if filled.content != newest:
            self._check(filled.content)
            words.append(
                CreateWorkerConfigurationRevisionRequest(
                    name=present.name, content=filled.content, description=filled.description
                )
            )
        return words

    async def found(self, gateway: Gateway, names: Sequence[str]) -> Sequence[Any]:
        """Returns all worker configurations; those with these names have their content."""
        listed = await gateway.list(self.kind)  # lists have no contents
        return [
            await gateway.get(self.kind, resource.name) if resource.name in names else resource for resource in listed
        ]

    def shown(self, resource: Any) -> dict[str, Any]:
        """Returns a resource as the spec of its manifest."""
        return {**described(resource), "content": resource.revisions[-1].content.decode(errors="replace")}

    def _check(self, content: bytes) -> None:
        if HIDDEN.encode() in content:
            legal = "the value, or a reference to it: a hidden value means the stored value, and this content is new"
            raise InvalidArgument.of("spec.content", HIDDEN, legal)


@dataclass(frozen=True, slots=True)
class ImportForm(KeptForm):
    """The form of plugin imports, whose source never changes."""

    def update(self, present: Any, filled: Any) -> list[Message]:
        """Returns the requests that change a resource. Raises InvalidArgument."""
        if filled.source != present.source:
            legal = "as it was: delete the plugin import to fetch another file"
            raise InvalidArgument.of("spec.source", plain(filled.source), f"{legal} ({plain(present.source)})")
        said = type(present)(description=filled.description, labels=dict(filled.labels))
        return self._words(present, filled, plugin_import=said)

    def shown(self, resource: Any) -> dict[str, Any]:
        """Returns a resource as the spec of its manifest."""
        return {**described(resource), "source": plain(resource.source)}


@dataclass(frozen=True, slots=True)
class PluginForm(KeptForm):
    """The form of plugins, by reference: their files are uploaded by `keelman create plugin`."""

    def create(self, name: str, filled: Any) -> list[Message]:
        """Returns the requests that create a resource. Raises InvalidArgument."""
        raise InvalidArgument.of(
            "name",
            name,
            "an existing plugin: upload it with `keelman create plugin FILE`, or fetch it with a plugin-import",
        )

    def update(self, present: Any, filled: Any) -> list[Message]:
        """Returns the requests that change a resource. Raises InvalidArgument."""
        for field in ("file_name", "sha256"):
            if (said := getattr(filled, field)) and said != getattr(present, field):
                raise InvalidArgument.of(
                    f"spec.{field}",
                    said,
                    f"{getattr(present, field)}: a plugin never changes, another file is another version",
                )
        return [
            self.request(
                "Update", name=present.name, version=present.version, description=filled.description,
                labels=dict(filled.labels), update_mask=FieldMask(paths=WORDS),
            )
        ]  # fmt: skip

    def shown(self, resource: Any) -> dict[str, Any]:
        """Returns a resource as the spec of its manifest."""
        return {**described(resource), "file_name": resource.file_name, "sha256": resource.sha256}

    def remove(self, present: Any) -> Message:
        """Returns the delete request."""
        return self.request("Delete", name=present.name, version=present.version)


@dataclass(frozen=True, slots=True)
class DocumentForm(KeptForm):
    """The form of documents, named by their kind, scope and key."""

    def filled(self, manifest: Manifest) -> Any:
        """Returns a manifest's document as a message. Raises InvalidArgument."""
        if manifest.labels:
            raise InvalidArgument("labels: not for documents: they have none")
        message = Form.filled(self, manifest)
        message.kind, message.scope, message.key = document_parts(manifest.name)
        return message

    def create(self, name: str, filled: Any) -> list[Message]:
        """Returns the requests that create a resource. Raises InvalidArgument."""
        return [self.request("Put", document=filled, create_only=True)]

    def update(self, present: Any, filled: Any) -> list[Message]:
        """Returns the requests that change a resource. Raises InvalidArgument."""
        same = filled.content == present.content and dict(filled.secrets) == dict(present.secrets)
        return [] if same else [self.request("Put", document=filled)]

    def labels_of(self, resource: Any) -> dict[str, str]:
        """Returns the labels of a resource."""
        return {}

    def shown(self, resource: Any) -> dict[str, Any]:
        """Returns a resource as the spec of its manifest."""
        return plain(resource, ("kind", "scope", "key", "uid", "create_time", "update_time", "etag"))

    def remove(self, present: Any) -> Message:
        """Returns the delete request."""
        return self.request("Delete", kind=present.kind, scope=present.scope, key=present.key)
