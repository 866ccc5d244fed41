"""Finds the nouns: each file of this folder that has a NOUN, or the API of one."""

from __future__ import annotations

import importlib
import pkgutil
from datetime import datetime
from typing import Any

from keelman.api.event.v1 import event_pb2
from keelman.rpc.server import Service
from keelman.rpc.times import to_timestamp
from keelman.state import nouns
from keelman.state.resources.batch import BatchApi
from keelman.state.resources.noun import Noun, Parts

_MODULES = [importlib.import_module(f"{nouns.__name__}.{found.name}") for found in pkgutil.iter_modules(nouns.__path__)]
NOUNS: dict[str, Noun[Any]] = {made.name: made for made in (getattr(m, "NOUN", None) for m in _MODULES) if made}
CREATED = event_pb2.EVENT_TYPE_CREATED
UPDATED = event_pb2.EVENT_TYPE_UPDATED
DELETED = event_pb2.EVENT_TYPE_DELETED


def all_services(parts: Parts) -> list[Service]:
    """Returns the gRPC services of all nouns, and that of several writes together."""
    apis = [module.API(parts) for module in _MODULES if hasattr(module, "API")]
    return [*map(Service.of, apis), Service.of(BatchApi(parts.store, apis))]


def event_of(kind: event_pb2.EventType.ValueType, resource: Any, revision: int, time: datetime) -> event_pb2.Event:
    """Returns an event, with the resource as users see it."""
    noun = NOUNS[resource.NOUN]
    event = event_pb2.Event(revision=revision, time=to_timestamp(time), type=kind, name=resource.name)
    getattr(event, noun.name).CopyFrom(noun.message(resource))
    return event


def event_bytes(kind: event_pb2.EventType.ValueType, resource: Any, revision: int, time: datetime) -> bytes:
    """Returns an event as the bytes in the outbox and in its topic."""
    return event_of(kind, resource, revision, time).SerializeToString(deterministic=True)
