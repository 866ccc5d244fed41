"""Answers about configurations show references and never their values; literal secrets can be refused."""

from keelman.connect.config.info import ConfigError
from keelman.runtime.logs.redaction import REDACTOR
from keelman.worker.rest.validated_secrets import _literals, hidden_answer

SOURCE = {"connector.class": "FileStreamSource", "topic": "t", "file": "/in"}
REFERENCES = {"keelman.secrets.policy": "references"}


def test_literal_secrets_are_refused_where_the_worker_takes_references_only() -> None:
    config = {
        **SOURCE,
        "api.token": "literal-1",
        "db.password": "${file:/s:p}",
        "producer.override.sasl.jaas.config": 'x required password="${file:/s:p}";',
        "consumer.override.sasl.jaas.config": 'x required password="literal-2";',
        "old.password": "",
    }
    literals = _literals(config, REFERENCES)
    assert [literal.key for literal in literals] == ["api.token", "consumer.override.sasl.jaas.config"]
    assert not any("literal" in str(literal) for literal in literals)
    assert _literals(config, {}) == []
    assert _literals(config, {"keelman.secrets.policy": "allow"}) == []


def test_an_answer_has_references_where_the_configuration_has_them() -> None:
    REDACTOR.add({"answer-secret": "${file:/s:p}"})

    def value(name: str, text: str | None, *errors: str) -> dict[str, object]:
        shown = {"name": name, "value": text, "recommended_values": [], "errors": list(errors), "visible": True}
        return {"definition": None, "value": shown}

    about = [
        value("topic", "answer-secret"),
        value("batch.size", None, "Invalid value answer-secret for configuration batch.size: Not a number of type INT"),
        value("db.password", "[hidden]"),
        value("file", "/in"),
    ]
    answer = {"name": "x", "error_count": 1, "groups": [], "configs": about}
    fields = {**SOURCE, "topic": "${file:/s:p}", "batch.size": "${file:/s:p}", "db.password": "${file:/s:p}"}
    shown = hidden_answer(answer, fields, [ConfigError("api.token", None, "refused")])
    values = {config["value"]["name"]: config["value"] for config in shown["configs"]}
    assert values["topic"]["value"] == "${file:/s:p}"
    text = "Invalid value ${file:/s:p} for configuration batch.size: Not a number of type INT"
    assert (values["batch.size"]["value"], values["batch.size"]["errors"]) == (None, [text])
    assert values["db.password"]["value"] == "[hidden]"
    assert values["file"]["value"] == "/in"
    assert (values["api.token"]["value"], values["api.token"]["errors"]) == ("[hidden]", ["refused"])
    assert shown["error_count"] == 2
    assert answer["configs"][0]["value"]["value"] == "answer-secret"  # type: ignore[index]
