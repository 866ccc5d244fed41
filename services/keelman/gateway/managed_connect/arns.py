"""ARNs: the API's names of its resources. Pure."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from keelman.gateway.access.signatures import SignedCaller
from keelman.gateway.managed_connect.errors import bad_member, not_found

CONNECTOR, OPERATION = "connector", "connector-operation"
PLUGIN, WORKER_CONFIGURATION = "custom-plugin", "worker-configuration"
NUMBER = 2
"""The digits after the UUID."""
NAME_BEGINS = "mc-"
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ARN = re.compile(
    r"arn:(?P<partition>aws|aws-cn|aws-us-gov):kafkaconnect:(?P<region>[a-z0-9-]{1,32}):(?P<account>[0-9]{12}):"
    rf"(?P<kind>{CONNECTOR}|{OPERATION}|{PLUGIN}|{WORKER_CONFIGURATION})/(?P<name>[^/]{{1,128}})/"
    rf"(?P<uuid>{_UUID})-(?P<number>[0-9]{{1,9}})(?:/(?P<part>[^/]{{1,128}}))?"
)


@dataclass(frozen=True, slots=True)
class Arn:
    """The unique name of a resource. `part` is the operation's id in the ARN of a connector's operation."""

    kind: str
    region: str
    account: str
    name: str
    uuid: str
    number: int = NUMBER
    part: str = ""

    @property
    def resource(self) -> str:
        """The name of our resource."""
        return NAME_BEGINS + self.uuid.replace("-", "")

    @property
    def suffix(self) -> str:
        """The end of the ARN, as in the names of a connector's topics."""
        return f"{self.uuid}-{self.number}"

    def __str__(self) -> str:
        partition = SignedCaller(self.account, self.region).partition
        text = f"arn:{partition}:kafkaconnect:{self.region}:{self.account}:{self.kind}/{self.name}/{self.suffix}"
        return f"{text}/{self.part}" if self.part else text

    def of_operation(self, name: str) -> Arn:
        """Returns the ARN of an operation on this connector."""
        return Arn(OPERATION, self.region, self.account, self.name, self.uuid, self.number, name)

    @property
    def connector(self) -> Arn:
        """The ARN of the connector, for the ARN of an operation."""
        return Arn(CONNECTOR, self.region, self.account, self.name, self.uuid, self.number)


def new_arn(kind: str, caller: SignedCaller, name: str) -> Arn:
    """Returns a new ARN for a resource that a caller creates."""
    return Arn(kind, caller.region, caller.account, name, str(uuid.uuid4()))


def arn_of(kind: str, region: str, account: str, name: str, resource: str) -> Arn:
    """Returns the ARN of our resource with this name."""
    return Arn(kind, region, account, name, str(uuid.UUID(resource.removeprefix(NAME_BEGINS))))


def parsed(member: str, text: str, *kinds: str, caller: SignedCaller) -> Arn:
    """Parses an ARN of one of some kinds.

    Raises WireError: 400 for a malformed ARN or another kind, 404 for another account.
    """
    match = _ARN.fullmatch(text)
    if match is None or bool(match["part"]) != (match["kind"] == OPERATION):
        raise bad_member(
            member, "The ARN is not valid: arn:aws:kafkaconnect:<region>:<account>:<kind>/<name>/<uuid>-<n>."
        )
    if match["kind"] not in kinds:
        raise bad_member(member, f"The ARN is that of a {match['kind']}, not of a {' or '.join(kinds)}.")
    arn = Arn(
        match["kind"], match["region"], match["account"], match["name"], match["uuid"], int(match["number"]),
        match["part"] or "",
    )  # fmt: skip
    if arn.account != caller.account or str(arn) != text:
        raise unknown(text)
    return arn


def unknown(arn: object) -> Exception:
    """Returns 404 for a resource that does not exist, or is not visible."""
    return not_found(f"The specified resource does not exist: {arn}.")
