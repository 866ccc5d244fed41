"""The last uses of callers: noted when they are admitted, and merged into the file beside the access file."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keelman.gateway.access import last_uses
from keelman.gateway.access.callers import Admission, Callers
from keelman.gateway.access.last_uses import LastUses, last_uses_file, read_last_uses
from keelman.gateway.settings import Settings
from keelman.model.access.roles import token_digest
from keelman.model.errors import Unauthenticated
from keelman.rpc.identity import Identity, IdentityKind
from support.eventually import eventually

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "access.toml"
    file.write_text(
        f"[[token]]\nname='ci'\nrole='viewer'\nsha256='{token_digest('ci')}'\n"
        f"[[token]]\nname='old'\nrole='viewer'\nsha256='{token_digest('old')}'\nexpires=2020-01-01T00:00:00Z\n"
        "[[user]]\nname='ci'\nrole='admin'\n"
    )
    return file


def test_admitted_callers_are_noted_and_refused_ones_are_not(file: Path) -> None:
    now = NOON
    callers = Callers(Settings(access_file=file), now=lambda: now)
    callers.caller(Admission.CHECKED, "Bearer ci")
    now += timedelta(seconds=5)
    callers.caller(Admission.CHECKED, "", Identity(IdentityKind.USER, "ci"))
    for token in ("old", "unknown"):
        with pytest.raises(Unauthenticated):
            callers.caller(Admission.CHECKED, f"Bearer {token}")
    callers.last_uses.write()
    assert read_last_uses(file) == {"token/ci": NOON, "user/ci": NOON + timedelta(seconds=5)}
    assert last_uses_file(file).stat().st_mode & 0o777 == 0o600


def test_the_newest_use_at_any_gateway_counts(file: Path) -> None:
    for hours, name in ((2, "ci"), (1, "ci"), (1, "eve")):
        uses = LastUses(file, lambda hours=hours: NOON + timedelta(hours=hours))
        uses.note("token", name)
        uses.write()
    assert read_last_uses(file) == {"token/ci": NOON + timedelta(hours=2), "token/eve": NOON + timedelta(hours=1)}


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 1}', '{"a": "yesterday"}'])
def test_an_illegal_file_is_written_anew(file: Path, content: str) -> None:
    last_uses_file(file).write_text(content)
    assert read_last_uses(file) == {}
    uses = LastUses(file, lambda: NOON)
    uses.note("token", "ci")
    uses.write()
    assert read_last_uses(file) == {"token/ci": NOON}


def test_uses_that_cannot_be_written_wait(file: Path) -> None:
    uses = LastUses(file, lambda: NOON)
    uses.note("token", "ci")
    last_uses_file(file).mkdir()
    uses.write()
    last_uses_file(file).rmdir()
    uses.write()
    assert read_last_uses(file) == {"token/ci": NOON}


async def test_the_file_is_written_now_and_then_and_at_the_end(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_uses, "WRITE_SECONDS", 0.01)
    uses = LastUses(file, lambda: NOON)
    async with uses.writing():
        uses.note("token", "ci")
        await eventually(lambda: "token/ci" in read_last_uses(file))
        uses.note("token", "eve")
        await asyncio.sleep(0)
    assert set(read_last_uses(file)) == {"token/ci", "token/eve"}
