"""Verifies the signatures that callers make with access keys (AWS Signature Version 4).

The rules are those of the SDKs' signers: the canonical URI is the raw path encoded once more, and the signed text
contains the SHA-256 of the body, so that neither can be changed on the way.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote, unquote_to_bytes

from keelman.model.access.roles import AnyRole, Role
from keelman.model.errors import PermissionDenied

ALGORITHM = "AWS4-HMAC-SHA256"
SKEW_SECONDS = 300
"""The largest difference of a request's time from ours."""
MISSING = "Missing Authentication Token"
ACCOUNT = re.compile(r"[0-9]{12}")
REGION = re.compile(r"[a-z0-9-]{1,32}")
KEY_ID = re.compile(r"[A-Za-z0-9_+=,.@-]{1,128}")
_DATE = re.compile(r"[0-9]{8}T[0-9]{6}Z")


@dataclass(frozen=True, slots=True)
class AccessKey:
    """A key that callers sign with; its account is the scope of all resources created with it."""

    id: str
    secret: str = field(repr=False)
    account: str
    role: AnyRole = Role.ADMIN
    """The role of the key on the resources of its account."""
    expire_time: datetime | None = None
    """The end of the key, None for no end."""


@dataclass(frozen=True, slots=True)
class SignedCaller:
    """The signer of a request, and the region of the resources that it creates."""

    account: str
    region: str
    key_id: str = ""
    role: AnyRole = Role.ADMIN
    signature: str = field(default="", repr=False)
    """The signature of the request; empty if signatures are not verified."""

    @property
    def partition(self) -> str:
        """The part of an ARN after "arn:"."""
        begins = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}
        return next((name for start, name in begins.items() if self.region.startswith(start)), "aws")


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it was sent: path and query raw, the names of its headers in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""


def claimed_region(sent: Sent, service: str) -> str:
    """Returns the unverified region of a request's credential scope; empty for none."""
    found = re.search(
        rf"Credential=[^/,]+/[0-9]+/([a-z0-9-]{{1,32}})/{service}/", sent.headers.get("authorization", "")
    )
    return found[1] if found else ""


class Signatures:
    """Verifies requests. It does not detect replays."""

    def __init__(
        self,
        keys: Mapping[str, AccessKey],
        service: str,
        now: Callable[[], float] = time.time,
        *,
        hosts: Collection[str] = (),
    ) -> None:
        """`hosts`: the names, without port, that a request's host may be; all, if there are none."""
        self._keys = keys
        self._service = service
        self._now = now
        self._hosts = frozenset(map(str.lower, hosts))

    def check_head(self, sent: Sent) -> None:
        """Judges a request by its head alone, before its body is read. Raises PermissionDenied."""
        self._claim(sent)

    def caller(self, sent: Sent) -> SignedCaller:
        """Returns the signer of a request. Raises PermissionDenied."""
        key, scope, signed, claimed = self._claim(sent)
        stamp = sent.headers["x-amz-date"]
        body_hash = hashlib.sha256(sent.body).hexdigest()
        if sent.headers.get("x-amz-content-sha256", body_hash) != body_hash:
            raise PermissionDenied("x-amz-content-sha256 is not the SHA-256 of the body")
        text = "\n".join((ALGORITHM, stamp, "/".join(scope[1:]), _digest(canonical(sent, signed, body_hash))))
        wanted = signature(key.secret, scope[1:], text)
        if not hmac.compare_digest(wanted.encode(), claimed.encode()):
            raise PermissionDenied(
                "The request signature we calculated does not match the signature you provided. Check your secret "
                "access key and signing method."
            )
        return SignedCaller(key.account, scope[2], key.id, key.role, wanted)

    def _claim(self, sent: Sent) -> tuple[AccessKey, list[str], list[str], str]:
        """Returns the key that a request claims to be signed with, the scope, the names of the signed headers and the
        signature. Raises PermissionDenied."""
        given = _authorization(sent.headers.get("authorization", ""))
        scope = given["Credential"].split("/")
        if len(scope) != 5 or scope[3:] != [self._service, "aws4_request"] or not REGION.fullmatch(scope[2]):
            legal = f"KEY/yyyymmdd/REGION/{self._service}/aws4_request"
            raise PermissionDenied(f"Credential should be scoped to {legal}")
        key = self._keys.get(scope[0])
        if key is None:
            raise PermissionDenied("The security token included in the request is invalid.")
        if key.expire_time is not None and key.expire_time.timestamp() <= self._now():
            raise PermissionDenied("The security token included in the request is expired")
        self._check_time(sent.headers.get("x-amz-date", ""), scope[1])
        signed = given["SignedHeaders"].split(";")
        if not {"host", "x-amz-date"} <= set(signed) or any(name not in sent.headers for name in signed):
            raise PermissionDenied("SignedHeaders must name host and x-amz-date, and only headers that were sent")
        host = re.sub(r":[0-9]*$", "", sent.headers["host"]).strip("[]").lower()
        if self._hosts and host not in self._hosts:
            raise PermissionDenied("The request was signed for another host: its host is not a name of this service.")
        return key, scope, signed, given["Signature"]

    def _check_time(self, stamp: str, day: str) -> None:
        if not _DATE.fullmatch(stamp) or not stamp.startswith(day):
            raise PermissionDenied("X-Amz-Date must be yyyymmddThhmmssZ, on the day of the credential's scope")
        try:
            sent = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
        except ValueError:
            raise PermissionDenied("X-Amz-Date is no time") from None
        if abs(sent - self._now()) > SKEW_SECONDS:
            state = "expired" if sent < self._now() else "not yet current"
            raise PermissionDenied(f"Signature {state}: {stamp} is more than {SKEW_SECONDS} s from this service's time")


def _authorization(header: str) -> dict[str, str]:
    """Returns the parts of an Authorization header. Raises PermissionDenied for a missing or malformed one."""
    algorithm, _, rest = header.partition(" ")
    if algorithm != ALGORITHM:
        raise PermissionDenied(MISSING)
    found = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    if missing := sorted({"Credential", "SignedHeaders", "Signature"} - set(filter(None, found))):
        raise PermissionDenied(f"Authorization header requires '{missing[0]}' parameter.")
    return found


def canonical(sent: Sent, signed: list[str], body_hash: str) -> str:
    """Returns the canonical request, which is signed."""
    pairs = sorted(
        (_encoded(unquote_to_bytes(name.replace("+", " "))), _encoded(unquote_to_bytes(value.replace("+", " "))))
        for name, _, value in (part.partition("=") for part in sent.query.split("&") if part)
    )
    headers = [f"{name}:{' '.join(sent.headers[name].split())}" for name in signed]
    return "\n".join(
        (
            sent.method, quote(sent.path, safe="/-_.~", encoding="latin-1"), "&".join(f"{k}={v}" for k, v in pairs),
            *headers, "", ";".join(signed), body_hash,
        )
    )  # fmt: skip


def signature(secret: str, scope: list[str], text: str) -> str:
    """Returns the signature of a text; `scope` is day, region, service and "aws4_request"."""
    key = b"AWS4" + secret.encode()
    for part in scope:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _encoded(text: bytes) -> str:
    return quote(text, safe="-_.~")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
