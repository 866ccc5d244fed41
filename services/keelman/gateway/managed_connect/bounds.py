"""Refuses names of buckets and secrets that are not an account's own. Pure."""

from __future__ import annotations

from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedConnectorSpec
from keelman.connect.config.providers import SCOPE
from keelman.gateway.access.accounts import Account
from keelman.gateway.access.signatures import SignedCaller
from keelman.gateway.managed_connect.errors import WireError

LOGS = "logDelivery.workerLogDelivery.s3.bucket"


def check_bucket(member: str, bucket: str, account: Account, caller: SignedCaller) -> None:
    """Raises WireError (403) for a bucket that an account may not name."""
    if not account.has_bucket(bucket):
        raise WireError(
            "ForbiddenException",
            f"Invalid parameter {member}: Bucket {bucket} is none of account {caller.account}: ask this service's "
            "operator to name it in `buckets` of its [[account]].",
        )


def bound(spec: DedicatedConnectorSpec, account: Account, caller: SignedCaller) -> None:
    """Limits the secrets that a new connector's workers may read to its account's. Raises WireError for a log delivery
    to a bucket that the account may not name."""
    if spec.log_delivery.s3.enabled:
        check_bucket(LOGS, spec.log_delivery.s3.bucket, account, caller)
    if not account.has_all_secrets:
        spec.properties[SCOPE] = ",".join(account.secrets)
