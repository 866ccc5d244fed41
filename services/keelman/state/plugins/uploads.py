"""Checks an upload's header and a change of a plugin, and makes the plugin of an uploaded file."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict

from keelman.api.connect.v1 import plugin_service_pb2 as pb
from keelman.model.annotations import Origin
from keelman.model.errors import InvalidArgument
from keelman.model.plugins.plugin import Plugin, checked_version, plugin_key
from keelman.model.rules.field_checks import check_labels
from keelman.model.rules.names import checked_name
from keelman.state.database.times import moment
from keelman.state.plugins.files import Received
from keelman.state.resources.annotations import check_description
from keelman.state.resources.checks import check_numbers
from keelman.state.resources.hidden import kept_extra
from keelman.workers.plugins.inspection import Inspection

MAX_FILE_NAME = 255
DIGEST_VERSION = 12
MAX_EXTRA_BYTES = 256 << 10  # its event has to fit into a record of Kafka, with all classes


def checked_header(header: pb.UploadHeader) -> pb.UploadHeader:
    """Returns the header of an upload, checked; raises InvalidArgument naming the field, the value and the legal
    values."""
    if header.name:
        checked_name("header.name", header.name)
    if header.version:
        checked_version("header.version", header.version)
    if not header.file_name or len(header.file_name) > MAX_FILE_NAME or {*header.file_name} & {*"/\\\0\n\r"}:
        legal = f"the name of a file without folders, at most {MAX_FILE_NAME} characters"
        raise InvalidArgument.of("header.file_name", header.file_name, legal)
    if header.size_bytes < 0:
        raise InvalidArgument.of("header.size_bytes", header.size_bytes, "0 or more, or nothing where it is not known")
    if header.sha256 and (len(header.sha256) != 64 or not {*header.sha256} <= {*"0123456789abcdefABCDEF"}):
        raise InvalidArgument.of("header.sha256", header.sha256, "empty, or 64 digits of hex")
    check_texts(header.description, header.labels)
    kept_extra("header.extra", extra_of(header) or {}, None)
    if header.HasField("origin") and not (header.origin.api and header.origin.key):
        raise InvalidArgument.of("header.origin", str(header.origin).strip(), "an origin with api and key, or none")
    return header


def made_of(header: pb.UploadHeader, received: Received, inspected: Inspection, storage: str) -> Plugin:
    """Returns the plugin of an uploaded file. Raises InvalidArgument for a file whose name gives none."""
    name = header.name or inspected.name
    if not name:
        raise InvalidArgument.of("header.name", "", f"a name: {header.file_name!r} contains none")
    version = header.version or inspected.version or received.sha256[:DIGEST_VERSION]
    key = plugin_key(checked_name("header.name", name), checked_version("header.version", version))
    assert inspected.kind is not None, "a file has a kind"
    return Plugin(
        key, str(uuid.uuid4()), moment(0), moment(0), header.file_name, inspected.kind, received.size_bytes,
        received.sha256, received.md5, inspected.classes, inspected.problems, header.description, dict(header.labels),
        storage=storage, origin=origin_of(header), extra=extra_of(header),
    )  # fmt: skip


def origin_of(header: pb.UploadHeader) -> Origin | None:
    """Returns the origin of an upload; None if it has none."""
    origin = header.origin
    return Origin(origin.api, origin.scope, origin.key) if header.HasField("origin") else None


def extra_of(upload_header: pb.UploadHeader | pb.UpdatePluginRequest) -> dict[str, Any] | None:
    """Returns the extra JSON to keep with a plugin; None if there is none. Raises InvalidArgument for too much."""
    if not upload_header.HasField("extra"):
        return None
    if (size := upload_header.extra.ByteSize()) > MAX_EXTRA_BYTES:
        raise InvalidArgument.of("extra", f"{size} bytes", f"at most {MAX_EXTRA_BYTES} bytes")
    check_numbers("extra", upload_header.extra)
    return MessageToDict(upload_header.extra)


def check_texts(description: str, labels: Mapping[str, str]) -> None:
    """Raises InvalidArgument for a description or labels that are not legal."""
    check_description(description)
    check_labels("labels", labels)
