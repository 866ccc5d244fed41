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
    flags = {name: options.pop(f"short_{name}") for name, _, _ in FLAGS}
    problems = wrong(flags)
    if problems:
        parser.error("; ".join(problems))
    return run_service(
        program,
        {
            **options,
            "properties": properties(flags),
            "post_config": True,
            "worker_cluster": flags["cluster"] or options["worker_cluster"],
        },
    )


def wrong(flags: Mapping[str, str | None]) -> list[str]:
    """Returns all missing or illegal flags, a sentence each."""
    missing = [f"-{name}" for name in REQUIRED if not flags[name]]
    problems = [f"{', '.join(missing)} must be given"] if missing else []
    if brokers := flags["brokers"]:
        problems += [f"-brokers: {server!r} is not legal: {HOST_AND_PORT}" for server in not_servers(brokers)]
    problems += [
        f"-{name}: {flags[name]!r} is not legal: {TOPIC_NAME}"
        for name in ("offsets", "configs")
        if (topic := flags[name]) and not is_topic(topic)
    ]
    topics = [flags["offsets"], flags["configs"], f"{flags['group']}-status"]
    if not missing and len(set(topics)) < len(topics):
        problems.append(
            f"-offsets and -configs have to be two topics, and neither {topics[-1]}, which keeps the status"
        )
    if flags["registry"] is not None and not _is_url(flags["registry"]):
        url = without_users(flags["registry"])
        problems.append(f"-registry: {url!r} is not legal: a URL, http://host:port")
    if flags["port"] is not None and not is_port(flags["port"]):
        problems.append(f"-port: {flags['port']!r} is not legal: a number from 1 to 65535")
    return problems


def properties(flags: Mapping[str, str | None]) -> dict[str, str]:
    """Returns the worker properties for these flags."""
    converter = AVRO if flags["registry"] else JSON
    properties_now = {
        "bootstrap.servers": flags["brokers"] or "",
        "group.id": flags["group"] or "",
        "offset.storage.topic": flags["offsets"] or "",
        "config.storage.topic": flags["configs"] or "",
        "status.storage.topic": f"{flags['group']}-status",
        "key.converter": converter,
        "value.converter": converter,
        "listeners": f"http://:{flags['port'] or 8083}",
    }
    if flags["registry"]:
        properties_now |= dict.fromkeys(REGISTRY_URLS, flags["registry"])
    return properties_now


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False
