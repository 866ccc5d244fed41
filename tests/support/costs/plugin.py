"""A plugin of pytest: measures the cost of each test file with `--costs PART`, and starts the longest files first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic  # by this name, for tests replace time.monotonic by clocks of their own
from typing import Any

import pytest

from support.costs.costs import KEPT, MEASURED, Cost, Part, add, dearest, load, longest_first
from support.costs.processors import ProcessorTime
from support.costs.scheduling import FileScheduling

PROPERTY = "cost"
SHORT_SECONDS = 0.05
"""After set-ups and tests that are shorter the processes are not looked at: the next look has their processor time."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", metavar="PART", help=f"adds the cost of each test file to {MEASURED} under this name")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--costs"):
        config.pluginmanager.register(Meter(), "costs-meter")
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Collector(config), "costs-collector")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The tests of a file stay together, in their order; pytest workers take a file at a time."""
    names = list(dict.fromkeys(_file(item.nodeid) for item in items))
    place = {name: number for number, name in enumerate(longest_first(names, load(config.rootpath / KEPT)))}
    items.sort(key=lambda item: place[_file(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling | None:
    """The scheduling of files; None for that which xdist has for other options."""
    return FileScheduling(config, log) if config.getoption("dist") == "loadfile" else None


class Meter:
    """Measures in the process that runs the tests; its figures are in the report of the end of each test."""

    def __init__(self) -> None:
        self._processors = ProcessorTime()
        self._processors.since_last()
        self._cost = Cost()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        """Measures fixtures that begin."""
        self._cost = Cost(tests=1)
        yield from self._measured("setup")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Measures the test itself."""
        yield from self._measured("own")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        """Measures fixtures that end."""
        try:
            yield from self._measured("setup")
        finally:
            if nextitem is None or _file(nextitem.nodeid) != _file(item.nodeid):
                self._cost.own_processor += self._processors.since_last()  # of the file's short tests
            item.user_properties.append((PROPERTY, self._cost.row()))

    def _measured(self, kind: str) -> Iterator[None]:
        begun = monotonic()
        try:
            return (yield)
        finally:
            seconds = monotonic() - begun
            processor = self._processors.since_last() if seconds > SHORT_SECONDS else 0.0
            if kind == "own":
                self._cost.add(Cost(0, 0.0, 0.0, seconds, processor))
            else:
                self._cost.add(Cost(0, seconds, processor))


class Collector:
    """Adds up the reports of all pytest workers, and writes the sum at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._file: Path = config.rootpath / MEASURED
        self._part: str = config.getoption("--costs")
        self._begun = monotonic()
        self._files: dict[str, Cost] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called in the process that collects the results."""
        if report.when == "teardown":
            for row in (row for key, row in report.user_properties if key == PROPERTY):
                self._files.setdefault(_file(report.nodeid), Cost()).add(Cost(*row))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints the dearest files and keeps all."""
        part = Part(monotonic() - self._begun, self._files)
        add(self._file, self._part, part)
        total = part.total()
        terminalreporter.section(
            f"{self._part}: {part.seconds:.0f} s, {total.processor:.0f} processor s; the dearest files"
        )
        for line in dearest(self._files):
            terminalreporter.write_line(line)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
