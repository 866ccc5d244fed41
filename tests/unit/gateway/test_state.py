"""How the gateway finds the agent of a workload."""

import pytest

from keelman.gateway.state import _among


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ("worker/demo/0", {"worker_cluster": "demo"}),
        ("spark/n1", {"node": "n1"}),
        ("spark/n1/+tenant", {"node": "n1"}),
        ("spark/@big/0", {}),
        ("broker/default/0", {}),
    ],
)
def test_the_list_that_is_read_contains_the_workload(workload: str, expected: dict[str, str]) -> None:
    assert _among(workload) == expected
