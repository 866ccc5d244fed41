"""Translates the conditions that a task waits for between the connector's form and the wire's."""

from __future__ import annotations

from keelman.api.copy.v1 import watch_pb2 as wire
from keelman.connect.records import TopicPartition
from keelman.connect.watches import FileWatch, TopicWatch, VbucketPosition, VbucketWatch, Watch


def to_wire(watch: Watch | None) -> wire.Watch | None:
    """For a RunUpdate."""
    if watch is None:
        return None
    if isinstance(watch, FileWatch):
        return wire.Watch(file=wire.FileWatch(path=watch.path, size=watch.size, inode=watch.inode))
    if isinstance(watch, VbucketWatch):
        places = {n: wire.VbucketPosition(seqno=at.seqno, vbuuid=at.vbuuid) for n, at in watch.positions.items()}
        return wire.Watch(vbuckets=wire.VbucketWatch(properties=watch.properties, positions=places))
    positions = [wire.TopicPosition(topic=p.topic, partition=p.partition, offset=o) for p, o in watch.positions.items()]
    return wire.Watch(topics=wire.TopicWatch(client_properties=watch.properties, positions=positions))


def from_wire(watch: wire.Watch) -> Watch | None:
    """From a RunUpdate; None when it says nothing that is known."""
    kind = watch.WhichOneof("on")
    if kind == "file":
        return FileWatch(watch.file.path, watch.file.size, watch.file.inode)
    if kind == "topics":
        positions = {TopicPartition(p.topic, p.partition): p.offset for p in watch.topics.positions}
        return TopicWatch(dict(watch.topics.client_properties), positions)
    if kind == "vbuckets":
        places = {n: VbucketPosition(at.seqno, at.vbuuid) for n, at in watch.vbuckets.positions.items()}
        return VbucketWatch(dict(watch.vbuckets.properties), places)
    return None
