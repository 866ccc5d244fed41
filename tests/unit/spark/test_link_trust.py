"""The workers that may link over the network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from keelman.api.copy.v1.worker_link_service_pb2 import OpenLinkRequest, OpenLinkResponse, WorkerGreeting
from keelman.api.copy.v1.worker_link_service_pb2_grpc import WorkerLinkServiceStub
from keelman.model.errors import InvalidArgument, PermissionDenied, Unauthenticated, Unavailable
from keelman.rpc.channels import channel
from keelman.rpc.credentials import Pems
from keelman.rpc.errors import translated
from keelman.rpc.identity import Identity, IdentityKind
from keelman.runtime.processes.ports import free_ports
from keelman.spark.link import LinkApi
from keelman.spark.link_trust import LinkListener, check_worker
from keelman.spark.service import open_link_listener
from keelman.spark.settings import Settings
from support.certificates import Authority, Issued
from support.worlds.dispatch import World

UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
LONG = "orders-of-production-eu-1"


def of_workers(authority: Authority, cluster: str) -> Issued:
    return authority.issue("worker", Identity(IdentityKind.WORKER, f"{cluster}.{UID}").uri)


def write(folder: Path, issued: Issued, roots: Authority) -> dict[str, Any]:
    """Writes the files of a driver; returns its settings."""
    texts = {"link_tls_certificate": issued.chain_pem, "link_tls_key": issued.key_pem, "link_client_ca": roots.pem}
    for name, text in texts.items():
        beside = folder / f"{name}.new"
        beside.write_text(text)
        os.replace(beside, folder / name)
    return {name: folder / name for name in texts}


def listener(tmp_path: Path, authority: Authority) -> LinkListener:
    files = write(tmp_path, authority.issue("driver", "127.0.0.1"), authority)
    made = LinkListener.of(Settings(port=free_ports(1)[0], health_socket=tmp_path / "socket", **files))
    assert made is not None
    return made


async def greeted(address: str, authority: Authority, shown: Issued | None, cluster: str) -> OpenLinkResponse:
    """The answer to a greeting."""
    client = None if shown is None else Pems(shown.chain_pem.encode(), shown.key_pem.encode())
    async with channel(address, root_certificates=authority.pem.encode(), client=client, apart=True) as opened:
        call = WorkerLinkServiceStub(opened).OpenLink()
        greeting = WorkerGreeting(worker_cluster=cluster, worker_id="w:8083", incarnation="1")
        with translated():
            await call.write(OpenLinkRequest(greeting=greeting))
            return cast("OpenLinkResponse", await call.read())


async def test_a_worker_links_with_its_worker_clusters_certificate_only(tmp_path: Path, w: World) -> None:
    authority, other = Authority(), Authority("another installation")
    port = listener(tmp_path, authority)
    address = f"127.0.0.1:{port.port}"
    async with open_link_listener(port, LinkApi(w.d, 3.0, admit=check_worker)):
        answer = await greeted(address, authority, of_workers(authority, LONG), LONG)
        assert answer.HasField("welcome")
        for cluster in (LONG.replace("1", "2"), LONG[:20], f"{LONG}.{UID}", ""):
            with pytest.raises(PermissionDenied, match="may not link as a worker of worker cluster"):
                await greeted(address, authority, of_workers(authority, LONG), cluster)
        for kind in (IdentityKind.NODE, IdentityKind.CLIENT, IdentityKind.BROKER):
            foreign = authority.issue("x", Identity(kind, f"{LONG}.{UID}").uri)
            with pytest.raises(Unauthenticated, match="a worker links with its worker cluster's certificate"):
                await greeted(address, authority, foreign, LONG)
        with pytest.raises(Unauthenticated, match="no certificate of keelman's"):
            await greeted(address, authority, authority.issue("x", "a.example"), LONG)
        for shown in (None, of_workers(other, LONG)):
            with pytest.raises((Unavailable, grpc.aio.UsageError)):
                await greeted(address, authority, shown, LONG)
    assert [owner.worker_cluster for owner in w.d.leases if owner.worker == "w:8083"] == [LONG]


async def test_a_renewed_certificate_is_taken_up_without_a_restart(tmp_path: Path, w: World) -> None:
    old, new = Authority(), Authority("new")
    port = listener(tmp_path, old)
    address = f"127.0.0.1:{port.port}"
    async with open_link_listener(port, LinkApi(w.d, 3.0, admit=check_worker)):
        await greeted(address, old, of_workers(old, "demo"), "demo")
        write(tmp_path, new.issue("driver", "127.0.0.1"), new)
        answer = await greeted(address, new, of_workers(new, "demo"), "demo")
        assert answer.HasField("welcome")


@pytest.mark.parametrize(
    ("left_out", "named"),
    [
        ("link_tls_key", "spark.link_tls_key"),
        ("link_tls_certificate", "spark.link_tls_certificate"),
        ("link_client_ca", "spark.link_client_ca"),
        ("health_socket", "spark.health_socket"),
        ("port", r"spark\.port: 0"),
    ],
)
def test_settings_that_do_not_go_together(tmp_path: Path, left_out: str, named: str) -> None:
    authority = Authority()
    files = write(tmp_path, authority.issue("driver", "127.0.0.1"), authority)
    fields: dict[str, Any] = {"port": 7430, "health_socket": tmp_path / "socket", **files}
    fields[left_out] = 0 if left_out == "port" else None
    with pytest.raises(InvalidArgument, match=named):
        LinkListener.of(Settings(**fields))


def test_a_ticket_of_another_worker_cluster_is_refused(w: World) -> None:
    w.ticket("a", worker_cluster="another")
    assert (w.told[-1].reason, w.told[-1].retriable) == ("PERMISSION_DENIED", False)
    assert w.d.book.get("a") is None


def test_brokers_know_workers_of_clusters_with_long_names_by_their_uid() -> None:
    names = {Identity(IdentityKind.WORKER, f"{LONG}.{uid}").common_name for uid in (UID, UID.replace("0", "1"))}
    assert len(names) == 2
    assert f"worker/{LONG[:20]}.{UID}" in names, "in the 64 characters of a common name"
