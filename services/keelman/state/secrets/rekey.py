"""Gives a database another key: directly if no state service uses it, else through those that do."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import sqlalchemy as sa
from sqlmodel import col

from keelman.model.errors import FailedPrecondition, InvalidArgument, Unavailable
from keelman.state.database.database import POSTGRESQL, driver_url, reach
from keelman.state.database.key_source import KEY_BYTES, KeySource, read_keys, replace_keys
from keelman.state.database.sealing import Sealer
from keelman.state.database.tables import SealingRow
from keelman.state.secrets.sealed_rows import rekey_file

FOLLOW_SECONDS = 60.0
IN_USE = ("DATABASE_IN_USE", "IN_USE")


async def rekey(url: str, source: KeySource) -> str:
    """Seals everything with a new key, which replaces the old one in its file; returns a report of that.

    Raises InvalidArgument if the key is from a command, as `rekey_file`, and Unavailable if a state service uses the
    database and does not follow in time: the old key stays in use then, or is used again.
    """
    if not isinstance(source, Path):
        legal = "empty: have the command print another key, and the state services follow within a minute"
        raise InvalidArgument.of("state.key_command", str(source), legal)
    try:
        rows = await rekey_file(url, source)
    except FailedPrecondition as error:
        if error.reason not in IN_USE:
            raise
        await _followed(url, source)
        return (
            f"everything is sealed with the new key in {source}: make a backup of that file; state services of other "
            "hosts have it in theirs"
        )
    return f"{rows} rows are sealed with the new key in {source}: make a backup of that file"


async def _followed(url: str, file: Path) -> None:
    """Puts a new key before the old one in the file, and waits until a state service has sealed everything with it."""
    try:
        keys = read_keys(file)
    except FileNotFoundError:
        raise InvalidArgument.of("state.key_file", str(file), "the key file of a state service that runs") from None
    new = os.urandom(KEY_BYTES)
    try:
        replace_keys(file, [new, *keys])
        try:
            async with asyncio.timeout(FOLLOW_SECONDS):
                while True:
                    if Sealer(new, file).proves(await asyncio.to_thread(_proof_in, url)):
                        break
                    await asyncio.sleep(0.2)
        except TimeoutError:
            # A state service that follows just now goes back to the old key by itself; until then a start needs either.
            replace_keys(file, [*keys, new])
            raise Unavailable(
                f"state.key_file: no state service has followed {str(file)!r} within {FOLLOW_SECONDS:g} s: "
                "is it theirs?",
                reason="NOT_FOLLOWED",
            ) from None
        replace_keys(file, [new])
    except OSError as error:
        legal = f"a file that can be written ({error.strerror})"
        raise InvalidArgument.of("state.key_file", str(file), legal) from None


def _proof_in(url: str) -> str:
    """Returns the proof of the key of a database that is in use."""
    if url.startswith(POSTGRESQL):
        engine = sa.create_engine(driver_url(url), connect_args=reach(url))
    else:
        engine = sa.create_engine(f"sqlite:///file:{Path(url).absolute()}?mode=ro&uri=true")
    try:
        with engine.connect() as connection:
            return str(connection.scalar(sa.select(col(SealingRow.proof))))
    except sa.exc.OperationalError as error:
        raise Unavailable(f"the database does not answer: {error.orig}", reason="DATABASE_UNAVAILABLE") from error
    finally:
        engine.dispose()
