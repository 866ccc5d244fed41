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
        return wire.Watch(
            file=wire.FileWatch(path=watch.path, size=watch.size, inode=watch.inode, modified=watch.modified)
        )
    if isinstance(watch, VbucketWatch):
        places = {n: wire.VbucketPosition(seqno=at.seqno, vbuuid=at.vbuuid) for n, at in watch.positions.items()}
        return wire.Watch(vbuckets=wire.VbucketWatch(properties=watch.properties, positions=places))
    return wire.Watch(topics=topics_to_wire(watch))


def topics_to_wire(watch: TopicWatch) -> wire.TopicWatch:
    """For a RunUpdate or a ticket."""
    positions = [wire.TopicPosition(topic=p.topic, partition=p.partition, offset=o) for p, o in watch.positions.items()]
    return wire.TopicWatch(client_properties=watch.properties, positions=positions, topic_ids=watch.ids)


def topics_from_wire(watch: wire.TopicWatch) -> TopicWatch:
    """From a RunUpdate or a ticket."""
    positions = {TopicPartition(p.topic, p.partition): p.offset for p in watch.positions}
    return TopicWatch(dict(watch.client_properties), positions, dict(watch.topic_ids))


def from_wire(watch: wire.Watch) -> Watch | None:
    """Returns the watch of a RunUpdate; None for an unknown one."""
    kind = watch.WhichOneof("on")
    if kind == "file":
        return FileWatch(watch.file.path, watch.file.size, watch.file.inode, watch.file.modified)
    if kind == "topics":
        return topics_from_wire(watch.topics)
    if kind == "vbuckets":
        places = {n: VbucketPosition(at.seqno, at.vbuuid) for n, at in watch.vbuckets.positions.items()}
        return VbucketWatch(dict(watch.vbuckets.properties), places)
    return None
