"""A connector has an offset topic of its own, and the worker's offset topic cannot be written."""

import pytest

from keelman.engine.control import Control
from keelman.engine.failure import RunFailure
from keelman.engine.source.worker_offsets import WorkerOffsets


def test_brokers_that_are_away_keep_offsets_from_being_deleted_and_nothing_else() -> None:
    offsets = WorkerOffsets("offsets", {"bootstrap.servers": "127.0.0.1:9"}, Control(), "c", "client")
    offsets.before_commit([(b"k", b"v")])
    offsets.after_commit([(b"k", b"v")])
    with pytest.raises(RunFailure, match=r"were not deleted from the worker's topic offsets: no broker answers"):
        offsets.before_commit([(b"k", None)])
    offsets.close()
