"""Brokers of older Kafka: `keelman.broker` with other jars."""

from __future__ import annotations

import runpy
from pathlib import Path

from keelman.runtime.java import maven


def run(version: str) -> None:
    """The command line of `keelman broker` with the jars of that version, such as 3_9."""
    maven.KAFKA_BROKER = Path(__file__).with_name(f"kafka_{version}_broker.lock")
    runpy.run_module("keelman.broker", run_name="__main__", alter_sys=True)
