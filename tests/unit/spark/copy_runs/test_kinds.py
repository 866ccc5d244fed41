"""Which copy runs may have slots of the same kind."""

from keelman.api.copy.v1.ticket_pb2 import Plugin
from keelman.spark.copy_runs.kinds import folder_of, kind_of


def test_a_slot_is_its_plugins_and_its_machines() -> None:
    plain, small = Plugin(folder="/p/acme"), Plugin(folder="/p/acme", machine="heap=1")
    assert kind_of(Plugin()) == ""
    assert len({kind_of(plain), kind_of(small), kind_of(Plugin(folder="/p/acme", machine="heap=2"))}) == 3
    assert {folder_of(kind_of(connector)) for connector in (plain, small)} == {"/p/acme"}
