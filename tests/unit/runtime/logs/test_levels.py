"""Log levels that one process takes over from another."""

import logging

from keelman.runtime.logs.levels import LogLevels


def test_what_was_set_in_one_process_holds_in_another() -> None:
    mine, other = LogLevels(), LogLevels()
    mine.begin("info")
    assert mine.changed == {}
    mine.set("keelman.connectors.file.source", "TRACE")
    mine.set("acme", "ERROR")
    mine.set("root", "WARN")
    mine.set("org.apache.kafka.connect", "DEBUG")
    other.take({**mine.changed, "keelman.kafka": "LOUD"})
    assert other.changed == mine.changed
    names = (
        "keelman.connectors.file.source",
        "keelman.connectors.mirror.source",
        "keelman.kafka.groups.protocol",
        "acme.x",
        "b",
    )
    assert [other.level_of(name) for name in names] == [mine.level_of(name) for name in names]
    assert other.level_of("b") == logging.WARNING
