"""The known classes, and the part of them that is stored."""

from typing import Any

from keelman.api.connect.v1 import document_service_pb2 as pb
from keelman.gateway.ohara.connectors.kept_classes import AGAIN_SECONDS, KeptClasses
from keelman.model.errors import Unavailable


class Documents:
    """A state service's documents; `away` while it does not answer."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Any] = {}
        self.away = False

    async def ask(self, request: pb.PutDocumentRequest) -> Any:
        if self.away:
            raise Unavailable("gone")
        self.kept[request.document.scope, request.document.key] = request.document
        return pb.PutDocumentResponse(document=request.document)

    async def all(self, *_: Any, **__: Any) -> list[Any]:
        return list(self.kept.values())


async def test_classes_are_known_by_all_gateways_in_each_version() -> None:
    documents, now = Documents(), [0.0]
    control: Any = documents
    first, second = (KeptClasses(control, clock=lambda: now[0]) for _ in range(2))
    await second.look()
    await first.keep("a.Source", "1", {"n": 1.0, "password": None})
    await first.keep("a.Source", "", {"n": 2})
    assert documents.kept.keys() == {("1", "a.Source"), ("none", "a.Source")}
    await second.look()
    assert second.find("a.Source", "1") is None, "it has just checked"
    now[0] = AGAIN_SECONDS
    await second.look()
    assert second.find("a.Source", "1") == first.find("a.Source", "1") == {"n": 1.0, "password": None}
    assert second.find("a.Source", "") == {"n": 2}
    assert second.find("a.Source", "9") == {"n": 1.0, "password": None}, "another version tells more than none"
    assert second.find("a.Sink", "1") is None


async def test_what_is_known_is_written_once_and_a_write_that_fails_harms_nobody() -> None:
    documents = Documents()
    control: Any = documents
    kept_classes = KeptClasses(control)
    await kept_classes.keep("a.Source", "1", {"n": 1})
    documents.kept.clear()
    await kept_classes.keep("a.Source", "1", {"n": 1})
    assert documents.kept == {}
    documents.away = True
    await kept_classes.keep("a.Source", "2", {"n": 2})
    assert kept_classes.find("a.Source", "2") == {"n": 2}
