"""A process that asks one plugin's classes what a worker wants to know, so that no worker imports third-party code.

`python -m keelman.connectors.plugin_host <folder> <bytes of memory>` reads one request a line from standard input and
answers each on standard output, after an empty line when it is ready, until its input ends. Requests: {"id", "method",
"class", ...arguments}. Each gets two lines: {"id"} when it is heard, before any of the plugin's code runs for it, so
that whoever finds the process dead knows whether it died of the request; then {"id", "result"} or {"id", "error":
{"type", "name", "message"}}, with key and value of a ConfigValueError.
What the plugin prints goes to standard error. The worker's side is `plugin_client.PluginHost`.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, BinaryIO

from keelman.connect.config.info import keys_to_json
from keelman.connect.errors import ConfigValueError, ConnectError, RetriableConnectError
from keelman.connect.plugin import LEAST_REFRESH_SECONDS, Connector, Direction
from keelman.connectors import plugins, registry, validation
from keelman.model.errors import InvalidArgument
from keelman.runtime.error_text import error_text, plain
from keelman.runtime.output_brake import bound_memory, brake_output

LONGEST_VERSION = 100
Request = Mapping[str, Any]


def describe(kind: type[Connector], _request: Request) -> dict[str, Any]:
    """What the class is, whatever its configuration. Raises ConnectError for attributes that mean nothing."""
    names, version, direction, runs_on = kind.names, kind.version, kind.direction, kind.runs_on
    _expect(
        "names", names, "a tuple of texts", isinstance(names, tuple | list) and all(isinstance(n, str) for n in names)
    )
    short = isinstance(version, str) and 0 < len(version) <= LONGEST_VERSION
    _expect("version", version, f"a text of at most {LONGEST_VERSION} characters", short)
    _expect("direction", direction, "Direction.SOURCE or Direction.SINK", isinstance(direction, Direction))
    _expect("runs_on", runs_on, '"node" or "anywhere"', runs_on in ("node", "anywhere"))
    return {"names": list(names), "version": version, "direction": direction.value, "runs_on": runs_on}


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
    found: Any = kind.task_configs(request["config"], request["max_tasks"])
    fits = isinstance(found, list | tuple) and all(isinstance(task, dict) for task in found)
    _expect("task_configs", found, "a list with a dict for each task", fits)
    for task in found:
        for key, value in task.items():
            if not (isinstance(key, str) and isinstance(value, str)):
                raise ConnectError(f"a task's configuration is of texts only, not {key!r}: {value!r}")
    return list(found)


def tend(kind: type[Connector], request: Request) -> None:
    """Does what is the whole connector's."""
    kind.tend(request["config"])


def tend_again(kind: type[Connector], request: Request) -> bool:
    """As `tend` when it is time again; whether these tasks stay."""
    return bool(kind.tend_again(request["config"], request["tasks"]))


def refresh_seconds(kind: type[Connector], request: Request) -> float | None:
    """How often to ask anew. Raises ConnectError for what would have it asked without a pause."""
    found: Any = kind.refresh_seconds(request["config"])
    number = isinstance(found, int | float) and not isinstance(found, bool)
    fits = found is None or (number and LEAST_REFRESH_SECONDS <= found < math.inf)
    _expect("refresh_seconds", found, f"None, or seconds, {LEAST_REFRESH_SECONDS:g} or more", fits)
    return None if found is None else float(found)


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
        tend_again,
        refresh_seconds,
        alter_offsets,
        preview,
        dead_letters,
        replay,
    )
}


def answered(request: Request) -> str:
    """The answer to a request as JSON, whatever the plugin does short of ending the process."""
    try:
        result = METHODS[request["method"]](registry.find_connector(request["class"]), request)
        text = json.dumps({"id": request["id"], "result": result}, ensure_ascii=False)
        text.encode()  # half a surrogate pair is no text that can be stored
        return text
    except BaseException as error:  # sys.exit too says what went wrong
        return json.dumps({"id": request["id"], "error": error_to_json(error)})


def error_to_json(error: BaseException) -> dict[str, Any]:
    """An error as JSON."""
    found: dict[str, Any] = {"message": error_text(error), "name": type(error).__name__}
    if isinstance(error, ConfigValueError):
        value = None if error.value is None else plain(str(error.value))
        return {**found, "type": "value", "key": plain(str(error.key)), "value": value}
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
    message = (
        error["message"] if error["type"] != "other" else f"{error['name']}: {error['message']}".removesuffix(": ")
    )
    kind = RetriableConnectError if error["type"] == "retriable" else ConnectError
    return kind(f"{where}: {message}")


def _expect(name: str, found: object, legal: str, fits: bool) -> None:
    """Raises ConnectError unless what the class said fits. What it said may be of any length, and raise when shown."""
    if not fits:
        kind = type(found).__name__
        shown = f": {found!r:.100}" if isinstance(found, str | int | float | list | tuple | dict) else ""
        raise ConnectError(f"{name} is {'None' if found is None else f'of type {kind}{shown}'}; expected {legal}")


def own_channels() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for this program alone; the plugin's are nothing and standard error.

    Not for processes that the plugin forks, either: one that came back here would answer too, and one that stays would
    keep the worker from seeing this process's end.
    """
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    for number in (requests.fileno(), answers.fileno()):
        os.register_at_fork(after_in_child=partial(os.close, number))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


def say(answers: BinaryIO, text: str) -> None:
    """Writes a line whole: a signal may end a single write early."""
    answers.write(text.encode() + b"\n")
    answers.flush()


def main(folder: str, memory_bytes: int) -> None:
    """Serves until the input ends. Without a folder it is asked about connectors that we ship."""
    requests, answers = own_channels()
    brake_output()
    bound_memory(memory_bytes)
    if folder:
        plugins.use(folder)
    say(answers, "")  # what comes now is the plugin's time
    for line in requests:
        request = json.loads(line)
        say(answers, json.dumps({"id": request["id"]}))
        say(answers, answered(request))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
