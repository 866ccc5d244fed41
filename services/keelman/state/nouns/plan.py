"""Plans: the planner's decisions, with reasons. The newest ones are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import JSON, BigInteger, Column
from sqlmodel import Field, SQLModel, col, select

from keelman.api.node.v1 import plan_pb2
from keelman.api.node.v1 import plan_service_pb2 as pb
from keelman.api.node.v1 import plan_service_pb2_grpc as grpc
from keelman.model.errors import InvalidArgument
from keelman.model.plan import PlanChange, StoredPlan
from keelman.rpc.mapping import message_of
from keelman.rpc.pages import key_of, page_limit, token_for
from keelman.rpc.server import Context
from keelman.state.database.times import micros, moment
from keelman.state.nouns.parts import NounParts
from keelman.state.resources.rows import plain, read
from keelman.state.resources.transaction import Transaction

KEPT = 1000


class PlanRow(SQLModel, table=True):
    """One plan; `changes` is JSON."""

    __tablename__ = "plan"
    revision: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    time: int = Field(sa_type=BigInteger)
    changes: list[dict[str, Any]] = Field(sa_type=JSON)


async def save(tx: Transaction, revision: int, changes: Sequence[PlanChange]) -> None:
    """Stores a plan whose first change has this revision, and forgets the oldest plans beyond the limit."""
    if not changes:
        return
    connection = await tx.session.connection()
    values = {"revision": revision, "time": micros(tx.now), "changes": [plain(c) for c in changes]}
    await connection.execute(sa.insert(PlanRow), [values])
    newest = select(PlanRow.revision).order_by(col(PlanRow.revision).desc())
    last = newest.offset(KEPT).limit(1).scalar_subquery()
    await connection.execute(sa.delete(PlanRow).where(col(PlanRow.revision) <= last))


def of_row(row: PlanRow) -> StoredPlan:
    """Returns the plan of a row."""
    return StoredPlan(row.revision, moment(row.time), tuple(read(PlanChange, change) for change in row.changes))


def plan_message(plan: StoredPlan) -> plan_pb2.Plan:
    """Returns a plan as users see it."""
    return message_of(plan_pb2.Plan, plan)


@dataclass(frozen=True, slots=True)
class PlanApi(grpc.PlanServiceServicer):
    """Plans."""

    parts: NounParts

    async def ListPlans(self, request: pb.ListPlansRequest, context: Context) -> pb.ListPlansResponse:
        """Returns a page of plans, the newest first; those of one workload if the request names it."""
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
        chosen = [p for p in plans if not request.workload or any(c.workload == request.workload for c in p.changes)]
        part = chosen[:limit]
        token = token_for(str(part[-1].revision)) if len(chosen) > limit else ""
        return pb.ListPlansResponse(plans=[plan_message(p) for p in part], next_page_token=token)


API = PlanApi
