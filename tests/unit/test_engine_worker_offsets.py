"""The worker's offset topic beside a connector's own, when it cannot be written."""

import pytest

from keelman.engine.control import Control
from keelman.engine.failure import RunFailure
from keelman.engine.worker_offsets import WorkerOffsets


def test_a_client_that_cannot_be_opened_keeps_offsets_from_being_deleted_and_nothing_else() -> None:
    offsets = WorkerOffsets("offsets", {"no.such.property": "1"}, Control(), "c")
    offsets.before_commit([(b"k", b"v")])
    offsets.after_commit([(b"k", b"v")])
    with pytest.raises(RunFailure, match=r"were not deleted from the worker's topic offsets: .*no\.such\.property"):
        offsets.before_commit([(b"k", None)])
    offsets.close()
