"""How the Couchbase connectors reach a cluster, and the errors that they report at once if they cannot."""

import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from keelman.connectors.couchbase.official import CouchbaseSource
from support.certificates import PASSWORD as STORE_PASSWORD
from support.certificates import Authority, as_jks
from support.copying.harness import Run, ticket
from support.couchbase.copies import first, numbers, official
from support.couchbase.server import CouchbaseServer, couchbase_server
from support.kafka.topics import create_topic, messages

pytestmark = pytest.mark.component
VBUCKETS = 4


@pytest.fixture
def server() -> Iterator[CouchbaseServer]:
    """Two nodes, of which the first is the seed."""
    with couchbase_server(vbuckets=VBUCKETS, nodes=2) as actual_couchbase_server:
        yield actual_couchbase_server


def said(runs: Callable[..., Run], bootstrap: str, config: dict[str, str]) -> str:
    """The error with which a run failed."""
    return runs(ticket(bootstrap, config)).until_state("FAILED", seconds=300).message


def copied(runs: Callable[..., Run], bootstrap: str, config: dict[str, str]) -> None:
    """Copies one record."""
    runs(ticket(bootstrap, config)).copied(1)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"couchbase.password": "wrong"}, "refuses user 'Administrator': wrong name or password"),
        ({"couchbase.username": "nobody"}, "refuses user 'nobody'"),
        ({"couchbase.bucket": "none"}, "no bucket 'none'"),
        ({"couchbase.scope": "nowhere"}, "no scope 'nowhere'"),
        ({"couchbase.collections": "_default.nothing"}, "_default.nothing"),
        ({"couchbase.seed.nodes": "127.0.0.1:1"}, "127.0.0.1:1: Connection refused"),
        ({"couchbase.seed.nodes": "no.such.host.invalid"}, "no.such.host.invalid:11210"),
    ],
)
def test_what_cannot_be_is_said_at_once(  # noqa: PLR0917  fixtures
    bootstrap: str, name: str, server: CouchbaseServer, runs: Callable[..., Run], more: dict[str, str], words: str
) -> None:
    assert words in said(runs, bootstrap, {**official(name, server), **more})


def test_tasks_as_the_official_connector_makes_them(server: CouchbaseServer) -> None:
    texts = {key: text for key, text in official("c", server).items() if key != "couchbase.partitions"}
    task_configs = CouchbaseSource.task_configs(texts, 3)
    assert [{key: text for key, text in task_config.items() if key not in texts} for task_config in task_configs] == [
        {"couchbase.partitions": run, "couchbase.maybe.task.id": f"maybe-{n}", "couchbase.cluster.uuid": "c1" * 16}
        for n, run in enumerate(("0;1", "2", "3"))
    ]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1"])
def test_each_way_to_prove_a_password(
    bootstrap: str, name: str, server: CouchbaseServer, runs: Callable[..., Run], mechanism: str
) -> None:
    create_topic(bootstrap, name)
    server.mechanisms = (mechanism, "PLAIN")
    server.put("doc", {"n": 1})
    copied(runs, bootstrap, official(name, server))
    assert numbers(bootstrap, name) == Counter([1])


def test_tls_on_a_plain_port(bootstrap: str, name: str, server: CouchbaseServer, runs: Callable[..., Run]) -> None:
    text = said(runs, bootstrap, {**official(name, server), "couchbase.enable.tls": "true"})
    assert server.seeds in text
    assert "couchbase.enable.tls" in text


def test_a_node_without_the_data_service(
    bootstrap: str, name: str, server: CouchbaseServer, runs: Callable[..., Run]
) -> None:
    for node in server.nodes:
        node.serves = False
    text = said(runs, bootstrap, official(name, server))
    assert f"{server.seeds} has no map of bucket 'travel'" in text


def test_who_may_not_read_changes(bootstrap: str, name: str, server: CouchbaseServer, runs: Callable[..., Run]) -> None:
    server.may_read = False
    assert "lacks the role Data DCP Reader for bucket 'travel'" in said(runs, bootstrap, official(name, server))


def test_only_plain_without_tls(bootstrap: str, name: str, server: CouchbaseServer, runs: Callable[..., Run]) -> None:
    server.mechanisms = ("PLAIN",)
    assert "PLAIN" in said(runs, bootstrap, official(name, server))


def test_the_connector_of_2016_says_so_too(
    bootstrap: str, name: str, server: CouchbaseServer, runs: Callable[..., Run]
) -> None:
    assert "refuses user 'travel'" in said(runs, bootstrap, first(name, server))


@dataclass
class Secured:
    """Files of certificates, and a server with TLS that uses them."""

    folder: Path
    server: CouchbaseServer

    def config(self, fields: dict[str, str], trusted: str = "trusted.pem") -> dict[str, str]:
        """The configuration with TLS."""
        trust = str(self.folder / trusted)
        return {**fields, "couchbase.enable.tls": "true", "couchbase.trust.certificate.path": trust}


@pytest.fixture(params=[False, True], ids=["password", "certificate"])
def secured(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Secured]:
    """A server that requires a password, or a client's certificate."""
    authority = Authority()
    issued = authority.issue("node", "127.0.0.1")
    (tmp_path / "chain.pem").write_text(issued.chain_pem)
    (tmp_path / "key.pem").write_text(issued.key_pem)
    (tmp_path / "trusted.pem").write_text(authority.pem)
    (tmp_path / "other.pem").write_text(Authority("other").pem)
    for who, by in (("reader", authority), ("stranger", Authority("other"))):
        store = by.issue(who).write_pkcs12(tmp_path / f"{who}.p12")
        as_jks(store, tmp_path / f"{who}.jks")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "chain.pem", tmp_path / "key.pem")
    if request.param:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(tmp_path / "trusted.pem")
    with couchbase_server(vbuckets=VBUCKETS, tls=context) as server:
        server.put("doc", {"n": 1})
        yield Secured(tmp_path, server)


PASSWORD = pytest.mark.parametrize("secured", [False], indirect=True)
CERTIFICATE = pytest.mark.parametrize("secured", [True], indirect=True)


@PASSWORD
def test_over_tls_with_a_password(bootstrap: str, name: str, runs: Callable[..., Run], secured: Secured) -> None:
    create_topic(bootstrap, name)
    wrong = secured.config(official(name, secured.server), "other.pem")
    assert "certificate" in said(runs, bootstrap, wrong).lower()
    copied(runs, bootstrap, secured.config(official(name, secured.server)))
    assert numbers(bootstrap, name) == Counter([1])


def with_store(secured: Secured, fields: dict[str, str], store: str) -> dict[str, str]:
    """With a client's certificate; the configured password must not be used."""
    more = {"couchbase.client.certificate.path": str(secured.folder / store)}
    return {**secured.config(fields), **more, "couchbase.client.certificate.password": STORE_PASSWORD}


@CERTIFICATE
@pytest.mark.parametrize("store", ["reader.p12", "reader.jks"])
def test_a_clients_certificate(
    bootstrap: str, name: str, runs: Callable[..., Run], secured: Secured, store: str
) -> None:
    create_topic(bootstrap, name)
    config = with_store(secured, {**official(name, secured.server), "couchbase.password": "not asked for"}, store)
    copied(runs, bootstrap, config)
    assert numbers(bootstrap, name) == Counter([1])
    assert secured.server.certified == {"reader"}


@CERTIFICATE
def test_a_clients_certificate_for_the_connector_of_2016(
    bootstrap: str, name: str, runs: Callable[..., Run], secured: Secured
) -> None:
    create_topic(bootstrap, f"{name}-travel")
    copied(runs, bootstrap, with_store(secured, first(name, secured.server), "reader.p12"))
    assert len(messages(bootstrap, f"{name}-travel")) == 1


@CERTIFICATE
def test_a_clients_certificate_that_is_not_trusted_or_none(
    bootstrap: str, name: str, runs: Callable[..., Run], secured: Secured
) -> None:
    configuration = official(name, secured.server)
    assert secured.server.seeds in said(runs, bootstrap, with_store(secured, configuration, "stranger.p12"))
    text = said(runs, bootstrap, with_store(secured, configuration, "absent.p12"))
    assert "couchbase.client.certificate.path" in text
    assert "absent.p12" in text
