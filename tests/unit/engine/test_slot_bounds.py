"""The bounds of a slot that runs third-party code, and of the Java virtual machine that it may start."""

from collections.abc import Iterator

import pytest

from keelman.connect.errors import ConfigValueError
from keelman.connectors.java.jvm import JvmOptions
from keelman.engine import run
from keelman.engine.run import bound_slot
from keelman.runtime.java.machine_options import MACHINE_BYTES, MachineOptions, machine_options, set_machine_options

HEAP, OPTIONS, BOUND = (
    "keelman.plugin.jvm.heap.bytes",
    "keelman.plugin.jvm.options",
    "keelman.plugin.slot.memory.bytes",
)
MIB = 1 << 20


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The bounds that the process, which is the test's own, would have got."""
    results: list[int] = []
    monkeypatch.setattr(run, "bound_memory", results.append)
    yield results
    set_machine_options(MachineOptions())


def test_a_machine_has_256_mib_unless_told_otherwise(bounds: list[int]) -> None:
    bound_slot({}, {})
    assert machine_options() == MachineOptions(256 * MIB)
    assert bounds[0] > 256 * MIB + MACHINE_BYTES


@pytest.mark.parametrize(
    ("bound", "heap"),
    [(MACHINE_BYTES + 300 * MIB, 200 * MIB), (MACHINE_BYTES + 100 * MIB, 100 * MIB), (MACHINE_BYTES, 16 * MIB)],
)
def test_its_heap_is_no_larger_than_the_slots_bound_leaves(bounds: list[int], bound: int, heap: int) -> None:
    bound_slot({HEAP: str(200 * MIB), BOUND: str(bound)}, {})
    assert machine_options().heap_bytes == heap
    assert bounds == [bound]


def test_further_options_come_last_so_that_they_win() -> None:
    bound_slot({OPTIONS: " -Xss1m  -Dacme=1 "}, {})
    arguments = JvmOptions(machine_options().heap_bytes, more=machine_options().more).arguments()
    assert arguments[0] == "-Xmx256m"
    assert arguments[-2:] == ["-Xss1m", "-Dacme=1"]
    assert "-XX:+ExitOnOutOfMemoryError" in arguments
    assert "-XX:TieredStopAtLevel=1" not in arguments


@pytest.mark.parametrize("value", ["lots", "0", "-1", "1048576"])
def test_a_heap_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(ConfigValueError, match=HEAP):
        bound_slot({HEAP: value}, {})


def test_what_the_connector_says_wins_within_the_slots_bound(bounds: list[int]) -> None:
    worker = {HEAP: str(64 * MIB), OPTIONS: "-Xss1m", BOUND: str(MACHINE_BYTES + 100 * MIB)}
    bound_slot(worker, {HEAP: str(90 * MIB), OPTIONS: "-Xss2m"})
    assert machine_options() == MachineOptions(90 * MIB, ("-Xss1m", "-Xss2m"))
    bound_slot(worker, {HEAP: str(900 * MIB)})
    assert machine_options() == MachineOptions(100 * MIB, ("-Xss1m",))
    assert bounds == [MACHINE_BYTES + 100 * MIB] * 2
