"""Signatures as the SDK makes them are admitted; altered ones are refused."""

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from keelman.gateway.access.signatures import AccessKey, Sent, Signatures
from keelman.model.errors import PermissionDenied

KEY = AccessKey("AKID", "secret/with+signs", "123450006789")
ARN_PATH = "/v1/connectors/arn%3Aaws%3Akafkaconnect%3Aus-east-1%3A123450006789%3Aconnector%2Fa%20b%2Fuuid-2"


def signed(
    method: str = "GET", path: str = ARN_PATH, query: str = "", body: bytes = b"", *, key: AccessKey = KEY,
    service: str = "kafkaconnect", region: str = "us-east-1", **headers: str,
) -> Sent:  # fmt: skip
    """A request as the SDK sends it, signed now."""
    url = f"http://host:7480{path}?{query}" if query else f"http://host:7480{path}"
    request = AWSRequest(method, url, headers, body)
    SigV4Auth(Credentials(key.id, key.secret), service, region).add_auth(request)
    sent = {"host": "host:7480"} | {name.lower(): str(value) for name, value in request.headers.items()}
    return Sent(method, path, urlsplit(url).query, sent, body)


def test_requests_of_the_sdk_are_let_in() -> None:
    signatures = Signatures({"AKID": KEY}, "kafkaconnect")
    for sent in (
        signed(),
        signed("POST", "/v1/connectors", body='{"name": "ü"}'.encode()),
        signed("DELETE", "/v1/tags/x", "tagKeys=a&tagKeys=b%20c%26d&tagKeys=%C3%BC"),
        signed(path="/v1/connectors", query="connectorNamePrefix=a%2Bb&maxResults=5"),
    ):
        caller = signatures.caller(sent)
        assert (caller.account, caller.region, caller.partition) == ("123450006789", "us-east-1", "aws")
    assert signatures.caller(signed(region="cn-north-1")).partition == "aws-cn"


def changed(sent: Sent, **headers: str) -> Sent:
    """The request with other headers."""
    return Sent(sent.method, sent.path, sent.query, {**sent.headers, **headers}, sent.body)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sent("GET", "/v1/connectors", "", {"host": "h"}), "Missing Authentication Token"),
        (lambda: changed(signed(), authorization="Bearer x"), "Missing Authentication Token"),
        (lambda: changed(signed(), authorization="AWS4-HMAC-SHA256 Credential=x"), "requires 'Signature' parameter"),
        (lambda: signed(key=AccessKey("other", "x", "1")), "The security token included in the request is invalid"),
        (lambda: signed(key=AccessKey("AKID", "wrong", "1")), "does not match the signature you provided"),
        (lambda: signed(service="s3"), "Credential should be scoped to"),
        (lambda: Sent("GET", "/v1/connectors", "", signed().headers), "does not match the signature you provided"),
        (lambda: Sent("GET", ARN_PATH, "a=b", signed().headers), "does not match the signature you provided"),
        (lambda: Sent("PUT", ARN_PATH, "", signed("PUT").headers, b"{}"), "does not match the signature you provided"),
        (lambda: changed(signed(), **{"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}), "not the SHA-256 of the body"),
        (lambda: changed(signed(), **{"x-amz-date": "yesterday"}), "X-Amz-Date must be yyyymmddThhmmssZ"),
        (lambda: changed(signed(), host="elsewhere"), "does not match the signature you provided"),
    ],
)
def test_others_are_not(make: Callable[[], Sent], message: str) -> None:
    with pytest.raises(PermissionDenied, match=message):
        Signatures({"AKID": KEY}, "kafkaconnect").caller(make())


@pytest.mark.parametrize(("late", "word"), [(301, "expired"), (-301, "not yet current")])
def test_a_request_is_good_for_five_minutes(late: float, word: str) -> None:
    import time  # noqa: PLC0415

    sent = signed()
    with pytest.raises(PermissionDenied, match=word):
        Signatures({"AKID": KEY}, "kafkaconnect", lambda: time.time() + late).caller(sent)
    assert Signatures({"AKID": KEY}, "kafkaconnect", lambda: time.time() + late * 0.98).caller(sent)


@pytest.mark.parametrize(("names", "is_legal"), [((), True), (("HOST",), True), (("a.example", "b.example"), False)])
def test_a_request_is_signed_for_a_host_of_this_service(names: tuple[str, ...], is_legal: bool) -> None:
    signatures = Signatures({"AKID": KEY}, "kafkaconnect", hosts=names)
    if is_legal:
        signatures.caller(signed())
        return
    for judge in (signatures.caller, signatures.check_head):
        with pytest.raises(PermissionDenied, match="signed for another host"):
            judge(signed())


def test_a_head_is_judged_without_its_body() -> None:
    signatures = Signatures({"AKID": KEY}, "kafkaconnect")
    sent = signed("POST", "/v1/connectors", body=b"{}")
    signatures.check_head(Sent(sent.method, sent.path, sent.query, sent.headers))
    with pytest.raises(PermissionDenied, match="security token"):
        signatures.check_head(signed(key=AccessKey("other", "x", "1")))
