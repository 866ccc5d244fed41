"""Which servers are called without TLS."""

from pathlib import Path

import pytest

from keelman.model.errors import InvalidArgument
from keelman.rpc.channels import checked_peer, root_certificates


@pytest.mark.parametrize("address", ["127.0.0.1:7410", "localhost:7410", "[::1]:7410", "unix:/run/state.sock"])
def test_who_is_on_this_host_may_be_asked_in_plain_text(address: str) -> None:
    checked_peer("agent.state_address", address, ca="state_ca", certificates=None, trust="loopback")


def test_who_is_elsewhere_needs_tls_or_a_mesh() -> None:
    with pytest.raises(
        InvalidArgument, match=r"agent.state_address: '10.0.0.1:7410' .* state_ca, or with trust = mesh"
    ):
        checked_peer("agent.state_address", "10.0.0.1:7410", ca="state_ca", certificates=None, trust="loopback")
    checked_peer("agent.state_address", "10.0.0.1:7410", ca="state_ca", certificates=None, trust="mesh")
    checked_peer("agent.state_address", "10.0.0.1:7410", ca="state_ca", certificates=b"pem", trust="loopback")


def test_certificates_that_cannot_be_read_are_named_by_their_setting(tmp_path: Path) -> None:
    assert root_certificates("agent.state_ca", None) is None
    with pytest.raises(InvalidArgument, match=r"agent.state_ca: .*none.pem.* a readable PEM file"):
        root_certificates("agent.state_ca", tmp_path / "none.pem")
