"""The first requests of a connection: they log in, negotiate features and select the bucket."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from typing import Protocol

from keelman.couchbase import sasl
from keelman.couchbase.errors import AwayError, CouchbaseError
from keelman.couchbase.frames import PASSING, Feature, Frame, Opcode, ResponseStatus
from keelman.couchbase.seeds import BucketAccess

PRODUCER, XATTRS, NO_VALUE, DELETE_TIMES = 0x01, 0x04, 0x08, 0x20
MAX_NAME_BYTES = 200
_OPTIONAL = frozenset({"change_streams", "send_stream_end_on_client_close_stream", "supports_cursor_dropping"})


class HandshakeConnection(Protocol):
    """A connection, as far as a handshake uses it."""

    where: str
    id: str
    """Servers tell connections apart by this id. It is unique: a second connection with the same id would close the
    first."""

    async def request(self, opcode: int, *, key: bytes = b"", value: bytes = b"", extras: bytes = b"") -> Frame:
        """Returns the answer to a request. Raises AwayError."""


async def log_in(connection: HandshakeConnection, access: BucketAccess) -> frozenset[int]:
    """Logs in, agrees on features and selects the bucket. Returns the features that both sides have.

    Raises CouchbaseError where the server refuses, AwayError where it cannot serve yet.
    """
    if access.user:
        await _authenticate(connection, access)
    features = [Feature.XATTR, Feature.XERROR, Feature.SELECT_BUCKET, Feature.JSON, Feature.DUPLEX,
              Feature.CLUSTER_MAP_PUSH, Feature.COLLECTIONS]  # fmt: skip
    if access.compression != "DISABLED":
        features += [Feature.DATATYPE, Feature.SNAPPY]
    value = struct.pack(f">{len(features)}H", *sorted(features))
    answer = await connection.request(Opcode.HELLO, key=b"{%b}" % _name(connection, access), value=value)
    _expect(answer, connection.where, "HELLO")
    agreed = frozenset(struct.unpack(f">{len(answer.value) // 2}H", answer.value[: len(answer.value) // 2 * 2]))
    answer = await connection.request(Opcode.SELECT_BUCKET, key=access.bucket.encode())
    if answer.status in (ResponseStatus.NO_ACCESS, ResponseStatus.KEY_NOT_FOUND):
        whom = f"user {access.user!r}" if access.user else "the client's certificate"
        raise CouchbaseError(f"no bucket {access.bucket!r} at {connection.where}, or {whom} may not read it")
    _expect(answer, connection.where, f"bucket {access.bucket!r}")
    return agreed


async def open_dcp(
    connection: HandshakeConnection, access: BucketAccess, controls: Iterable[tuple[str, str]], flags: int
) -> None:
    """Opens the connection for changes. Raises CouchbaseError, AwayError."""
    extras = struct.pack(">II", 0, flags)
    answer = await connection.request(Opcode.DCP_OPEN, extras=extras, key=_name(connection, access))
    if answer.status == ResponseStatus.NO_ACCESS:
        raise no_reader(access)
    _expect(answer, connection.where, "DCP_OPEN")
    for control, value in controls:
        answer = await connection.request(Opcode.CONTROL, key=control.encode(), value=value.encode())
        if answer.status and not (
            control in _OPTIONAL and answer.status in (ResponseStatus.INVALID, ResponseStatus.NOT_SUPPORTED)
        ):
            _expect(answer, connection.where, f"{control}={value}")


def no_reader(access: BucketAccess) -> CouchbaseError:
    """Returns the error for a user who may log in but not read changes."""
    return CouchbaseError(f"user {access.user!r} lacks the role Data DCP Reader for bucket {access.bucket!r}")


def controls_of(access: BucketAccess, agreed: frozenset[int], buffer_bytes: int) -> list[tuple[str, str]]:
    """Returns the control settings of a connection for changes. `buffer_bytes` is the flow control's buffer, 0 for
    none."""
    controls = [("change_streams", "true"), ("send_stream_end_on_client_close_stream", "true"),
             ("supports_cursor_dropping", "true")]  # fmt: skip
    if buffer_bytes:
        controls.append(("connection_buffer_size", str(buffer_bytes)))
    if access.compression == "FORCED" and Feature.SNAPPY in agreed:
        controls.append(("force_value_compression", "true"))
    return [*controls, ("set_noop_interval", f"{access.noop_seconds:g}"), ("enable_noop", "true")]


async def _authenticate(connection: HandshakeConnection, access: BucketAccess) -> None:
    if access.tls is not None:
        answer = await connection.request(
            Opcode.SASL_AUTH, key=sasl.PLAIN.encode(), value=sasl.plain(access.user, access.password)
        )
        _check_login(answer, access, connection.where)
        return
    answer = await connection.request(Opcode.SASL_LIST)
    _expect(answer, connection.where, "SASL_LIST_MECHS")
    mechanism = sasl.mechanism_of(answer.value.decode("ascii", "replace").split(), connection.where)
    scram = sasl.Scram(mechanism, access.user, access.password)
    answer = await connection.request(Opcode.SASL_AUTH, key=mechanism.encode(), value=scram.first())
    if answer.status == ResponseStatus.AUTH_CONTINUE:
        answer = await connection.request(Opcode.SASL_STEP, key=mechanism.encode(), value=scram.final(answer.value))
    _check_login(answer, access, connection.where)
    scram.check(answer.value)


def _check_login(answer: Frame, access: BucketAccess, where: str) -> None:
    if answer.status in (ResponseStatus.AUTH_ERROR, ResponseStatus.KEY_NOT_FOUND):
        raise CouchbaseError(f"the Couchbase cluster refuses user {access.user!r}: wrong name or password ({where})")
    _expect(answer, where, "login")


def _expect(answer: Frame, where: str, what: str) -> None:
    if answer.status == ResponseStatus.SUCCESS:
        return
    if answer.status in PASSING or answer.status in (
        ResponseStatus.NO_BUCKET,
        ResponseStatus.CONFIG_ONLY,
        ResponseStatus.AUTH_STALE,
    ):
        raise AwayError(f"{where} does not serve {what} yet: {status_text(answer)}")
    raise CouchbaseError(f"{where} refuses {what}: {status_text(answer)}")


def status_text(answer: Frame) -> str:
    """Returns a status for people, with the server's own text."""
    try:
        name = ResponseStatus(answer.status).name
    except ValueError:
        name = "status"
    said = ""
    if answer.datatype & 1 and answer.value[:1] == b"{":
        try:
            said = json.loads(answer.value)["error"]["context"]
        except (ValueError, KeyError, TypeError):
            said = ""
    return f"{name} ({answer.status:#04x}){': ' + said if said else ''}"


def _name(connection: HandshakeConnection, access: BucketAccess) -> bytes:
    """Returns a connection's name: that of the official client, without the braces, because servers before 7.1 accept
    none in a stream's name. The agent is shortened until the name fits MAX_NAME_BYTES."""
    agent = access.agent
    while True:
        name = json.dumps({"i": connection.id, "a": agent}, separators=(",", ":"))[1:-1].encode()
        if len(name) <= MAX_NAME_BYTES:
            return name
        agent = agent[:-1]
