"""How a worker cluster's connectors are, from what its workers reported. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from keelman.api.connect.v1.connector_problem_pb2 import ConnectorProblem, ConnectorProblemState
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterStatus
from keelman.api.connect.v1.worker_pb2 import WorkerMembership

NAMED = 3


def judge(status: WorkerClusterStatus, memberships: Sequence[WorkerMembership]) -> None:
    """Sets the problems and the verdict. What two workers report is taken once: it moves from one to the other."""
    newest: dict[tuple[str, int], ConnectorProblem] = {}  # -1 is the connector itself
    for membership in sorted(memberships, key=lambda m: m.report_time.ToNanoseconds()):
        newest |= {(one.connector, _task(one)): one for one in membership.problems}
    del status.problems[:]
    status.problems.extend(newest[key] for key in sorted(newest))
    named = {connector for connector, _ in newest}
    status.problem_connectors = len(named) + sum(_unnamed(membership) for membership in memberships)
    status.verdict = verdict(status.problems, status.problem_connectors)


def verdict(problems: Sequence[ConnectorProblem], count: int) -> str:
    """One line; empty when there is no problem."""
    if not count:
        return ""
    named = "; ".join(_line(one) for one in problems[:NAMED])
    more = f"; and {len(problems) - NAMED} more" if len(problems) > NAMED else ""
    return f"{count} connector{'s are' if count > 1 else ' is'} in trouble: {named}{more}"


def _unnamed(membership: WorkerMembership) -> int:
    """Connectors with problems that it does not name: it names 20 problems at most. Another worker may name them."""
    return max(0, membership.problem_connectors - len({one.connector for one in membership.problems}))


def _task(one: ConnectorProblem) -> int:
    return one.task if one.HasField("task") else -1


def _line(one: ConnectorProblem) -> str:
    what = f"{one.connector} task {one.task}" if one.HasField("task") else one.connector
    state = ConnectorProblemState.Name(one.state).removeprefix("CONNECTOR_PROBLEM_STATE_")
    return f"{what} {state}" + (f" ({one.reason})" if one.reason else "")
