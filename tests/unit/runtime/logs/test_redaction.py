"""Secrets are removed from texts."""

import json
import logging
import re

import pytest

from keelman.runtime.http.errors import error_body
from keelman.runtime.logs import redaction
from keelman.runtime.logs.logging import configure, get_logger
from keelman.runtime.logs.redaction import Redactor


def test_secrets_are_hidden_in_every_form() -> None:
    redactor = Redactor()
    secret = 'pä"ss\\word/1'
    redactor.add({secret: "${file:/s:p}", "first line of it\nsecond line of it\n": "[hidden]"})
    for form in (secret, repr(secret), json.dumps(secret), "db://me:p%C3%A4%22ss%5Cword%2F1@h", "x first line of it y"):
        text = redactor.hide(f"before {form} after")
        assert "word" not in text
        assert "line" not in text
        assert re.fullmatch(r"before .*(hidden|file).* after", text)


def test_the_longer_of_two_goes_first_and_ordinary_words_stay() -> None:
    redactor = Redactor()
    redactor.add({"secret": "A", "true": "B", "abc": "C", "": "D"})
    redactor.add({"secret-and-more": "E"})
    assert redactor.hide("secret-and-more secret true abc") == "E A true abc"


def test_of_very_many_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "MOST", 2)
    redactor = Redactor()
    for secret in ("first", "second", "third"):
        redactor.add({secret: "x"})
    assert redactor.hide("first second third") == "first x x"


def test_what_is_in_use_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "MOST", 2)
    monkeypatch.setattr(redaction, "MAX_PASSING", 2)
    redactor = Redactor()
    for secret in ("used-again", "second", "used-again", "third"):
        redactor.add({secret: "${env:X}" if secret == "used-again" else "x"})
        redactor.add({"used-again": "[hidden]"})
    assert redactor.hide("used-again, second, third") == "${env:X}, second, x"
    for number in range(9):
        redactor.add({f"of-a-request-{number}": "y"}, passing=True)
        assert redactor.hide(f"of-a-request-{number}") == "y"
    assert redactor.hide("used-again, third, of-a-request-0") == "${env:X}, x, of-a-request-0"


def test_no_error_leaves_a_server_with_a_secret() -> None:
    redaction.REDACTOR.add({"error-secret-1": "${env:TOLD}"})
    body = {"error_code": 400, "message": "no ${env:TOLD} here"}
    assert json.loads(error_body(400, "no error-secret-1 here")) == body
    assert json.loads(error_body(500, None)) == {"error_code": 500, "message": None}


def test_no_log_record_leaves_with_a_secret(capsys: pytest.CaptureFixture[str]) -> None:
    redaction.REDACTOR.add({"log-secret-1": "${env:LOGGED}"})
    configure("test")
    log = get_logger()
    log.info("event", text="a log-secret-1 b", deep={"k": ["log-secret-1"]}, other=ValueError("log-secret-1"), number=7)
    try:
        raise ValueError("log-secret-1")
    except ValueError:
        log.exception("failed")
    logging.getLogger("library").warning("library says %s", "log-secret-1")
    err = capsys.readouterr().err
    assert "log-secret-1" not in err
    assert err.count("${env:LOGGED}") >= 5
    assert "number=7" in err
