"""Every changing verb can be repeated, and can be made conditional on the etag that its caller has read."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

READS = ("Get", "List", "Watch", "Peek", "Describe", "Stream", "Download")
MAKES = ("Create", "Put", "Upload", "Import")
NO_RESOURCES = ("AgentService", "SessionService", "JoinService", "CertificateService", "SignatureService")
"""Services for links and for those that may open one."""
NO_REQUEST_ID = {
    "UploadPlugin": "its stream begins with a message that has one",
}
NO_ETAG = {
    "RotateAuthority": "it names the phase that the caller has seen",
    "DeleteJoinToken": "a token never changes",
    "RestartWorker": "a worker is derived from its cluster, and has none",
    "WriteBatch": "each of its writes has its own",
}


def verbs() -> Iterator[Any]:
    for area in ("connect", "node", "access"):
        package = importlib.import_module(f"keelman.api.{area}.v1")
        for module in pkgutil.iter_modules(package.__path__):
            if module.name.endswith("_service_pb2"):
                file = importlib.import_module(f"{package.__name__}.{module.name}").DESCRIPTOR
                for service in file.services_by_name.values():
                    if service.name not in NO_RESOURCES:
                        yield from (method for method in service.methods if not method.name.startswith(READS))


@pytest.mark.parametrize("verb", [pytest.param(verb, id=verb.name) for verb in verbs()])
def test_a_verb_takes_a_request_id_and_an_etag(verb: Any) -> None:
    fields = {field.name for field in verb.input_type.fields}
    assert ("request_id" in fields) == (verb.name not in NO_REQUEST_ID)
    if not verb.name.startswith(MAKES):
        assert ("etag" in fields) == (verb.name not in NO_ETAG)
    if verb.name.startswith("Update"):
        assert "update_mask" in fields


def test_the_verbs_of_all_nouns_are_looked_at() -> None:
    names = {verb.name for verb in verbs()}
    assert {"UpdateNode", "StartBrokerCluster", "DeleteTopic", "UpdateSecret", "PauseConnector"} <= names
    assert len(names) > 40
