"""The driver's side of a JVM that is lost."""

import logging
import socket
import threading
from collections.abc import Iterator

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from keelman.spark.masters.driver import load_pyspark, open_seconds
from keelman.spark.masters.master import Master


@pytest.fixture
def lost() -> Iterator[int]:
    """The port of a server that hangs up in the middle of a call, like a killed JVM."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            with server.accept()[0] as call:
                call.recv(1)
            server.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_a_local_spark_has_as_long_as_a_busy_machine_needs_and_a_silent_cluster_has_not() -> None:
    assert open_seconds(Master.of("local[256,1]")) >= 300
    assert open_seconds(Master.of("spark://h:7077")) == 30


def test_a_lost_jvm_is_not_told_by_py4j(lost: int, caplog: pytest.LogCaptureFixture) -> None:
    level, filters = logging.getLogger("py4j").level, list(logging.getLogger().filters)
    load_pyspark()
    try:
        with pytest.raises(Py4JError):
            JavaGateway(gateway_parameters=GatewayParameters(port=lost)).jvm.java.lang.System.currentTimeMillis()
        assert [record for record in caplog.records if record.name.startswith("py4j")] == [], "others may log meanwhile"
        caplog.set_level(logging.WARNING)  # whichever level earlier tests have set
        logging.warning("of another")
        assert "of another" in caplog.messages
    finally:
        logging.getLogger("py4j").setLevel(level)
        logging.getLogger().filters[:] = filters
