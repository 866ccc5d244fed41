from __future__ import annotations

from collections.abc import Iterator

import pytest

from keelman.connectors import registry


@pytest.fixture(autouse=True)
def only_our_plugins() -> Iterator[None]:
    """Removes connectors and steps that a test adds to the registry, which the whole process shares."""
    yield
    registry._added.clear()
    registry._broken.clear()
    registry._steps.clear()
    registry.full_name.cache_clear()
