"""A resource's message is built once per change."""

from dataclasses import dataclass

from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster
from keelman.state.resources import serving
from keelman.state.resources.serving import Remembered


@dataclass(frozen=True)
class Thing:
    name: str
    etag: str


def test_a_message_is_made_again_for_a_change_alone(monkeypatch) -> None:
    results: list[Thing] = []

    def make(thing: Thing) -> WorkerCluster:
        results.append(thing)
        return WorkerCluster(name=thing.name, etag=thing.etag)

    remembered = Remembered(make)
    first, equal, changed = Thing("a", "1"), Thing("a", "1"), Thing("a", "2")
    one_copy, other_copy = remembered.copy("a", first), remembered.copy("a", first)
    assert (one_copy, results) == (other_copy, [first])
    one_copy.status.message = "the caller's own"
    assert remembered.copy("a", first) == other_copy
    assert remembered.copy("a", changed).etag == "2"
    assert remembered.copy("a", equal).etag == "1", "another object is another state"
    assert results == [first, changed, equal]

    monkeypatch.setattr(serving, "MAX_REMEMBERED", 2)
    for name in "bcd":
        assert remembered.copy(name, Thing(name, "1")).name == name
    assert len(remembered._made) <= 2
