"""Logs from Java as plugins do; a program whose lines on standard error are keelman's log."""

from __future__ import annotations

import os
import sys
from typing import Any

from keelman.connectors.java import jvm, logs
from keelman.connectors.java.jvm import java_class
from keelman.runtime.logs.levels import LOG_LEVELS
from keelman.runtime.logs.logging import configure


def log() -> None:
    """A few lines of two loggers, and one on standard output."""
    factory: Any = java_class("org.slf4j.LoggerFactory")
    quiet, loud = factory.getLogger("acme.quiet"), factory.getLogger("acme.loud.Task")
    quiet.debug("nobody wants this")
    quiet.info("read {} rows", java_class("java.lang.Integer")(7))
    LOG_LEVELS.set("acme.quiet", "ERROR")
    LOG_LEVELS.set("acme.loud", "DEBUG")
    quiet.warn("nobody wants this any more")
    logs.in_context("lines", 3)
    loud.debug("in detail")
    loud.error("no table", java_class("java.lang.IllegalStateException")("gone"))
    java_class("java.lang.System").out.println("said by itself")  # type: ignore[attr-defined]


if __name__ == "__main__":
    configure("slot", json=True)
    jvm.start(jvm.JvmOptions(heap_bytes=64 << 20, quick=True))
    logs.take_over()
    log()
    sys.stderr.flush()
    os._exit(0)  # otherwise it would wait for the machine
