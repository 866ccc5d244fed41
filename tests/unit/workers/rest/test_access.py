"""Workers with https and passwords, and the gateway's access to them: real listeners of a worker."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from keelman.gateway.settings import Settings
from keelman.model.errors import InvalidArgument, Unauthenticated, Unavailable
from keelman.runtime.processes.ports import free_ports
from keelman.worker.config.typed import checked
from keelman.worker.rest.application import RestApi
from keelman.worker.rest.front.front import open_front, peer_tls
from keelman.workers.rest.access import WorkerAccess
from keelman.workers.rest.asking import ClusterRequests
from keelman.workers.rest.client import Outgoing, Rest
from recorded.rest.record_access import jaas_file
from support.certificates import PASSWORD, Authority
from support.worker.refused_properties import EXTENSION
from support.worker_properties import OF_A_GROUP

LOGGERS = Outgoing("GET", b"/admin/loggers")
"""A request that a worker answers even before it has a group."""
LET_IN = 200


class State:
    """A cluster with one worker."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def rest_urls(self, cluster: str) -> tuple[str, ...]:
        return (self.url,)


@contextlib.asynccontextmanager
async def https_worker(
    folder: Path, authority: Authority, *hosts: str, guarded: bool = False, **more: str
) -> AsyncIterator[State]:
    [port] = free_ports(1)
    store = authority.issue("worker", *hosts).write_pkcs12(folder / "worker.p12")
    fields = {"listeners.https.ssl.keystore.location": str(store), "listeners.https.ssl.keystore.password": PASSWORD}
    fields["listeners"] = f"https://127.0.0.1:{port}"
    if guarded:
        fields |= {"rest.extension.classes": EXTENSION, "keelman.jaas.file": str(jaas_file(folder))}
    properties = checked(
        OF_A_GROUP | fields | {f"listeners.https.ssl.{k.replace('_', '.')}": v for k, v in more.items()}
    )
    api = RestApi(peer_tls(properties))
    try:
        async with open_front(api.app, properties):
            yield State(f"https://127.0.0.1:{port}")
    finally:
        await api.close()


def trusting(folder: Path, authority: Authority, **more: Any) -> WorkerAccess:
    file = folder / "ca.pem"
    file.write_text(authority.pem)
    return WorkerAccess.of("gateway", Settings(worker_ca=file, **more))


async def asked(state: Any, access: WorkerAccess, request: Outgoing = LOGGERS) -> int:
    async with Rest(state.rest_urls, request_seconds=10, access=access) as rest:
        return (await ClusterRequests(rest, access).ask("demo", request)).status


async def test_a_worker_is_trusted_by_the_ca_that_is_set_or_not_at_all(tmp_path: Path) -> None:
    ours = Authority()
    async with https_worker(tmp_path, ours, "127.0.0.1") as state:
        assert await asked(state, trusting(tmp_path, ours)) == LET_IN
        assert await asked(state, WorkerAccess.of("gateway", Settings(worker_verify=False))) == LET_IN
        for access in (trusting(tmp_path, Authority("others")), WorkerAccess()):
            with pytest.raises(
                Unavailable, match=r"certificate is not trusted: .* \(see gateway.worker_ca\)"
            ) as raised:
                await asked(state, access)
            assert raised.value.reason == "UNREACHABLE"
    async with https_worker(tmp_path, ours, "elsewhere.example") as state:
        with pytest.raises(Unavailable, match=r"IP address mismatch.* \(see gateway.worker_ca\)"):
            await asked(state, trusting(tmp_path, ours))


async def test_a_worker_that_asks_for_a_password_gets_that_of_the_settings_and_no_other_does(tmp_path: Path) -> None:
    ours, secret = Authority(), tmp_path / "password"
    secret.write_text("wonder\n")
    access = trusting(tmp_path, ours, worker_user="alice", worker_password_file=secret)
    assert "wonder" not in repr(access)
    sent: list[dict[bytes, bytes]] = []

    class Seen(Rest):
        def send(self, cluster: str, request: Outgoing) -> Any:
            sent.append(dict(request.headers))
            return super().send(cluster, request)

    name = b"authorization"
    async with (
        https_worker(tmp_path, ours, "127.0.0.1") as state,
        Seen(state.rest_urls, request_seconds=9, access=access) as r,
    ):
        assert (await ClusterRequests(r, access).ask("open", LOGGERS)).status == LET_IN
        assert name not in sent[0]
    sent.clear()
    async with (
        https_worker(tmp_path, ours, "127.0.0.1", guarded=True) as state,
        Seen(state.rest_urls, request_seconds=9, access=access) as rest,
    ):
        asking = ClusterRequests(rest, access)
        assert (await asking.ask("demo", LOGGERS)).status == LET_IN
        assert (await asking.ask("demo", LOGGERS)).status == LET_IN
    assert [name in request for request in sent] == [False, True, True]
    assert base64.b64decode(sent[-1][name].removeprefix(b"Basic ")) == b"alice:wonder"


async def test_who_is_not_let_in_is_told_what_to_set(tmp_path: Path) -> None:
    ours, wrong = Authority(), tmp_path / "password"
    wrong.write_text("guess")
    async with https_worker(tmp_path, ours, "127.0.0.1", guarded=True) as state:
        with pytest.raises(Unauthenticated, match=r"'demo' requires a user and .* gateway.worker_user and gateway.wor"):
            await asked(state, trusting(tmp_path, ours))
        named = trusting(tmp_path, ours, worker_user="alice", worker_password_file=wrong)
        with pytest.raises(Unauthenticated, match=r"'demo' refuses user 'alice': .* gateway.worker_password_file"):
            await asked(state, named)


async def test_each_cluster_has_its_own_user_and_a_changed_file_is_taken_up(tmp_path: Path) -> None:
    ours, users = Authority(), tmp_path / "users"
    users.write_text("# of each cluster\nother=bob:x\n\ndemo=alice:guess\n")
    access = trusting(tmp_path, ours, worker_users_file=users)
    assert "guess" not in repr(access)
    async with (
        https_worker(tmp_path, ours, "127.0.0.1", guarded=True) as state,
        Rest(state.rest_urls, request_seconds=9, access=access) as rest,
    ):
        asking = ClusterRequests(rest, access)
        with pytest.raises(Unauthenticated, match=r"'demo' refuses user 'alice': .* gateway.worker_users_file"):
            await asking.ask("demo", LOGGERS)
        with pytest.raises(Unauthenticated, match="'new' requires a user"):
            await asking.ask("new", LOGGERS)
        users.write_text("demo=alice:wonder\nnew=alice:wonder\n")
        for cluster in ("demo", "new", "demo"):
            assert (await asking.ask(cluster, LOGGERS)).status == LET_IN
        users.write_text("demo=alice\n")
        assert (await asking.ask("demo", LOGGERS)).status == LET_IN
        with pytest.raises(Unauthenticated, match="'other' requires a user"):
            await asking.ask("other", LOGGERS)


async def test_a_worker_may_be_closed_to_all_but_who_shows_a_certificate(tmp_path: Path) -> None:
    workers, ours = Authority(), Authority("gateways")
    gateway = ours.issue("gateway")
    (tmp_path / "own.pem").write_text(gateway.chain_pem)
    (tmp_path / "own.key").write_text(gateway.key_pem)
    trust = ours.write_trust(tmp_path / "trust.p12")
    closed = {"client_auth": "required", "truststore_location": str(trust), "truststore_password": PASSWORD}
    async with https_worker(tmp_path, workers, "127.0.0.1", **closed) as state:
        own = {"worker_certificate": tmp_path / "own.pem", "worker_key": tmp_path / "own.key"}
        assert await asked(state, trusting(tmp_path, workers, **own)) == LET_IN
        with pytest.raises(Unavailable):
            await asked(state, trusting(tmp_path, workers))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"worker_users_file": "colonless"},
            "gateway.worker_users_file: .*colonless:2.*CLUSTER=USER",
        ),
        ({"worker_user": "a"}, "gateway.worker_password_file: '' is not legal"),
        ({"worker_password_file": "none"}, "gateway.worker_user: '' is not legal"),
        ({"worker_user": "a:b", "worker_password_file": "none"}, "gateway.worker_user: 'a:b' is not legal"),
        ({"worker_user": "a", "worker_password_file": "none"}, "readable file .No such file"),
        ({"worker_user": "a", "worker_password_file": "empty"}, "a file that is not empty"),
        ({"worker_key": "none"}, "gateway.worker_certificate: '' is not legal"),
        ({"worker_certificate": "none", "worker_key": "none"}, "gateway.worker_certificate: .* readable file"),
        ({"worker_certificate": "empty", "worker_key": "empty"}, "gateway.worker_key is the key of"),
        ({"worker_ca": "none"}, "gateway.worker_ca: .* readable file"),
        ({"worker_ca": "empty"}, "gateway.worker_ca: .* certificates in PEM"),
        ({"worker_ca": "empty", "worker_verify": False}, "gateway.worker_verify: 'false' is not legal"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, fields: dict[str, Any], text: str) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "colonless").write_text("a=b:c\nd=e\n")
    files = {k: tmp_path / v for k, v in fields.items() if k.endswith(("_ca", "_file", "_certificate", "_key"))}
    with pytest.raises(InvalidArgument, match=text):
        WorkerAccess.of("gateway", Settings(**fields | files))
