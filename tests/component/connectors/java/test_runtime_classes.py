"""Connect's inner classes that the bridge to Java uses are unchanged since the bridge was written.

After a new lock of the runtime's jars this test names the differences.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import keelman.connectors.java as bridge
from keelman.model.errors import FailedPrecondition
from keelman.runtime.java.installation import find
from recorded.java.runtime_classes import CLASSES, RECORD, shown

pytestmark = pytest.mark.component
_ROOMS = r"(?:runtime|storage|internals?|isolation|util)"
_NAME = re.compile(rf"""(?<!java)["}}.]((?:connect\.)?{_ROOMS}\.[A-Za-z.]*[A-Z]\w*)\"""")
PUBLIC = ("storage.Converter", "storage.HeaderConverter", "storage.SimpleHeaderConverter")


def no_javap() -> bool:
    try:
        return not find().program.with_name("javap").exists()
    except FailedPrecondition:
        return True


@pytest.mark.skipif(no_javap(), reason="there is no javap on this machine")
async def test_inner_classes_are_as_they_were_recorded() -> None:
    assert await shown() == RECORD.read_text(), (
        "read what has changed, then run python -m recorded.java.runtime_classes"
    )


def test_every_inner_class_that_is_used_is_recorded() -> None:
    used = {
        name
        for file in Path(bridge.__path__[0]).rglob("*.py")
        for name in _NAME.findall(file.read_text())
        if not name.startswith("util.concurrent") and not name.endswith(PUBLIC)
    }
    assert used
    assert not [name for name in used if not any(class_name.endswith(f".{name}") for class_name in CLASSES)]
