"""A Java source's records packed with each codec; a program that prints its results as one JSON object."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from keelman.connectors.java import jvm
from keelman.connectors.java.jvm import java_class
from keelman.connectors.java.plugin_metrics import PluginMetrics
from keelman.connectors.java.source.loops import SourceLoops, compression
from keelman.connectors.java.steps.record_steps import RecordSteps
from keelman.engine.producing.producer_options import CODECS
from keelman.kafka.batches.record_batch import decode, read_header

STORAGE, DATA = "org.apache.kafka.connect.storage", "org.apache.kafka.connect.data"
VALUES = [f"v{n}" + "x" * 500 for n in range(200)]


def packed() -> dict[str, bool]:
    """By codec: whether its batch is of this codec, small, and holds the records unchanged."""
    strings, headers = (java_class(f"{STORAGE}.{name}")() for name in ("StringConverter", "SimpleHeaderConverter"))
    nothing = java_class("java.util.HashMap")()
    strings.configure(nothing, False)
    headers.configure(nothing)
    loops = SourceLoops(RecordSteps(strings, strings, headers, PluginMetrics({})))
    entries = loops.converted(_records())["t"]
    return {name: _holds(loops.packed(entries, compression(codec), 7), codec) for name, codec in CODECS.items()}


def _records() -> Any:
    record, text = java_class("org.apache.kafka.connect.source.SourceRecord"), java_class("java.lang.String")
    schema = java_class(f"{DATA}.Schema").STRING_SCHEMA
    nowhere, records = java_class("java.util.HashMap")(), java_class("java.util.ArrayList")()
    for n, value in enumerate(VALUES):
        single_record = record(nowhere, nowhere, "t", schema, text(f"k{n}"), schema, text(value))
        single_record.headers().addString("from", f"h{n}")
        records.add(single_record)
    return records


def _holds(data: bytes, codec: int) -> bool:
    header, size = read_header(data), sum(map(len, VALUES))
    columns = decode(header, data)
    expected = [(b"k%d" % n, value.encode(), [("from", b"h%d" % n)]) for n, value in enumerate(VALUES)]
    same = list(zip(columns.keys, columns.values, columns.headers, strict=True)) == expected
    return header.codec == codec and (len(data) < size // 2) == bool(codec) and same


if __name__ == "__main__":
    jvm.start(jvm.JvmOptions(heap_bytes=64 << 20, quick=True))
    print(json.dumps(packed()))
    sys.stdout.flush()
    os._exit(0)  # otherwise it would wait for the machine
