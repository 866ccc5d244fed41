"""A process that answers a worker's requests about one plugin's classes, so that no worker imports third-party code.

`python -m keelman.connectors.plugins.host <folder> <bytes of memory> [form of the log]` reads one request a line from
standard input and answers each on standard output, after an empty line when it is ready, until its input ends.
Requests: {"id", "method", "class", ...arguments}. Each gets two lines: {"id"} when it is received, before any of the
plugin's code runs for it, so that the worker knows whether a dead process died of the request; then {"id",
"result"} or {"id", "error": {"type", "name", "message"}}, with key and value of a ConfigValueError, the reason
of an Unavailable, where and why of a PluginFault, and the exception that a Java class has thrown.
The plugin's output and logs go to standard error. The worker's side is `client.PluginHost`.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, BinaryIO

from keelman.connect import contract
from keelman.connect.config.info import keys_to_json
from keelman.connect.errors import ConfigValueError, ConnectError, RetriableConnectError
from keelman.connect.expected import Expected
from keelman.connect.plugin import Connector, Direction
from keelman.connectors import registry
from keelman.connectors.plugins import plugin_path as plugins
from keelman.connectors.validation import configuration as validation
from keelman.model.errors import InvalidArgument, Unavailable
from keelman.runtime.error_text import error_text, plain
from keelman.runtime.logs.logging import about, configure
from keelman.runtime.processes.output_brake import bound_memory, brake_output

LONGEST_VERSION = 100
ATTRIBUTES = {
    "names": Expected(
        "a tuple of texts", lambda value: isinstance(value, tuple | list) and all(isinstance(n, str) for n in value)
    ),
    "version": Expected(
        f"a text of at most {LONGEST_VERSION} characters",
        lambda value: isinstance(value, str) and 0 < len(value) <= LONGEST_VERSION,
    ),
    "direction": Expected("Direction.SOURCE or Direction.SINK", lambda value: isinstance(value, Direction)),
    "runs_on": Expected('"node" or "anywhere"', lambda value: value in ("node", "anywhere")),
}
Request = Mapping[str, Any]


def describe(kind: type[Connector], _request: Request) -> dict[str, Any]:
    """Returns the class's attributes, which no configuration changes. Raises WrongAnswer for illegal attributes."""
    attributes = {name: getattr(kind, name) for name in ATTRIBUTES}
    for name, legal in ATTRIBUTES.items():
        legal.expect(name, attributes[name])
    return {**attributes, "names": list(attributes["names"]), "direction": attributes["direction"].value}


def supports_exactly_once(kind: type[Connector], request: Request) -> bool:
    """Returns whether the class can deliver exactly once with a configuration."""
    return contract.SUPPORTS_EXACTLY_ONCE.of(kind.supports_exactly_once, request["config"])


def config_def(kind: type[Connector], _request: Request) -> list[dict[str, Any]]:
    """Returns the class's own keys, without their validators: `validate` checks values here."""
    return keys_to_json(contract.CONFIG_DEF.of(kind.config_def))


def validate(_kind: type[Connector], request: Request) -> dict[str, Any]:
    """Returns the ConfigInfos of a configuration."""
    return validation.validate(request["config"], request["worker_config"])


def task_configs(kind: type[Connector], request: Request) -> list[dict[str, str]]:
    """Returns the tasks' configurations. Gives a Java source the committed offsets first, if the request has them."""
    if "offsets" in request and (take := getattr(kind, "take_offsets", None)) is not None:
        rows = [(base64.b64decode(key), base64.b64decode(value)) for key, value in request["offsets"]]
        take(request["config"].get("name", ""), rows)
    return list(contract.TASK_CONFIGS.of(kind.task_configs, request["config"], request["max_tasks"]))


def tend(kind: type[Connector], request: Request) -> None:
    """Does the work of the connector as a whole (`Connector.tend`)."""
    contract.TEND.of(kind.tend, request["config"])


def tend_again(kind: type[Connector], request: Request) -> bool:
    """Tends the connector again when that is due. Returns whether these tasks stay."""
    return contract.TEND_AGAIN.of(kind.tend_again, request["config"], request["tasks"])


def refresh_seconds(kind: type[Connector], request: Request) -> float | None:
    """Returns the seconds between two calls of `tend_again`, never 0; None for never."""
    seconds = contract.REFRESH_SECONDS.of(kind.refresh_seconds, request["config"])
    return None if seconds is None else float(seconds)


def alter_offsets(kind: type[Connector], request: Request) -> bool:
    """Returns the connector's verdict on offsets that a user sets or deletes."""
    offsets = [(partition, offset) for partition, offset in request["offsets"]]
    return contract.ALTER_OFFSETS.of(kind.alter_offsets, request["config"], offsets)


def java_answers(_request: Request) -> list[dict[str, str]]:
    """Returns the self-descriptions of the Java plugin's classes."""
    results: list[dict[str, str]] = _java().answers()
    return results


def step_keys(request: Request) -> list[dict[str, Any]]:
    """Returns the keys of a Java class that is no connector."""
    return keys_to_json(_java().step_keys(request["class"], request["kind"]))


def database_tables(request: Request) -> dict[str, Any]:
    """Returns the tables of a database; called only in a process that ends afterwards."""
    _java().start_quickly()
    databases: Any = importlib.import_module("keelman.connectors.java.databases")
    listing: dict[str, Any] = databases.tables(request)
    return listing


def _java() -> Any:
    return importlib.import_module("keelman.connectors.java.plugins")  # brings JPype, which most hosts do without


def stop_started(kind: type[Connector], _request: Request) -> None:
    """Stops the connectors that were started here for their task configurations."""
    stop: Callable[[], None] = getattr(kind, "stop_started", lambda: None)
    stop()


def preview(kind: type[Connector], request: Request) -> dict[str, Any]:
    """Returns the next records after each step; called only in a process that ends afterwards."""
    from keelman.connectors.plugins import previews  # noqa: PLC0415  brings Kafka's clients, needed only here

    return previews.preview(kind, request)


def dead_letters(_kind: type[Connector], request: Request) -> dict[str, Any]:
    """Returns a survey of the connector's dead letter topic; called like `preview`."""
    from keelman.engine.dead_letters import reader  # noqa: PLC0415

    return reader.survey(request)


def replay(kind: type[Connector], request: Request) -> dict[str, Any]:
    """Sends the connector's dead letters back through its steps; called like `preview`."""
    from keelman.engine.dead_letters import replay as replays  # noqa: PLC0415

    return replays.replay(request, kind.open_steps)


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
        stop_started,
        preview,
        dead_letters,
        replay,
    )
}


OF_NO_CONNECTOR: dict[str, Callable[[Request], Any]] = {
    f.__name__: f for f in (java_answers, step_keys, database_tables)
}
"""Methods about a Java plugin, or about classes of jars that are no connectors."""


def answered(request: Request) -> str:
    """Returns the answer to a request as JSON, whatever the plugin does short of ending the process."""
    try:
        with about(_subject(request)):
            if (ask := OF_NO_CONNECTOR.get(request["method"])) is not None:
                result = ask(request)
            else:
                result = METHODS[request["method"]](registry.find_connector(request["class"]), request)
        text = json.dumps({"id": request["id"], "result": result}, ensure_ascii=False)
        text.encode()  # half a surrogate pair is no text that can be stored
        return text
    except BaseException as error:  # the answer reports sys.exit too
        return json.dumps({"id": request["id"], "error": error_to_json(error)})


def _subject(request: Request) -> dict[str, str]:
    """Returns the subject of lines that are logged during the request."""
    config = request.get("config")
    name = config.get("name") if isinstance(config, Mapping) else None
    return {"connector": str(name)} if name else {}


def error_to_json(error: BaseException) -> dict[str, Any]:
    """Returns an error as JSON."""
    fault: dict[str, Any] = {"message": error_text(error), "name": type(error).__name__}
    if isinstance(error, ConnectError) and error.java_trace:
        fault["java"] = {"name": error.java_name, "trace": plain(error.java_trace)}
    if isinstance(error, ConfigValueError):
        value = None if error.value is None else plain(str(error.value))
        return {**fault, "type": "value", "key": plain(str(error.key)), "value": value}
    if isinstance(error, plugins.PluginFault):
        return {**fault, "type": "fault", "where": plain(error.where), "why": plain(error.why)}
    if isinstance(error, InvalidArgument):
        return {**fault, "type": "argument"}
    if isinstance(error, Unavailable):
        return {**fault, "type": "unavailable", "reason": error.reason}
    if isinstance(error, ConnectError):
        return {**fault, "type": "retriable" if isinstance(error, RetriableConnectError) else "connect"}
    return {**fault, "type": "other"}


def error_from_json(error: Mapping[str, Any], where: str) -> ConnectError | InvalidArgument | Unavailable:
    """Returns the error to raise in the worker. Connect's own message for a value stays unchanged, and so does a
    message that already names plugin and class."""
    exception = _made(error, where)
    if isinstance(exception, ConnectError) and "java" in error:
        exception.java_name, exception.java_trace = error["java"]["name"], error["java"]["trace"]
    return exception


def _made(error: Mapping[str, Any], where: str) -> ConnectError | InvalidArgument | Unavailable:
    if error["type"] == "argument":
        return InvalidArgument(error["message"])
    if error["type"] == "unavailable":
        return Unavailable(f"{where}: {error['message']}", reason=error["reason"])
    if error["type"] == "value":
        return ConfigValueError(error["key"], error["value"], whole=error["message"])
    if error["type"] == "fault":
        return plugins.PluginFault(error["where"], error["why"])
    message = (
        error["message"] if error["type"] != "other" else f"{error['name']}: {error['message']}".removesuffix(": ")
    )
    kind = RetriableConnectError if error["type"] == "retriable" else ConnectError
    return kind(f"{where}: {message}")


def own_channels() -> tuple[BinaryIO, BinaryIO]:
    """Returns standard input and output for this program alone; the plugin gets no input, and standard error as output.

    Processes that the plugin forks do not get them either: a child that returned here would answer too, and a child
    that outlives this process would hide its end from the worker.
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
    """Writes a whole line: a signal may end a single write early."""
    answers.write(text.encode() + b"\n")
    answers.flush()


def main(folder: str, memory_bytes: int, log_form: str = "{}") -> None:
    """Serves requests until the input ends; without a folder, requests about the connectors that we ship."""
    requests, answers = own_channels()
    brake_output()
    configure("plugin-host", **json.loads(log_form))
    bound_memory(memory_bytes)
    if folder:
        plugins.use(folder, quick=True)
    say(answers, "")  # from here on the plugin's code uses the time
    for line in requests:
        request = json.loads(line)
        say(answers, json.dumps({"id": request["id"]}))
        say(answers, answered(request))


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
    except BrokenPipeError:  # the worker has ended
        os._exit(1)  # an ordinary exit would try to write buffered output
