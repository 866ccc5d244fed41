"""Random requests with right and wrong members of the SDK's model: each answer is a declared one, none a fault."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from support.gateway.managed_connect.bare import MODEL, NOWHERE, bare_system
from support.gateway.managed_connect.cases import CONFIG, KINDS, legal, unknown_arn
from support.gateway.managed_connect.world import ACCOUNT, PROPERTIES, connector

pytestmark = pytest.mark.component
CASES = 2000
ODD_TEXT = (
    "",
    " ",
    "a" * 300,
    "ü",
    "\x00",
    "\n",
    "../..",
    "%2F",
    "{}",
    "null",
    "a/b",
    "\U0001f600",
    "$" + "{env:x:HOME}",
)
ODD_BODIES = (
    b"", b"{", b"[]", b"null", b"7", b'"text"', b"\xff\xfe", b'{"a": 1e999}', b'{"name": "\\ud800"}', b"{}" * 2,
    b"[" * 100_000, b'{"a":' * 50_000, b'{"name": ' + b"9" * 5000 + b"}", b"x" * (3 << 20), b"\x00",
    b'{"connectorName": "a", "connectorName": "b"}',
)  # fmt: skip
ODD_PATHS = (
    "/v1", "/v1/", "/v1//connectors", "/v1/connectors/", "/v1/connectors//pause", "/v1/./connectors", "/v1/%2e%2e/v0/x",
    "/v1/../v1/connectors", "/v1/connectors%2Fx", "/v1/connectors/%00", "/v1/connectors/%ff", "/v1/connectors/%zz",
    "/v1/connectors/%", "/v1/tags/%0a", "/v1/connectors;x", "/v1/CONNECTORS", "/v1/connectors/x/y/z",
    "/v1/" + "a" * 4000,
)  # fmt: skip
ODD_QUERIES = ("&&&", "=", "a=%zz", "nextToken=%ff", "maxResults=1&maxResults=2", "tagKeys", "x=" + "y" * 4000, "%00=1")
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.sampled_from((0.5, 1e308, *ODD_TEXT)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("a", "", "b")), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip


def right(shape: Any, name: str, sample: Any) -> st.SearchStrategy[Any]:
    """Possibly legal values of a member. `sample`: a legal one."""
    just, texts = st.just(sample), st.sampled_from(ODD_TEXT)
    if shape.type_name == "structure":
        there = sample if isinstance(sample, dict) else {}
        fields = {key: member(value, key, there.get(key, "a")) for key, value in shape.members.items()}
        return st.fixed_dictionaries({}, optional=fields) | just
    if shape.type_name == "list":
        inner = sample[0] if isinstance(sample, list) and sample else "a"
        return st.lists(member(shape.member, name, inner), max_size=2) | just
    search_strategies: dict[str, st.SearchStrategy[Any]] = {
        "string": st.sampled_from(shape.enum) if getattr(shape, "enum", None) else st.just("a") | texts,
        "integer": st.sampled_from((1, 2, 4, 8, 100)),
        "long": st.sampled_from((1, 2)),
        "boolean": st.booleans(),
        "map": st.dictionaries(st.sampled_from(("a", "connector.class", "tasks.max", "db.password")) | texts, texts),
    }
    return search_strategies[shape.type_name] | just


def member(shape: Any, name: str, sample: Any) -> st.SearchStrategy[Any]:
    """A member, mostly of the type in its shape."""
    return st.integers(0, 5).flatmap(lambda chance: JSON if chance == 0 else right(shape, name, sample))


def calls_of(operation: str, there: dict[str, str]) -> st.SearchStrategy[tuple[str, str, str, str, bytes]]:
    """Requests of one operation: its name, method, path, query and body."""
    model = MODEL.operation_model(operation)
    sample = legal(operation, there)
    paths, queries, bodies = {}, {}, {}
    for name, value in (model.input_shape.members if model.input_shape else {}).items():
        match value.serialization.get("location"):
            case "uri":
                present_texts = [text for text in there.values() if text.startswith("arn:")]
                texts = (*present_texts, *present_texts, unknown_arn(KINDS[name]), sample[name] + "/x", *ODD_TEXT[1:])
                paths[name] = st.sampled_from(texts)
            case "querystring":
                values = [sample.get(name, "1"), "true", "100", "0", *ODD_TEXT]
                queries[value.serialization["name"]] = st.sampled_from([str(v) for v in values])
            case _:
                bodies[name] = member(value, name, sample.get(name, "a"))
    whole = {name: value for name, value in sample.items() if name in bodies}
    near = st.fixed_dictionaries({}, optional=bodies).map(lambda value: whole | value)
    body = st.fixed_dictionaries({}, optional=bodies) | near | near
    template = model.http["requestUri"]

    def made(chosen: tuple[dict[str, str], dict[str, str], Any]) -> tuple[str, str, str, str, bytes]:
        path, query, content = chosen
        target = template
        for name, text in path.items():
            target = target.replace(f"{{{name}}}", quote(text, safe=""))
        text = "&".join(f"{key}={quote(value, safe='')}" for key, value in query.items())
        return operation, model.http["method"], target, text, orjson.dumps(content) if bodies else b""

    return st.tuples(
        st.fixed_dictionaries(paths), st.fixed_dictionaries({}, optional=queries), body if bodies else st.just(None)
    ).map(made)


def odd_calls() -> st.SearchStrategy[tuple[str, str, str, str, bytes]]:
    """Requests of no operation, or with an invalid body."""
    templates = sorted({MODEL.operation_model(name).http["requestUri"] for name in MODEL.operation_names})
    filled = [text.replace("{", "").replace("}", "") for text in templates]
    return st.tuples(
        st.just(""), st.sampled_from(METHODS), st.sampled_from((*ODD_PATHS, *filled)),
        st.sampled_from(("", *ODD_QUERIES)), st.sampled_from(ODD_BODIES),
    )  # fmt: skip


@pytest.fixture(scope="module")
async def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("fuzz")
    unsigned = {"managed-connect-unsigned": "true", "managed-connect-account": ACCOUNT}
    async with bare_system(folder, {}, unsigned) as bare:
        content = b64encode(PROPERTIES).decode()
        of = bare.sdk.create_worker_configuration(name="there", propertiesFileContent=content)["workerConfigurationArn"]
        connector_arn = bare.sdk.create_connector(**connector("there", NOWHERE, CONFIG))["connectorArn"]
        version = bare.sdk.describe_connector(connectorArn=connector_arn)["currentVersion"]
        yield (
            bare.endpoints[1],
            {"connectorArn": connector_arn, "workerConfigurationArn": of, "currentVersion": version},
        )


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=300, trust_env=False) as client:
        yield client


def test_answers_to_requests_by_chance(endpoint: tuple[str, dict[str, str]], http: httpx.Client) -> None:
    url, there = endpoint
    seen: Counter[tuple[str, int]] = Counter()
    operations = [calls_of(name, there) for name in MODEL.operation_names if name != "DeleteConnector"]

    @seed(20210914)
    @settings(
        max_examples=CASES, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.one_of(*operations, *operations, odd_calls()))
    def judge(call: tuple[str, str, str, str, bytes]) -> None:
        operation, method, path, query, content = call
        target = (f"{path}?{query}" if query else path).encode("ascii")
        request = httpx.Request(method, url, content=content, extensions={"target": target})
        request.headers["content-type"] = "application/json"
        answer = http.send(request)
        seen[operation, answer.status_code] += 1
        kind = answer.headers.get("x-amzn-errortype")
        assert answer.status_code < 500, (call[:4], content[:300], answer.text)
        assert answer.headers["x-amzn-requestid"], call
        if operation:
            errors = {shape.name for shape in MODEL.operation_model(operation).error_shapes}
            is_declared = (answer.status_code == 200 and kind is None) or kind in errors
            assert is_declared, (call[:4], content[:300], answer.text)
        if method != "HEAD":
            document = answer.json()
            assert kind is None or set(document) == {"message"}, document
            assert _has_no_null(document), document

    judge()
    assert sum(seen.values()) >= CASES
    for name in MODEL.operation_names:
        statuses = {status for (operation, status) in seen if operation == name}
        assert name == "DeleteConnector" or len(statuses) > 1, (name, statuses, "both answers and refusals")


def _has_no_null(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_has_no_null(member) for member in value.values())
    return all(_has_no_null(member) for member in value) if isinstance(value, list) else value is not None
