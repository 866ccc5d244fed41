"""ARNs: their syntax and owner."""

import pytest

from keelman.gateway.access.signatures import SignedCaller
from keelman.gateway.managed_connect import arns
from keelman.gateway.managed_connect.errors import WireError

CALLER = SignedCaller("123450006789", "us-east-1")
EXAMPLE = (
    "arn:aws:kafkaconnect:us-east-1:123450006789:connector/example-Debezium-source-connector/"
    "abc12345-abcd-4444-a8b9-123456f513ed-2"
)


def test_they_are_read_and_written() -> None:
    arn = arns.parsed("connectorArn", EXAMPLE, arns.CONNECTOR, caller=CALLER)
    assert str(arn) == EXAMPLE
    assert arn.resource == "mc-abc12345abcd4444a8b9123456f513ed"
    assert arns.arn_of(arns.CONNECTOR, arn.region, arn.account, arn.name, arn.resource) == arn
    operation = str(arn.of_operation("d0a7b0d8-0000-4000-8000-000000000001"))
    assert arns.parsed("connectorOperationArn", operation, arns.OPERATION, caller=CALLER).connector == arn
    chinese = arns.new_arn(arns.PLUGIN, SignedCaller("123450006789", "cn-north-1"), "p")
    assert str(chinese).startswith("arn:aws-cn:kafkaconnect:cn-north-1:123450006789:custom-plugin/p/")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", 400),
        ("arn:aws:s3:::bucket", 400),
        (EXAMPLE + "/part", 400),
        (EXAMPLE.replace("connector/", "connector-operation/", 1), 400),
        (EXAMPLE.replace(":connector/", ":custom-plugin/"), 400),
        (EXAMPLE.upper(), 400),
        (EXAMPLE + "\n", 400),
        (EXAMPLE.replace("123450006789", "999988887777"), 404),
        (EXAMPLE.replace("arn:aws:", "arn:aws-cn:"), 404),
    ],
)
def test_what_is_none_is_refused(text: str, status: int) -> None:
    with pytest.raises(WireError) as caught:
        arns.parsed("connectorArn", text, arns.CONNECTOR, caller=CALLER)
    assert caught.value.status == status
