"""The file of client properties with which a worker or a Spark service connects to the brokers of its reports."""

from pathlib import Path

import pytest

from keelman.model.errors import InvalidArgument
from keelman.runtime.logs.redaction import HIDDEN, REDACTOR
from keelman.workers.client_properties import read_client_properties


def test_its_secrets_are_not_logged(tmp_path: Path) -> None:
    file = tmp_path / "reports.properties"
    jaas = 'x.PlainLoginModule required username="reporter" password="canary-in-jaas";'
    file.write_text(f"sasl.jaas.config={jaas}\nssl.key.password=canary-key\nsecurity.protocol=SASL_SSL\n")
    client_properties = read_client_properties("spark.reports_properties_file", file)
    assert client_properties["ssl.key.password"] == "canary-key"
    hidden = REDACTOR.hide("SASL_SSL: no mechanism takes canary-in-jaas, key canary-key")
    assert hidden == f"SASL_SSL: no mechanism takes {HIDDEN}, key {HIDDEN}"


def test_a_file_that_cannot_be_read_is_named_by_its_setting(tmp_path: Path) -> None:
    assert read_client_properties("x", None) == {}
    with pytest.raises(InvalidArgument, match=r"spark\.reports_properties_file: .*none"):
        read_client_properties("spark.reports_properties_file", tmp_path / "none")
