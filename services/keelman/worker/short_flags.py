"""Translates the flags of Connect's first distributed agents into properties: a worker without a file.

`-brokers h:9092 -group g -cluster c -registry http://r:8081 -offsets o -configs c -port 8083`, each with one dash or
two, its value behind it or behind `=`. Settings of `keelman worker` may be given beside them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from keelman.connect.config.secret_keys import without_users
from keelman.kafka.properties.keys import HOST_AND_PORT
from keelman.runtime.main import Program, add_flags, run_service
from keelman.workers.properties.typed import TOPIC_NAME, is_port, is_topic, not_servers

FLAGS = (
    ("brokers", "HOST:PORT,...", "list of Kafka brokers, comma-separated (required)"),
    ("group", "GROUP", "group id of the workers (required)"),
    ("cluster", "NAME", "name of the worker cluster, for logs and metrics [the group]"),
    ("registry", "URL", "the schema registry: records are Avro then, with their schemas there; without it JSON"),
    ("offsets", "TOPIC", "topic that keeps the offsets of sources (required)"),
    ("configs", "TOPIC", "topic that keeps the configuration of connectors (required)"),
    ("port", "PORT", "port of the REST API [8083]"),
)
REQUIRED = ("brokers", "group", "offsets", "configs")
REGISTRY_URLS = ("key.converter.schema.registry.url", "value.converter.schema.registry.url")
FLAG_OF = {
    "bootstrap.servers": "-brokers",
    "group.id": "-group",
    "offset.storage.topic": "-offsets",
    "config.storage.topic": "-configs",
    "status.storage.topic": "-group",
    "listeners": "-port",
    **dict.fromkeys(REGISTRY_URLS, "-registry"),
}
"""The flag behind each worker property."""
NOT_BESIDE = ("properties_file", "properties", "standalone", "connector_files", "post_config")
JSON = "org.apache.kafka.connect.json.JsonConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"


def main(words: Sequence[str]) -> int:
    """Runs a worker; returns the exit code. Exits with 2 and the usage for flags that are missing or not legal."""
    program = Program.of("worker")
    parser = argparse.ArgumentParser(
        prog="keelman worker",
        usage="keelman worker -brokers HOST:PORT,... -group GROUP -offsets TOPIC -configs TOPIC "
        "[-cluster NAME] [-registry URL] [-port PORT] [--SETTING VALUE ...]\n"
        "       keelman worker run worker.properties\n"
        "       keelman worker standalone worker.properties connector.properties ...",
        allow_abbrev=False,
    )
    for name, metavar, text in FLAGS:
        parser.add_argument(f"-{name}", f"--{name}", dest=f"short_{name}", metavar=metavar, help=text)
    add_flags(parser, program.settings, without=NOT_BESIDE)
    options = vars(parser.parse_args(words))
    given = {name: options.pop(f"short_{name}") for name, _, _ in FLAGS}
    problems = wrong(given)
    if problems:
        parser.error("; ".join(problems))
    return run_service(
        program,
        {
            **options,
            "properties": properties(given),
            "post_config": True,
            "worker_cluster": given["cluster"] or options["worker_cluster"],
        },
    )


def wrong(given: Mapping[str, str | None]) -> list[str]:
    """Returns all missing or illegal flags, a sentence each."""
    missing = [f"-{name}" for name in REQUIRED if not given[name]]
    found = [f"{', '.join(missing)} must be given"] if missing else []
    if brokers := given["brokers"]:
        found += [f"-brokers: {server!r} is not legal: {HOST_AND_PORT}" for server in not_servers(brokers)]
    found += [
        f"-{name}: {given[name]!r} is not legal: {TOPIC_NAME}"
        for name in ("offsets", "configs")
        if (topic := given[name]) and not is_topic(topic)
    ]
    topics = [given["offsets"], given["configs"], f"{given['group']}-status"]
    if not missing and len(set(topics)) < len(topics):
        found.append(f"-offsets and -configs have to be two topics, and neither {topics[-1]}, which keeps the status")
    if given["registry"] is not None and not _is_url(given["registry"]):
        url = without_users(given["registry"])
        found.append(f"-registry: {url!r} is not legal: a URL, http://host:port")
    if given["port"] is not None and not is_port(given["port"]):
        found.append(f"-port: {given['port']!r} is not legal: a number from 1 to 65535")
    return found


def properties(given: Mapping[str, str | None]) -> dict[str, str]:
    """Returns the worker properties for these flags."""
    converter = AVRO if given["registry"] else JSON
    made = {
        "bootstrap.servers": given["brokers"] or "",
        "group.id": given["group"] or "",
        "offset.storage.topic": given["offsets"] or "",
        "config.storage.topic": given["configs"] or "",
        "status.storage.topic": f"{given['group']}-status",
        "key.converter": converter,
        "value.converter": converter,
        "listeners": f"http://:{given['port'] or 8083}",
    }
    if given["registry"]:
        made |= dict.fromkeys(REGISTRY_URLS, given["registry"])
    return made


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False
