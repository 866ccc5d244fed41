"""A Kafka 3.9 broker, which has no transaction version 2.

`python -m keelman.testing.brokers.broker_3_9` is `keelman.broker` with other jars.
"""

from __future__ import annotations

import runpy
from pathlib import Path

from keelman.runtime.java import maven

if __name__ == "__main__":
    maven.KAFKA_BROKER = Path(__file__).with_name("kafka_3_9_broker.lock")
    runpy.run_module("keelman.broker", run_name="__main__", alter_sys=True)
