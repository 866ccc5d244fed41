"""How a worker cluster's connectors are, from what its workers reported. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from keelman.api.connect.v1.connector_trouble_pb2 import ConnectorTrouble
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterStatus
from keelman.api.connect.v1.worker_pb2 import WorkerMembership

NAMED = 3


def judge(status: WorkerClusterStatus, memberships: Sequence[WorkerMembership]) -> None:
    """Fills in the troubles and the verdict. What two workers tell of is told once: it moves from one to the other."""
    newest: dict[tuple[str, int], ConnectorTrouble] = {}
    for membership in sorted(memberships, key=lambda m: m.report_time.ToNanoseconds()):
        newest |= {(one.connector, one.task): one for one in membership.troubles}
    del status.troubles[:]
    status.troubles.extend(newest[key] for key in sorted(newest))
    named = {connector for connector, _ in newest}
    status.troubled_connectors = len(named) + sum(_unnamed(membership) for membership in memberships)
    status.verdict = verdict(status.troubles, status.troubled_connectors)


def verdict(troubles: Sequence[ConnectorTrouble], count: int) -> str:
    """One line; empty when there is no trouble."""
    if not count:
        return ""
    told = "; ".join(_said(one) for one in troubles[:NAMED])
    more = f"; and {len(troubles) - NAMED} more" if len(troubles) > NAMED else ""
    return f"{count} connector{'s are' if count > 1 else ' is'} in trouble: {told}{more}"


def _unnamed(membership: WorkerMembership) -> int:
    """Connectors in trouble of which it tells no trouble: it names 20 at most. Those may be another's too."""
    return max(0, membership.troubled_connectors - len({one.connector for one in membership.troubles}))


def _said(one: ConnectorTrouble) -> str:
    what = one.connector if one.task < 0 else f"{one.connector} task {one.task}"
    return f"{what} {one.state}" + (f" ({one.reason})" if one.reason else "")
