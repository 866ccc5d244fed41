"""A signed write is accepted once, at whichever gateway it is repeated."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from support.eventually import eventually
from support.gateway.managed_connect.bare import Bare, Told, Wire, bare_system
from support.gateway.managed_connect.world import KEY, PROPERTIES, REGION, SECRET, sdk_client

pytestmark = pytest.mark.component
USED = "Signature already used: a request is taken once; sign each again"


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Bare]:
    """Two gateways of one state service."""
    async with bare_system(tmp_path, {}, {}) as system:
        yield system


class Recorded:
    """A request as an eavesdropper sees it: its signature is for the first gateway."""

    def __init__(self, bare: Bare, arn: str, tag: str) -> None:
        wire = Wire.of("TagResource", {"resourceArn": arn, "tags": {tag: ""}})
        self.path, self.content = wire.path, httpx.Request("POST", "http://x", json=wire.body).content
        request = AWSRequest("POST", f"{bare.endpoints[0]}{wire.path}", {}, self.content)
        SigV4Auth(Credentials(KEY, SECRET), "kafkaconnect", REGION).add_auth(request)
        host = bare.endpoints[0].removeprefix("http://")
        self.headers = {"host": host, "content-type": "application/json", **dict(request.headers.items())}

    async def sent(self, endpoint: str, **headers: str) -> Told:
        """A gateway's answer to the recorded request."""
        others = {name.replace("_", "-"): text for name, text in headers.items()}
        async with httpx.AsyncClient(trust_env=False, timeout=300) as client:
            answer = await client.post(
                f"{endpoint}{self.path}", content=self.content, headers=self.headers | others,
                extensions={"target": self.path.encode()},
            )  # fmt: skip
        return Told(answer.status_code, answer.headers.get("x-amzn-errortype", ""), answer.json())


async def test_a_request_is_refused_where_another_gateway_has_taken_it(bare: Bare) -> None:
    first, second = bare.endpoints
    worker_configuration = bare.sdk.create_worker_configuration(
        name="a", propertiesFileContent=b64encode(PROPERTIES).decode()
    )
    arn = worker_configuration["workerConfigurationArn"]
    request = Recorded(bare, arn, "one")
    assert (await request.sent(first)).status == 200
    bare.sdk.untag_resource(resourceArn=arn, tagKeys=["one"])
    for endpoint in (second, first):
        answer = await request.sent(endpoint)
        assert (answer.status, answer.kind, answer.message) == (403, "ForbiddenException", USED)
    assert sdk_client(second).list_tags_for_resource(resourceArn=arn)["tags"] == {}

    tried = Recorded(bare, arn, "two")
    for endpoint, number in ((first, 1), (second, 2)):
        answer = await tried.sent(endpoint, amz_sdk_invocation_id="00000000-one", amz_sdk_request=f"attempt={number}")
        assert answer.status == 200, "another try of one call"

    waiting = Recorded(bare, arn, "three")
    bare.state.stop()
    answer = await waiting.sent(first)
    assert (answer.status, answer.kind) == (503, "ServiceUnavailableException"), "it is unknown whether it was taken"
    await bare.state.start()

    async def judged() -> Told | None:
        told = await request.sent(second)
        return told if told.status != 503 else None

    answer = await eventually(judged)  # the gateway finds the state service again
    assert (answer.status, answer.message) == (403, USED), "a state service that was started again still knows it"
    assert (await waiting.sent(second)).status == 200, "it was not taken"
