"""The tables of rights: every call of the gateway has an entry, and the page shows them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from keelman.api.node.v1 import agent_service_pb2
from keelman.gateway.access.guard import path_segments
from keelman.gateway.access.rights import ROUTES, RPCS, needs_of_route
from keelman.gateway.ohara.kinds import PLURALS
from keelman.gateway.service import FORWARDED
from keelman.model.access.roles import Right, Role
from keelman.rpc.generated import service_of


def served() -> Iterator[ServiceDescriptor]:
    """Returns every service of the gateway."""
    yield from (service_of(area, noun) for area, nouns in FORWARDED.items() for noun in nouns)
    yield service_of("connect", "connector")
    yield agent_service_pb2.DESCRIPTOR.services_by_name["AgentService"]
    yield health_pb2.DESCRIPTOR.services_by_name["Health"]
    yield reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"]


def test_every_rpc_has_an_entry_and_there_are_no_others() -> None:
    methods = {f"/{service.full_name}/{method.name}" for service in served() for method in service.methods}
    assert {method for method in methods if method not in RPCS} == set(), "add the rights of these to rights.py"
    assert set(RPCS) - methods == set()


def test_whatever_changes_something_needs_more_than_to_see() -> None:
    reading = ("Get", "List", "Describe", "Watch", "Check", "Download", "StreamLogs", "ServerReflectionInfo", "Join")
    reading += ("WriteBatch",)
    for method, needs in RPCS.items():
        if not method.rpartition("/")[2].startswith(reading):
            assert needs.right not in (None, Right.VIEW), method


@pytest.mark.parametrize(
    ("path", "raw", "pattern"),
    [
        ("/", b"/", "/"),
        ("/metrics", b"/metrics", "/metrics"),
        ("/nothing", b"/nothing", "/"),
        ("/clusters/a/connectors", b"/clusters/a/connectors", "/clusters/{name}"),
        ("/clusters/a/admin/loggers", b"/clusters/a/admin/loggers", "/clusters/{name}/admin"),
        ("/clusters/a//admin/x", b"/clusters/a//%61dmin;x/x", "/clusters/{name}/admin"),
        ("/clusters/a/x/../admin", b"/clusters/a/x/../admin", "/clusters/{name}/admin"),
        (
            "/clusters/a/connectors/b/dead-letters", b"/clusters/a/connectors/b/dead-letters",
            "/clusters/{name}/connectors/{connector}/dead-letters",
        ),
        ("/v0/topics/x", b"/v0/topics/x", "/v0/topics"),
        ("/v0/topics/../nodes", b"/v0/topics%2F../nodes", "/v0"),
        ("/v0/nodes", b"/v0/nodes", "/v0"),
        ("/v1/connectors", b"/v1/connectors", "/v1"),
    ],
)  # fmt: skip
def test_a_route_is_found_by_the_path_as_it_will_be_read(path: str, raw: bytes, pattern: str) -> None:
    segments = path_segments({"type": "http", "path": path, "raw_path": raw})
    assert needs_of_route(segments) is ROUTES[pattern]


def test_the_cluster_is_the_one_that_the_proxy_takes() -> None:
    assert path_segments({"type": "http", "path": "/clusters/a/b", "raw_path": b"/clusters%2Fa/b"})[1] == "b"


def test_kinds_of_ohara_that_operators_change_are_kinds() -> None:
    words = {path.split("/")[2] for path in ROUTES if path.startswith("/v0/")}
    assert words - {"inspect", "validate"} <= set(PLURALS.values())


def test_roles_contain_each_other() -> None:
    viewer, operator, admin = ({right for right in Right if role.has(right)} for role in Role)
    assert viewer == {Right.VIEW} < operator < admin == set(Right)
    assert admin - operator == {
        Right.MANAGE_CLUSTERS, Right.MANAGE_NODES, Right.MANAGE_PLUGINS, Right.MANAGE_SECRETS, Right.AUDIT,
        Right.ADMINISTER,
    }  # fmt: skip


def test_every_right_is_for_some_call() -> None:
    needs = {needs.right for needs in RPCS.values()} | {
        needs.right for route in ROUTES.values() for needs in (route.reads, route.writes)
    }
    assert needs - {None} == set(Right) - {Right.SEE_SECRETS}


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("connectors/c/restart", Right.RESTART),
        ("connectors/c/pause", Right.RESTART),
        ("connectors/c/tasks/0/restart", Right.RESTART),
        ("connectors/c/config", Right.CONFIGURE),
        ("connectors/c/offsets", Right.CONFIGURE),
        ("connectors/c", Right.CONFIGURE),
        ("connectors/c/preview", Right.SEE_RECORDS),
        ("admin/loggers/root", Right.ADMINISTER),
    ],
)
def test_a_worker_s_writes_need_different_rights(path: str, right: Right) -> None:
    segments = path_segments(
        {"type": "http", "path": f"/clusters/a/{path}", "raw_path": f"/clusters/a/{path}".encode()}
    )
    assert needs_of_route(segments).writes.right is right
