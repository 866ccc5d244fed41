"""Each key of docs/workers.md has its effect, is refused, or is ignored with a warning that names it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import structlog

from keelman.connect.config.providers import secret_providers
from keelman.connect.converters.configured import converter_for
from keelman.engine import run
from keelman.engine.commit_interval import commit_interval_seconds, flush_seconds
from keelman.engine.idle import park_after_seconds
from keelman.engine.sink.consumer.consumer import sink_consumer_properties
from keelman.kafka.clients import client_arguments
from keelman.kafka.security import oauth
from keelman.runtime.java.machine_options import MachineOptions
from keelman.worker.config.secrets import Secrets
from keelman.worker.config.typed import checked
from keelman.worker.rest.validated_secrets import problems_with
from keelman.worker.restart_policy import policy_of
from keelman.worker.starting import log_notes
from keelman.worker.tasks import tickets
from keelman.worker.tasks.watermark import stall_seconds
from keelman.workers.properties.plugin_bounds import plugin_bounds
from keelman.workers.properties.plugin_folders import libraries_of
from support.documented import documented_keys, lacking
from support.worker_properties import OF_A_GROUP

Raw = Mapping[str, str]
Observe = Callable[[Raw], Any]


class Seen(NamedTuple):
    """With this value `observe` returns `expected`, without it another; `beside` are further keys to set."""

    value: str
    observe: Observe
    expected: Any
    beside: Raw = OF_A_GROUP


def of(field: str) -> Observe:
    """A part of the typed properties, e.g. `offset_topic.name`."""

    def observe(raw: Raw) -> Any:
        observe: Any = checked(raw)
        for name in field.split("."):
            observe = getattr(observe, name)
        return observe

    return observe


def of_listeners(kind: str) -> Observe:
    return lambda raw: [listener.port for listener in getattr(checked(raw).listeners, kind) or ()]


def converter(role: Any) -> Observe:
    return lambda raw: type(converter_for(role, {}, raw)).__name__


def consumer(key: str) -> Observe:
    return lambda raw: str(sink_consumer_properties(raw, {}, "s", 0, read_committed=True, zombie_seconds=0)[key])


def of_policy(field: str) -> Observe:
    return lambda raw: getattr(policy_of({}, raw), field)


def machine(raw: Raw) -> tuple[MachineOptions, int]:
    """The limits of a slot with third-party code."""
    results: list[Any] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run, "set_machine_options", results.append)
        patched.setattr(run, "bound_memory", results.append)
        run.bound_slot(raw, {})
    return results[0], results[1]


def runs_of_a_slot(raw: Raw) -> int:
    class JavaPlugin:
        folder, java = Path("/plugin"), object()

    plugin: Any = JavaPlugin()
    return tickets._plugin(plugin, checked(raw), {}).runs_per_slot


def literal_secret(raw: Raw) -> bool:
    """Whether a literal password in a connector is refused."""
    config = {"name": "c", "connector.class": "KafkaSink", "topic": "x", "topics": "t", "db.password": "literal"}
    problems = asyncio.run(problems_with(Secrets(raw, lambda: None), config, raw))
    return any(problem.key == "db.password" for problem in problems)


def users(raw: Raw) -> bool:
    basic_auth = checked(raw).basic_auth
    return basic_auth is not None


BASIC = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
SECRETS = {"config.providers": "s", "config.providers.s.class": "keelman.SecretsConfigProvider"}
STRING = "org.apache.kafka.connect.storage.StringConverter"
URL = "https://idp.example/documented"
EFFECTS: dict[str, Seen] = {
    "bootstrap.servers": Seen("h:7", lambda raw: client_arguments(raw)["bootstrap_servers"], ["h:7"]),
    "group.id": Seen("mine", of("group_id"), "mine"),
    "key.converter": Seen(STRING, converter("key"), "StringConverter"),
    "value.converter": Seen(STRING, converter("value"), "StringConverter"),
    "config.storage.topic": Seen("mine", of("config_topic.name"), "mine"),
    "config.storage.replication.factor": Seen("2", of("config_topic.replication_factor"), 2),
    "offset.storage.topic": Seen("mine", of("offset_topic.name"), "mine"),
    "offset.storage.partitions": Seen("7", of("offset_topic.partitions"), 7),
    "status.storage.topic": Seen("mine", of("status_topic.name"), "mine"),
    "status.storage.partitions": Seen("7", of("status_topic.partitions"), 7),
    "status.storage.segment.bytes": Seen("7000000", of("status_topic.settings"), {"segment.bytes": "7000000"}),
    "listeners": Seen("http://h:7", of_listeners("main"), [7]),
    "admin.listeners": Seen("http://h:7", of_listeners("admin"), [7]),
    "rest.advertised.host.name": Seen("mine", of("listeners.advertised.host"), "mine"),
    "rest.advertised.port": Seen("7", of("listeners.advertised.port"), 7),
    "rest.advertised.listener": Seen(
        "http", of("listeners.advertised.scheme"), "http", {"listeners": "http://:7,http://:8"}
    ),
    "exactly.once.source.support": Seen("disabled", of("exactly_once_sources"), False),
    "consumer.session.timeout.ms": Seen("70000", consumer("session.timeout.ms"), "70000"),
    "consumer.max.poll.interval.ms": Seen("70000", consumer("max.poll.interval.ms"), "70000"),
    "session.timeout.ms": Seen("7000", of("session_ms"), 7000),
    "heartbeat.interval.ms": Seen("700", of("heartbeat_ms"), 700),
    "scheduled.rebalance.max.delay.ms": Seen("7", of("rebalance_delay_ms"), 7),
    "plugin.path": Seen("/plugins", of("plugin_path"), "/plugins"),
    "keelman.cpus": Seen("1.5", of("cpus"), 1.5),
    "keelman.memory.bytes": Seen("100000000", of("memory_bytes"), 100_000_000),
    "keelman.metrics.listeners": Seen("http://h:7", of_listeners("metrics"), [7]),
    "keelman.labels": Seen("zone=a", of("labels"), {"zone": "a"}),
    "keelman.commit.interval.ms": Seen("700", lambda raw: commit_interval_seconds(raw, {}), 0.7),
    "keelman.park.after.ms": Seen("700", lambda raw: park_after_seconds(raw, {}), 0.7),
    "keelman.restart.max.attempts": Seen("7", of_policy("attempts"), 7),
    "keelman.restart.backoff.ms": Seen("700", of_policy("first_seconds"), 0.7),
    "keelman.restart.backoff.max.ms": Seen("7000", of_policy("most_seconds"), 7.0),
    "keelman.restart.reset.after.ms": Seen("7000", of_policy("reset_seconds"), 7.0),
    "keelman.stall.after.ms": Seen("7000", lambda raw: stall_seconds({}, raw), 7.0),
    "keelman.plugin.answer.timeout.ms": Seen("700", lambda raw: plugin_bounds(raw).answer_seconds, 0.7),
    "keelman.plugin.host.memory.bytes": Seen("7", lambda raw: plugin_bounds(raw).host_memory, 7),
    "keelman.plugin.slot.memory.bytes": Seen("0", lambda raw: machine(raw)[1], 0),
    "keelman.plugin.jvm.heap.bytes": Seen("70000000", lambda raw: machine(raw)[0].heap_bytes, 70_000_000),
    "keelman.plugin.jvm.options": Seen("-Da=b", lambda raw: machine(raw)[0].more, ("-Da=b",)),
    "keelman.plugin.tasks.per.slot": Seen("7", runs_of_a_slot, 7),
    "keelman.plugin.libraries": Seen("/libraries", libraries_of, ["/libraries"]),
    "offset.flush.interval.ms": Seen("7000", lambda raw: flush_seconds(checked(raw).raw, {}), 7.0),
    "keelman.secrets.scope": Seen("mine", secret_providers, {"s": ("mine",)}, SECRETS),
    "keelman.secrets.policy": Seen("references", literal_secret, True),
    "keelman.jaas.file": Seen("@jaas", users, True, {"rest.extension.classes": BASIC}),
    "keelman.oauthbearer.allowed.urls": Seen(URL, lambda raw: URL in oauth._allowed if checked(raw) else False, True),
}
IGNORED = {
    "connect.protocol": "eager",
    "inter.worker.signature.algorithm": "HmacSHA256",
    "plugin.discovery": "only_scan",
    "metric.reporters": "io.example.Reporter",
    "offset.flush.timeout.ms": "7000",
    "worker.unsync.backoff.ms": "7000",
    "rest.host.name": "h",
    "rest.port": "7",
    "internal.key.converter": "x",
    "internal.value.converter": "x",
}


def test_each_key_of_the_page_is_tried() -> None:
    assert lacking("workers.md", {*EFFECTS, *IGNORED}) == set()
    assert len(documented_keys("workers.md")) > 40, "the page was read"


@pytest.mark.parametrize("key", EFFECTS)
def test_a_key_has_its_effect(key: str, tmp_path: Path) -> None:
    value, observe, expected, beside = EFFECTS[key]
    if value == "@jaas":
        (tmp_path / "users").write_text("demo=wonder\n")
        module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
        (tmp_path / "jaas").write_text(f'KafkaConnect {{ {module} required file="{tmp_path / "users"}"; }};')
        value = str(tmp_path / "jaas")
    before: Any = None
    try:
        before = observe({**OF_A_GROUP, **beside})
    except Exception as error:  # required beside the key
        before = error
    assert observe({**OF_A_GROUP, **beside, key: value}) == expected
    assert before != expected or key == "rest.advertised.listener", "it is so without the key, too"


@pytest.mark.parametrize("key", IGNORED)
def test_a_key_is_ignored_with_a_warning_that_names_it(key: str) -> None:
    raw = {**OF_A_GROUP, key: IGNORED[key]}
    assert checked(raw).raw == raw
    with structlog.testing.capture_logs() as logged:
        log_notes(raw, standalone=False)
    (line,) = [entry for entry in logged if entry["event"] == "worker_properties_ignored"]
    assert line["log_level"] == "warning"
    assert line[key]
