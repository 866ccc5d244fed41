"""Previews: a connector's next records through each of its steps. Runs in a process of its own, which ends after it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from keelman.connect.errors import ConnectError
from keelman.connect.offsets import CommittedOffsets
from keelman.connect.plugin import Connector, Direction
from keelman.connect.policy.folders import hold_files
from keelman.connect.previews.begin import BEGINNING
from keelman.connect.previews.preview import Preview, View
from keelman.connect.record import Record
from keelman.engine.reading import time_ms
from keelman.engine.record_samples import sink_records, source_records
from keelman.engine.records.registries import open_registry
from keelman.kafka.security.oauth import ALLOWED_KEY, allow_urls


def preview(kind: type[Connector], request: Mapping[str, Any]) -> View:
    """The records with their steps. `request` has `name`, `config` and `tasks` (resolved), `worker_config`, `offsets`
    (rows of the offset topic, base64), `from`, `records` and `seconds`. Raises ConnectError, KafkaException."""
    config, worker, most = request["config"], request["worker_config"], request["records"]
    allow_urls(worker.get(ALLOWED_KEY, ""))
    hold_files(worker)
    steps = Preview(config, worker, open_registry, kind.open_steps)
    sink = kind.direction is Direction.SINK
    records = _sink(steps, request, most) if sink else _source(kind, steps, request, most)
    view = {"connector": request["name"], "type": kind.direction.value, "from": request["from"], "records": records}
    return {**view, "new_schemas": steps.new_schemas}


def _source(kind: type[Connector], steps: Preview, request: Mapping[str, Any], most: int) -> list[View]:
    config = request["config"]
    if kind.data_set(config) is not None:
        raise ConnectError(f"{kind.names[1]} reads a data set, which only Spark can read: it has no preview")
    rows = [(base64.b64decode(key), base64.b64decode(value)) for key, value in request["offsets"]]
    committed = CommittedOffsets(request["name"], () if request["from"] == BEGINNING else rows)
    worker, seconds = request["worker_config"], request["seconds"]
    batches = source_records(kind, config, request["tasks"], worker, committed, most=most, seconds=seconds)
    return [steps.of_source(batch, index) for batch, index in batches]


def _sink(steps: Preview, request: Mapping[str, Any], most: int) -> list[View]:
    messages = sink_records(
        request["worker_config"],
        request["config"],
        request["name"],
        most=most,
        begin="beginning" if request["from"] == BEGINNING else "end",
        seconds=request["seconds"],
    )
    views = []
    for message in messages:
        record = Record(
            message.topic() or "", message.partition(), timestamp_ms=time_ms(message), offset=message.offset()
        )
        views.append(steps.of_sink(record, message.key(), message.value(), message.headers() or ()))
    return views
