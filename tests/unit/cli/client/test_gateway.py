"""What the command line's client of the gateway says beside what it returns."""

import pytest

from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.cli.client.gateway import _print_notes


def test_notes_on_a_configuration_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    connector = Connector(name="c", notes=["fiel: unknown, did you mean file?", "x: unknown, nothing reads it"])
    assert _print_notes(connector) is connector
    assert _print_notes(Connector(name="c")).name == "c"
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "keelman: note: fiel: unknown, did you mean file?",
        "keelman: note: x: unknown, nothing reads it",
    ]
