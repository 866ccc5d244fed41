"""Requests to a standalone worker, by which the answers of Apache Kafka Connect and of keelman are compared.

One connector runs from the start, created from a file: source `src`, which reads the file `{input}`.
"""

from __future__ import annotations

from typing import Any

Step = tuple[str, str, Any]

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
NEW = {"name": "new", "config": {"connector.class": SOURCE, "file": "{input}.new", "topic": "alone"}}
PARTITION = {"filename": "{input}"}

# Method, path, body. After "until " the request is repeated until the answer matches the body.
STEPS: tuple[Step, ...] = (
    ("GET", "/connectors", None),
    ("GET", "/connectors/src", None),
    ("GET", "/connectors/src/config", None),
    ("GET", "/connectors/src/tasks", None),
    ("GET", "/connectors/src/status", None),
    ("GET", "/connectors/src/tasks/0/status", None),
    ("GET", "/connectors/src/offsets", None),
    ("GET", "/connectors/src/topics", None),
    ("GET", "/connectors?expand=status&expand=info", None),
    ("GET", "/connectors/none", None),
    ("GET", "/connectors/none/status", None),
    ("GET", "/connectors/none/offsets", None),
    ("GET", "/health", None),
    ("PUT", "/connectors/src/fence", None),
    ("POST", "/connectors/src/tasks", [{"a": "b"}]),
    ("PUT", "/connectors/none/fence", None),
    ("POST", "/connectors/src/config", {"connector.class": SOURCE}),
    ("POST", "/connectors/src/tasks/0/restart", None),
    ("POST", "/connectors/src/tasks/7/restart", None),
    ("POST", "/connectors/none/restart", None),
    ("POST", "/connectors/none/restart?includeTasks=true", None),
    ("POST", "/connectors/src/restart", None),
    ("POST", "/connectors", NEW),
    ("POST", "/connectors", NEW),
    ("PUT", "/connectors/new/config", NEW["config"]),
    ("PATCH", "/connectors/new/config", {"batch.size": "7"}),
    ("PUT", "/connectors/new/pause", None),
    ("PUT", "/connectors/none/pause", None),
    ("PUT", "/connectors/new/resume", None),
    ("PATCH", "/connectors/src/offsets", {"offsets": [{"partition": PARTITION, "offset": {"position": 6}}]}),
    ("DELETE", "/connectors/src/offsets", None),
    ("PUT", "/connectors/none/stop", None),
    ("PUT", "/connectors/src/stop", None),
    ("GET", "until /connectors/src/status", "STOPPED"),
    ("GET", "/connectors/src/tasks", None),
    ("PATCH", "/connectors/src/offsets", {"offsets": [{"partition": PARTITION, "offset": {"position": 6}}]}),
    ("GET", "/connectors/src/offsets", None),
    ("DELETE", "/connectors/src/offsets", None),
    ("GET", "/connectors/src/offsets", None),
    ("PUT", "/connectors/src/resume", None),
    ("DELETE", "/connectors/new", None),
    ("DELETE", "/connectors/new", None),
    ("GET", "/connectors", None),
)


def filled(value: Any, words: dict[str, str]) -> Any:
    """The value with `{word}` replaced in every text of it."""
    if isinstance(value, str):
        for word, text in words.items():
            value = value.replace(word, text)
        return value
    if isinstance(value, dict):
        return {filled(k, words): filled(v, words) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [filled(item, words) for item in value]
    return value
