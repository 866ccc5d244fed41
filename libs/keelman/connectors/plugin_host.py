"""A process that asks one plugin's classes what a worker wants to know, so that no worker imports third-party code.

`python -m keelman.connectors.plugin_host <folder> <bytes of memory>` reads one request a line from standard input and
answers each with a line on standard output, after an empty one when it is ready, until its input ends. Requests:
{"id", "method", "class", ...arguments}; answers: {"id", "result"} or {"id", "error": {"type", "name", "message"}}, with
key and value of a ConfigValueError.
What the plugin prints goes to standard error. The worker's side is `plugin_client.PluginHost`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from keelman.connect.config.info import keys_to_json
from keelman.connect.errors import ConfigValueError, ConnectError, RetriableConnectError
from keelman.connect.plugin import Connector, Direction
from keelman.connectors import plugins, registry, validation
from keelman.model.errors import InvalidArgument
from keelman.runtime.output_brake import bound_memory, brake_output

Request = Mapping[str, Any]


def describe(kind: type[Connector], _request: Request) -> dict[str, Any]:
    """What the class is, whatever its configuration."""
    return {
        "names": list(kind.names),
        "version": str(kind.version),
        "direction": Direction(kind.direction).value,
        "runs_on": kind.runs_on,
    }


def supports_exactly_once(kind: type[Connector], request: Request) -> bool:
    """Whether it can deliver exactly once with a configuration."""
    return bool(kind.supports_exactly_once(request["config"]))


def config_def(kind: type[Connector], _request: Request) -> list[dict[str, Any]]:
    """The class's own keys, without their validators: values are checked here, by `validate`."""
    return keys_to_json(kind.config_def())


def validate(_kind: type[Connector], request: Request) -> dict[str, Any]:
    """ConfigInfos of a configuration."""
    return validation.validate(request["config"], request["worker_config"])


def task_configs(kind: type[Connector], request: Request) -> list[dict[str, str]]:
    """The tasks' configurations. Raises ConnectError unless they are texts by texts."""
    found = kind.task_configs(request["config"], request["max_tasks"])
    for task in found:
        for key, value in task.items():
            if not (isinstance(key, str) and isinstance(value, str)):
                raise ConnectError(f"a task's configuration is of texts only, not {key!r}: {value!r}")
    return found


def tend(kind: type[Connector], request: Request) -> None:
    """Does what is the whole connector's."""
    kind.tend(request["config"])


def refresh_seconds(kind: type[Connector], request: Request) -> float | None:
    """How often to ask anew."""
    return kind.refresh_seconds(request["config"])


def alter_offsets(kind: type[Connector], request: Request) -> bool:
    """What it says to offsets that a user sets or deletes."""
    offsets = [(partition, offset) for partition, offset in request["offsets"]]
    return bool(kind.alter_offsets(request["config"], offsets))


def preview(kind: type[Connector], request: Request) -> dict[str, Any]:
    """Its next records through each of its steps; only asked of a process that ends after it."""
    from keelman.connectors import previews  # noqa: PLC0415  brings the clients of Kafka, which no other question needs

    return previews.preview(kind, request)


def dead_letters(_kind: type[Connector], request: Request) -> dict[str, Any]:
    """What is in its topic of dead letters; asked like `preview`."""
    from keelman.engine import dead_letter_reader  # noqa: PLC0415

    return dead_letter_reader.survey(request)


def replay(_kind: type[Connector], request: Request) -> dict[str, Any]:
    """Sends its dead letters back; asked like `preview`."""
    from keelman.engine import replay as replays  # noqa: PLC0415

    return replays.replay(request)


METHODS: dict[str, Callable[[type[Connector], Request], Any]] = {
    f.__name__: f
    for f in (
        describe,
        supports_exactly_once,
        config_def,
        validate,
        task_configs,
        tend,
        refresh_seconds,
        alter_offsets,
        preview,
        dead_letters,
        replay,
    )
}


def answered(line: bytes) -> bytes:
    """The answer to a request, whatever the plugin does short of ending the process."""
    request = json.loads(line)
    try:
        result = METHODS[request["method"]](registry.find_connector(request["class"]), request)
        answer = json.dumps({"id": request["id"], "result": result})
    except Exception as error:
        answer = json.dumps({"id": request["id"], "error": error_to_json(error)})
    return answer.encode() + b"\n"


def error_to_json(error: BaseException) -> dict[str, Any]:
    """An error as JSON."""
    found: dict[str, Any] = {"message": str(error), "name": type(error).__name__}
    if isinstance(error, ConfigValueError):
        value = None if error.value is None else str(error.value)
        return {**found, "type": "value", "key": error.key, "value": value}
    if isinstance(error, InvalidArgument):
        return {**found, "type": "argument"}
    if isinstance(error, ConnectError):
        return {**found, "type": "retriable" if isinstance(error, RetriableConnectError) else "connect"}
    return {**found, "type": "other"}


def error_from_json(error: Mapping[str, Any], where: str) -> ConnectError | InvalidArgument:
    """The error to raise in the worker. A message of Connect's own for a value stays as it is."""
    if error["type"] == "argument":
        return InvalidArgument(error["message"])
    if error["type"] == "value":
        return ConfigValueError(error["key"], error["value"], whole=error["message"])
    message = error["message"] if error["type"] != "other" else f"{error['name']}: {error['message']}"
    kind = RetriableConnectError if error["type"] == "retriable" else ConnectError
    return kind(f"{where}: {message}")


def own_channels() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for this program alone; the plugin's are nothing and standard error."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


def main(folder: str, memory_bytes: int) -> None:
    """Serves until the input ends. Without a folder it is asked about connectors that we ship."""
    requests, answers = own_channels()
    brake_output()
    bound_memory(memory_bytes)
    if folder:
        plugins.use(folder)
    answers.write(b"\n")  # what comes now is the plugin's time
    for line in requests:
        answers.write(answered(line))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
