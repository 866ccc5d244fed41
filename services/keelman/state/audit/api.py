"""The services of the audit: decode, call, encode."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.api.event.v1 import audit_event_service_pb2 as pb
from keelman.api.event.v1 import audit_event_service_pb2_grpc, audit_record_service_pb2_grpc
from keelman.api.event.v1.audit_record_service_pb2 import RecordAuditEventsRequest, RecordAuditEventsResponse
from keelman.rpc.server import Context
from keelman.state.audit.trail import AuditTrail


@dataclass(frozen=True, slots=True)
class AuditEventApi(audit_event_service_pb2_grpc.AuditEventServiceServicer):
    """AuditEventService."""

    trail: AuditTrail

    async def ListAuditEvents(self, request: pb.ListAuditEventsRequest, context: Context) -> pb.ListAuditEventsResponse:
        """See the proto."""
        events, token = await self.trail.page(request)
        return pb.ListAuditEventsResponse(audit_events=events, next_page_token=token)


@dataclass(frozen=True, slots=True)
class AuditRecordApi(audit_record_service_pb2_grpc.AuditRecordServiceServicer):
    """AuditRecordService."""

    trail: AuditTrail

    async def RecordAuditEvents(self, request: RecordAuditEventsRequest, context: Context) -> RecordAuditEventsResponse:
        """See the proto."""
        await self.trail.record(request.audit_events)
        return RecordAuditEventsResponse()
