"""How long the gateway waits for answers of the state service."""

from typing import Any

import pytest

from keelman.api.connect.v1 import dedicated_connector_service_pb2 as pb
from keelman.gateway.calls import SECONDS, Calls
from keelman.model.connectors.dedicated_connector import SCALING_SECONDS


class Channel:
    """Records the deadline of each call."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def unary_unary(self, path: str, **_: Any) -> Any:
        """Returns a method with empty answers."""

        async def call(request: Any, *, metadata: Any, timeout: float) -> None:
            self.seconds.append(timeout)

        return call


@pytest.mark.parametrize(
    ("request_type", "seconds"),
    [
        (pb.GetDedicatedConnectorRequest, SECONDS),
        (pb.CreateDedicatedConnectorRequest, SECONDS),
        (pb.DeleteDedicatedConnectorRequest, SECONDS),
        (pb.UpdateDedicatedConnectorRequest, SECONDS + SCALING_SECONDS),
        (pb.PauseDedicatedConnectorRequest, SECONDS + SCALING_SECONDS),
        (pb.ResumeDedicatedConnectorRequest, SECONDS + SCALING_SECONDS),
        (pb.RestartDedicatedConnectorRequest, SECONDS + SCALING_SECONDS),
    ],
)
async def test_what_may_wait_for_a_step_of_autoscaling_has_the_time(request_type: Any, seconds: float) -> None:
    channel: Any = Channel()
    await Calls(channel).ask(request_type(name="one"))
    assert channel.seconds == [seconds]
