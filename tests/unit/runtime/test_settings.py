"""Settings: the order of sources, refused values, and the error messages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from keelman.model.errors import InvalidArgument
from keelman.runtime.settings import load, setting


@dataclass(frozen=True, slots=True)
class Demo:
    home: Path = setting(help="Folder of everything.")
    port: int = setting(80, "A port.", minimum=1, maximum=65535)
    wait_seconds: float = setting(1.5, "A time.", unit="s")
    name: str = setting("x", "A name.")
    mode: str = setting("a", "A choice.", choices=("a", "b"))
    json: bool = setting(False, "A switch.")
    password: str = setting("", "A secret.", secret=True)
    logins: dict[str, str] = setting({}, "Secrets by name.", secret=True)
    certificate: Path | None = setting(None, "A file.")
    names: tuple[str, ...] = setting((), "A list.")
    properties: dict[str, str] = setting({}, "A map.")


def loaded(text: str = "", tmp: Path | None = None, **flags: Any) -> Demo:
    file = None
    if tmp is not None:
        file = tmp / "s.toml"
        file.write_text(text)
    return load(Demo, "demo", flags={"home": "/h"} | flags, file=file).settings


def test_flags_win_over_environment_over_file_over_default(tmp_path: Path) -> None:
    file = tmp_path / "demo.toml"
    file.write_text('home = "/f"\nport = 1\nname = "file"\n')
    loaded = load(Demo, "demo", flags={"port": "3", "name": None}, environment={"KEELMAN_DEMO_PORT": "2"}, file=file)
    assert loaded.settings == Demo(home=Path("/f"), port=3, name="file")
    sources = {o.key: o.source for o in loaded.origins}
    assert sources["port"] == "flag"
    assert sources["name"] == f"file {file}"
    assert sources["mode"] == "default"
    environment = load(Demo, "demo", environment={"KEELMAN_DEMO_HOME": "/e", "KEELMAN_OTHER_PORT": "9", "PORT": "9"})
    assert environment.settings.home == Path("/e")
    assert environment.settings.port == 80


def test_own_section_wins_and_other_sections_are_passed_over(tmp_path: Path) -> None:
    text = 'name = "top"\nport = 1\n[demo]\nport = 2\n[demo.properties]\n"a.b" = 1\n[gateway]\nanything = 1\n'
    settings = loaded(text, tmp_path)
    assert (settings.name, settings.port, settings.properties) == ("top", 2, {"a.b": "1"})


def test_a_key_above_the_sections_must_be_known_too(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"unknown setting 'prt' in .*; did you mean 'port'"):
        loaded("prt = 1\n[demo]\nport = 2\n", tmp_path)


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ({"flags": {"wait_second": "1"}}, "on the command line; did you mean 'wait_seconds'?"),
        ({"environment": {"KEELMAN_DEMO_WAIT_SECOND": "1"}}, "in the environment (KEELMAN_DEMO_WAIT_SECOND); did"),
        ({"flags": {"zzz": "1"}}, "on the command line. Expected keys: certificate, home,"),
    ],
)
def test_an_unknown_key_names_the_nearest(source: dict[str, Any], where: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        load(Demo, "demo", **source)
    assert where in caught.value.message


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("port", "99", 99),
        ("wait_seconds", "2", 2.0),
        ("json", "TRUE", True),
        ("json", False, False),
        ("certificate", "~/c.pem", Path("~/c.pem").expanduser()),
        ("certificate", "", None),
        ("names", "a, b,,c", ("a", "b", "c")),
        ("names", ["a", "b"], ("a", "b")),
        ("properties", "a=1, b = x=y", {"a": "1", "b": "x=y"}),
        ("name", 5, "5"),
    ],
)
def test_values_are_converted(key: str, value: Any, expected: Any) -> None:
    assert getattr(loaded(**{key: value}), key) == expected


@pytest.mark.parametrize(
    ("key", "value", "legal"),
    [
        ("port", "0", "1 to 65535"),
        ("port", "eighty", "a whole number"),
        ("port", 1.5, "a whole number"),
        ("port", True, "a whole number"),
        ("port", float("inf"), "a whole number"),
        ("wait_seconds", "nan", "a number"),
        ("mode", "c", "one of a, b"),
        ("json", "yes", "true or false"),
        ("home", "", "a path"),
        ("name", ["a"], "a text"),
        ("names", {"a": 1}, "a list"),
        ("properties", "a", "key=value,key=value"),
    ],
)
def test_an_illegal_value_names_field_value_and_what_is_legal(key: str, value: Any, legal: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        load(Demo, "demo", flags={"home": "/h"} | {key: value})
    assert caught.value.message.startswith(f"demo.{key}: {value!r} is not legal: ")
    assert legal in caught.value.message
    assert caught.value.violations[0].field == f"demo.{key}"


def test_a_missing_setting_says_how_to_give_it() -> None:
    with pytest.raises(
        InvalidArgument, match=r"demo.home is not set: Folder of everything. Give --home, KEELMAN_DEMO_"
    ):
        load(Demo, "demo")


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="No such file"):
        load(Demo, "demo", file=tmp_path / "none.toml")
    with pytest.raises(InvalidArgument, match="is not TOML"):
        loaded("port 5", tmp_path)


def test_a_secret_is_hidden() -> None:
    loaded = load(Demo, "demo", flags={"home": "/h", "password": "hunter2"})
    assert {o.key: o.shown for o in loaded.origins}["password"] == "[hidden]"
    assert loaded.settings.password == "hunter2"
    with pytest.raises(InvalidArgument, match=r"demo\.password: '\[hidden\]' is not legal: a text"):
        load(Demo, "demo", flags={"home": "/h", "password": ["hunter2"]})
    assert load(Demo, "demo", flags={"home": "/h", "logins": {"a": "b"}}).settings.logins == {"a": "b"}


def test_a_default_that_can_change_is_not_shared() -> None:
    first = loaded()
    first.properties["a"] = "1"
    assert loaded().properties == {}
