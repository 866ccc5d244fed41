"""Plans: what the planner decided, and why. The newest ones are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import BigInteger, Column
from sqlmodel import Field, SQLModel, col, select

from keelman.api.node.v1 import plan_pb2
from keelman.api.node.v1 import plan_service_pb2 as pb
from keelman.api.node.v1 import plan_service_pb2_grpc as grpc
from keelman.model.errors import InvalidArgument
from keelman.model.plan import PlanAction, PlanChange, StoredPlan
from keelman.rpc.pages import key_of, page_limit, token_for
from keelman.rpc.server import Context, Service
from keelman.rpc.times import to_timestamp
from keelman.state.nouns.noun import Parts, service
from keelman.state.nouns.rows import big_column, json_column, micros, moment, plain

if TYPE_CHECKING:
    from keelman.state.store import Transaction

KEPT = 1000


class PlanRow(SQLModel, table=True):
    """One plan; `changes` is JSON."""

    __tablename__ = "plan"
    revision: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    time: int = Field(sa_column=big_column())
    changes: list[dict[str, Any]] = Field(sa_column=json_column())


async def save(tx: Transaction, revision: int, changes: Sequence[PlanChange]) -> None:
    """Stores a plan whose first change has this revision, and forgets the oldest beyond those that are kept."""
    if not changes:
        return
    connection = await tx.session.connection()
    values = {"revision": revision, "time": micros(tx.now), "changes": [plain(c) for c in changes]}
    await connection.execute(sa.insert(PlanRow), [values])
    newest = select(PlanRow.revision).order_by(col(PlanRow.revision).desc())
    last = newest.offset(KEPT).limit(1).scalar_subquery()
    await connection.execute(sa.delete(PlanRow).where(col(PlanRow.revision) <= last))


def of_row(row: PlanRow) -> StoredPlan:
    """The plan of a row."""
    changes = (PlanChange(**c | {"action": PlanAction(c["action"])}) for c in row.changes)
    return StoredPlan(row.revision, moment(row.time), tuple(changes))


def plan_message(plan: StoredPlan) -> plan_pb2.Plan:
    """A plan as users see it."""
    return plan_pb2.Plan(
        revision=plan.revision,
        create_time=to_timestamp(plan.create_time),
        changes=[
            plan_pb2.PlanChange(
                workload=c.workload,
                action=plan_pb2.PlanAction.Value(f"PLAN_ACTION_{c.action}"),
                node=c.node,
                from_node=c.from_node,
                generation=c.generation,
                reason=c.reason,
            )
            for c in plan.changes
        ],
    )


@dataclass(frozen=True, slots=True)
class PlanApi(grpc.PlanServiceServicer):
    """Plans."""

    parts: Parts

    async def ListPlans(self, request: pb.ListPlansRequest, context: Context) -> pb.ListPlansResponse:
        """A page of plans, the newest first; of a workload where one is named."""
        limit, after = page_limit(request.page_size), key_of(request.page_token)
        statement = select(PlanRow).order_by(col(PlanRow.revision).desc())
        if after:
            if not after.isdigit():
                raise InvalidArgument.of("page_token", request.page_token, "one from an earlier answer")
            statement = statement.where(col(PlanRow.revision) < int(after))
        if not request.workload:
            statement = statement.limit(limit + 1)
        async with self.parts.store.database.read() as session:
            plans = [of_row(row) for row in (await session.exec(statement)).all()]
        wanted = [p for p in plans if not request.workload or any(c.workload == request.workload for c in p.changes)]
        part = wanted[:limit]
        token = token_for(str(part[-1].revision)) if len(wanted) > limit else ""
        return pb.ListPlansResponse(plans=[plan_message(p) for p in part], next_page_token=token)


def services(parts: Parts) -> list[Service]:
    """The gRPC service of plans."""
    return [service("node", "PlanService", grpc.add_PlanServiceServicer_to_server, PlanApi(parts))]
