"""Each write and each refused call is in the audit, with its caller and its outcome, and without secrets."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from keelman.api.connect.v1.secret_service_pb2 import CreateSecretRequest, DeleteSecretRequest, ListSecretsRequest
from keelman.api.event.v1.audit_event_service_pb2 import ListAuditEventsRequest
from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from keelman.model.access.roles import token_digest
from keelman.model.errors import KeelmanError
from keelman.rpc.channels import channel
from keelman.rpc.generated import stub_of
from support.eventually import eventually
from support.gateway.system import running_system

pytestmark = pytest.mark.component
SECRET = "planted-secret"
JOIN = "/keelman.api.access.v1.JoinService/Join"


async def test_who_did_what(tmp_path: Path) -> None:
    access, file = tmp_path / "access.toml", tmp_path / "audit.jsonl"
    access.write_text(
        "".join(
            f"[[token]]\nsha256 = '{token_digest(f'of-{role}')}'\nname = '{role}'\nrole = '{role}'\n"
            for role in ("viewer", "admin")
        )
    )
    settings = {"access-file": str(access), "audit-file": str(file)}
    async with running_system(tmp_path, {}, settings) as system:

        async def call(token: str, noun: str, method: str, request: Any) -> None:
            async with channel(system.gateway.address, token=token) as link:
                with contextlib.suppress(KeelmanError):
                    await getattr(stub_of(link, "node" if noun == "node" else "connect", noun), method)(request)

        create = CreateSecretRequest(name="db", request_id="request-1")
        create.values["password"] = SECRET
        await call("of-admin", "secret", "CreateSecret", create)
        await call("of-admin", "secret", "CreateSecret", CreateSecretRequest(name="db", values={"a": "b"}))
        await call("of-admin", "secret", "ListSecrets", ListSecretsRequest())
        await call("of-viewer", "secret", "DeleteSecret", DeleteSecretRequest(name="db"))
        await call("nonsense", "node", "ListNodes", ListNodesRequest())
        async with httpx.AsyncClient(base_url=system.http, trust_env=False, timeout=300) as http:
            for role, body in (
                ("admin", {"hostname": "far", "port": 22, "user": "u", "password": SECRET}),
                ("viewer", {}),
            ):
                await http.post("/v0/nodes", json=body, auth=("any", f"of-{role}"))
            await http.get("/v0/nodes", auth=("any", "of-admin"))
            await http.get("/clusters/a/connectors", auth=("any", SECRET))

        def lines() -> list[dict[str, str]]:
            return [json.loads(line) for line in file.read_text().splitlines()]

        await eventually(lambda: len(lines()) >= 7)
        found = [
            tuple(line.get(field, "") for field in ("caller", "role", "call", "resource", "request_id", "outcome"))
            for line in lines()
        ]
        assert found == [
            ("admin", "admin", "SecretService/CreateSecret", "db", "request-1", "OK"),
            ("admin", "admin", "SecretService/CreateSecret", "db", "", "ALREADY_EXISTS"),
            ("viewer", "viewer", "SecretService/DeleteSecret", "db", "", "PERMISSION_DENIED"),
            ("unknown", "", "NodeService/ListNodes", "", "", "UNAUTHENTICATED"),
            ("admin", "admin", "POST /v0/nodes", "", "", "200"),
            ("viewer", "viewer", "POST /v0/nodes", "", "", "403"),
            ("unknown", "", "GET /clusters/a/connectors", "", "", "401"),
        ]
        assert {line["address"] for line in lines()} == {"127.0.0.1"}

        async with channel(system.gateway.address, token="of-admin") as link:
            stub = stub_of(link, "event", "audit_event")

            async def events(**fields: Any) -> list[Any]:
                return list((await stub.ListAuditEvents(ListAuditEventsRequest(**fields))).audit_events)

            async def are_there() -> bool:
                return len(await events()) >= len(found)

            await eventually(are_there)
            listed = await events()
            shown = [(e.caller, e.role, e.call, e.resource, e.request_id, e.outcome) for e in reversed(listed)]
            assert shown == found
            assert [e.refused for e in reversed(listed)] == [False, False, True, True, False, True, True]
            assert [e.outcome for e in await events(caller="viewer")] == ["403", "PERMISSION_DENIED"]
            assert SECRET not in str(listed)
        async with channel(system.gateway.address, token="of-viewer") as link:
            with pytest.raises(KeelmanError, match="may not audit"):
                await stub_of(link, "event", "audit_event").ListAuditEvents(ListAuditEventsRequest())
        assert SECRET not in file.read_text()
