"""The building blocks of REST: bodies, paths, log levels, lists, shared reads."""

import asyncio
import contextlib
import json
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from keelman.model.errors import KeelmanError, Unavailable
from keelman.model.work import Work
from keelman.runtime.coalesced import Coalesced
from keelman.runtime.logs.levels import LogLevels
from keelman.worker.errors import RestError
from keelman.worker.offsets.sink_offsets import parsed_sink_offsets
from keelman.worker.rest import bodies, loggers
from keelman.worker.rest.context import flag_in
from keelman.worker.rest.front.paths import plain_path
from keelman.worker.rest.handlers.reads import Reads
from keelman.worker.rest.views import Views
from keelman.worker.storage.config_records import commit_record, connector_record, task_records
from keelman.worker.storage.config_state import ConfigState
from keelman.worker.storage.status_state import Status, StatusState, key_of, topic_key, topic_value
from support.eventually import eventually

QUIET = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@QUIET
@given(JSON)
def test_a_body_is_what_it_says(value: Any) -> None:
    assert bodies.plain(bodies.parsed(json.dumps(value).encode())) == value


@QUIET
@given(st.binary(), JSON)
def test_no_body_does_more_than_be_refused(raw: bytes, value: Any) -> None:
    for read in (bodies.new_connector, bodies.text_map, bodies.offset_entries):
        for given_body in (raw, json.dumps(value).encode()):
            with contextlib.suppress(RestError):
                read(bodies.parsed(given_body))


def test_values_become_their_text() -> None:
    raw = b'{"a":1.50,"b":true,"c":null,"d":1e3,"e":12345678901234567890,"f":"x","f":"y"}'
    assert bodies.text_map(bodies.parsed(raw)) == {
        "a": "1.50",
        "b": "true",
        "c": None,
        "d": "1e3",
        "e": "12345678901234567890",
        "f": "y",
    }


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("/connectors/", "/connectors"),
        ("/connectors/a%2Fb/config", "/connectors/a%2Fb/config"),
        ("/connectors/a;b=c/status", "/connectors/a/status"),
        ("/connectors/../health", "/connectors/../health"),
        ("/connectors/./status", "/connectors/./status"),
        ("/", "/"),
    ],
)
def test_paths(sent: str, meant: str) -> None:
    assert plain_path(sent) == meant


@pytest.mark.parametrize(
    "sent",
    [
        "/connectors/%",
        "/connectors/%zz",
        "/a%00",
        "/a%0Ab",
        "//a",
        "/a//b",
        "/%2E%2e/a",
        "/a/.%2e",
        "/a/..;b/c",
        "/a/.;",
        "/%ff",
        "connectors",
        "http:/connectors",
    ],
)
def test_paths_that_no_connector_has(sent: str) -> None:
    with pytest.raises(RestError) as refused:
        plain_path(sent)
    assert refused.value.status == 400


@pytest.mark.parametrize("body", [rb'{"name":"\ud800"}', rb'{"\uDC00":1}', rb'["a\uD83D"]'])
def test_half_a_character_is_refused_by_its_name(body: bytes) -> None:
    with pytest.raises(RestError, match=r"half of a surrogate pair in it, U\+D") as refused:
        bodies.parsed(body)
    assert refused.value.status == 400
    assert bodies.parsed(rb'"\ud83d\ude00"') == "\U0001f600"


def test_what_is_missing_is_named() -> None:
    for value in (None, bodies.new_connector({"name": "x"}).config):
        with pytest.raises(RestError, match=r"^The field 'config' is missing in the request: send a JSON object$"):
            bodies.wanted_map(value, "The field 'config'")


def test_a_name_loses_what_java_calls_white_space() -> None:
    assert bodies.new_connector({"name": " \u00a0x\u2003\n"}).name == "\u00a0x\u2003"


def test_levels_go_down_the_names_and_by_java_names() -> None:
    levels = LogLevels()
    levels.begin("info")
    assert levels.set("keelman.worker", "INFO") == [], "as it was"
    assert levels.set("org.apache.kafka.connect", "DEBUG") == ["org.apache.kafka.connect"]
    assert (levels.level_of("keelman.worker.group.herder"), levels.level_of("keelman.rpc.server")) == (10, 20)
    assert levels.set("org.apache.kafka.connect.runtime", "WARN") == ["org.apache.kafka.connect.runtime"]
    assert (levels.level_of("keelman.worker.group.herder"), levels.level_of("keelman.connectors.tools.mock")) == (
        30,
        10,
    )
    assert levels.set("keelman.worker.group.herder", "TRACE") == ["keelman.worker.group.herder"]
    assert levels.level_of("keelman.worker.group.herder") < 10
    assert len(levels.set("root", "ERROR")) == 4, "all that have one of their own"
    assert levels.level_of("keelman.worker.group.herder") == 40
    assert levels.known["root"].modified_ms is not None


def test_numbers_without_end_are_refused() -> None:
    long = b'{"offsets":[{"partition":{"f":' + b"9" * 5000 + b'},"offset":null}]}'
    with pytest.raises(RestError, match="Number value length"):
        bodies.offset_entries(bodies.parsed(long))


def test_levels_that_are_none() -> None:
    for level, status in ((None, 400), ("", 500), ("warning", 404)):
        with pytest.raises(RestError) as refused:
            loggers.level_in({"level": level})
        assert refused.value.status == status
    assert loggers.level_in({"level": "debug"}) == "debug", "every worker gets the level as the client spelled it"


@QUIET
@given(st.text(), st.text())
def test_sink_offsets_are_numbers_or_refused(partition: str, offset: str) -> None:
    entry = bodies.OffsetEntry({"kafka_topic": "t", "kafka_partition": partition}, {"kafka_offset": offset})
    with contextlib.suppress(RestError):
        assert parsed_sink_offsets([entry]) == {("t", int(partition)): int(offset)}


class _Tables:
    """A store's tables, as far as reads need them."""

    heard_at = known_at = 0.0

    def __init__(self, connectors: int) -> None:
        self.config = ConfigState()
        self.config_topic = self
        self.statuses = StatusState()
        for n in range(connectors):
            self.connector(f"c-{n}")
            for work in (Work(f"c-{n}"), Work(f"c-{n}", 0)):
                self.status(work, "RUNNING")

    def connector(self, name: str, **more: str) -> None:
        config = {"connector.class": "FileStreamSource", "name": name, "topic": "t", **more}
        for key, value in [connector_record(name, config), *task_records(name, [config]), commit_record(name, 1)]:
            self.config.apply(key.decode(), value, self.config.offset)

    def status(self, work: Work, state: str | None) -> None:
        value = None if state is None else Status(state, "w:1", 1).value()
        self.statuses.apply(key_of(work).decode(), value)


def test_a_list_shows_every_change_though_it_is_kept() -> None:
    tables = _Tables(3)
    views = Views(tables)  # type: ignore[arg-type]

    def listed(*kinds: str) -> Any:
        return json.loads(b"".join(views.listed(kinds)))

    assert listed("status", "info") == {n: {"status": views.status(n), "info": views.info(n)} for n in views.names()}
    assert listed() == {"c-0": {}, "c-1": {}, "c-2": {}}
    tables.status(Work("c-1", 0), "FAILED")
    tables.connector("c-2", file="/x")
    assert listed("status")["c-1"]["status"]["tasks"][0]["state"] == "FAILED"
    assert listed("info")["c-2"]["info"]["config"]["file"] == "/x"
    tables.config.apply("connector-c-0", None, tables.config.offset)
    tables.status(Work("c-1"), None)
    assert set(listed("info")) == {"c-1", "c-2"}
    assert set(listed("status")) == {"c-2"}, "one without a status is left out, as by Connect"


def test_a_list_of_thousands_is_quick() -> None:
    views = Views(_Tables(10_000))  # type: ignore[arg-type]
    views.listed(["status", "info"])
    begun = time.process_time()
    views.listed(["status", "info"])
    assert time.process_time() - begun < 0.5, "0.05 s where nothing else runs"


@pytest.mark.parametrize(
    ("query", "flag"),
    [("", None), ("f=", None), ("f=TRUE", True), ("f=no", False), ("f=true&f=no", True), ("f=no&f=true", False)],
)
def test_a_flag_is_the_first_one_and_a_blank_one_is_none(query: str, flag: bool | None) -> None:
    request = Request({"type": "http", "query_string": query.encode()})
    for default in (False, True):
        assert flag_in(request, "f", default=default) is (default if flag is None else flag)


def test_topics_in_use() -> None:
    state = StatusState()
    record = topic_value("t", Work("c\x1f", 1), 5)
    assert record == b'{"topic":{"name":"t","connector":"c\\u001F","task":1,"discoverTimestamp":5}}'
    state.apply(topic_key("t", "c").decode(), record)
    assert state.topics == {"c": {"t"}}
    state.apply(topic_key("t", "c").decode(), None)
    assert state.topics == {}


async def test_many_share_one_run_that_begins_after_them() -> None:
    begun: list[asyncio.Event] = []

    async def do() -> None:
        begun.append(asyncio.Event())
        await begun[-1].wait()

    shared = Coalesced(do)

    async with asyncio.TaskGroup() as group:
        first = group.create_task(shared())
        await eventually(lambda: len(begun) == 1)
        others = [group.create_task(shared()) for _ in range(50)]
        begun[0].set()
        await first
        await eventually(lambda: len(begun) == 2)
        assert not any(other.done() for other in others), "the running query may have missed their change"
        begun[1].set()
    assert len(begun) == 2


async def test_a_run_that_fails_fails_its_caller_alone() -> None:
    runs: list[int] = []

    async def do() -> None:
        runs.append(1)
        await asyncio.sleep(0)
        if len(runs) == 1:
            raise OSError("once")

    shared = Coalesced(do)
    outcomes = await asyncio.gather(shared(), shared(), shared(), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [OSError, type(None), type(None)]
    assert len(runs) == 2


class _Behind(_Tables):
    """Tables that show a connector only after they have been read to their end."""

    problem: KeelmanError | None = None
    reads = 0
    seconds = 0.0

    async def read(self, *, seconds: float) -> None:
        self.reads += 1
        self.seconds = seconds
        if self.problem is not None:
            await asyncio.sleep(0)
            raise self.problem
        self.connector("new")


@pytest.mark.parametrize("path", ["/connectors", "/connectors/new", "/connectors/new/config", "/connectors/new/tasks"])
async def test_what_was_written_elsewhere_is_read_first(path: str) -> None:
    tables = _Behind(0)
    reads = Reads(lambda: SimpleNamespace(views=Views(tables)))  # type: ignore[arg-type, return-value]
    handlers = {"": reads.connectors, "new": reads.connector, "config": reads.config, "tasks": reads.tasks}
    request = Request({"type": "http", "query_string": b"", "headers": [], "path_params": {"name": "new"}})
    answer = await handlers[path.removeprefix("/connectors").rpartition("/")[2]](request)
    assert b"new" in bytes(answer.body)
    assert tables.reads == 1


async def test_what_is_known_is_told_while_no_broker_answers() -> None:
    tables = _Behind(1)
    tables.problem = Unavailable("no broker")
    views = Views(tables)  # type: ignore[arg-type]
    assert not views.stale
    await asyncio.gather(*(views.fresh() for _ in range(3)))
    for _ in range(3):
        await views.fresh()
        assert views.names() == ["c-0"]
        assert views.stale
    assert tables.reads == 1, "not each request waits for the unreachable worker"


@pytest.mark.parametrize(("silent", "least", "most"), [(0.0, 4.0, 5.0), (2.0, 2.0, 3.0), (60.0, 1.0, 1.0)])
async def test_a_read_waits_no_longer_than_is_needed(
    silent: float, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keelman.worker.rest.views.STALE_SECONDS", 0.0)
    tables = _Behind(1)
    tables.problem = Unavailable("no broker")
    tables.heard_at = tables.known_at = time.monotonic() - silent
    views = Views(tables)  # type: ignore[arg-type]
    await views.fresh()
    assert least <= tables.seconds <= most
    assert views.stale
    assert views.known_seconds == pytest.approx(silent, abs=1.0)
    tables.heard_at, tables.problem = time.monotonic(), None
    assert not views.stale, "its brokers answer again"
    await views.fresh()
    assert views.names() == ["c-0", "new"]
