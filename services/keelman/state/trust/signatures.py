"""Remembers signatures of requests, so that each is accepted once, at whichever gateway it arrives."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlmodel import col

from keelman.model.errors import InvalidArgument, PermissionDenied
from keelman.state.database.database import Database
from keelman.state.database.times import micros
from keelman.state.trust.rows import SignatureRow

KEPT = timedelta(minutes=15)
"""A signature is valid for 5 minutes before and after its time, by the clock of the gateway that it arrives at."""
TOGETHER = timedelta(seconds=2)
"""The longest time between the arrivals of tries of one second, which have one signature, by the clocks of state
services."""
MAX_CHARACTERS = 1024
"""Of the text that distinguishes tries."""
_SIGNATURE = re.compile(r"[0-9a-f]{64}")
_INSERT = sa.insert(SignatureRow)
_FIRST = sa.select(sa.func.min(SignatureRow.time)).where(col(SignatureRow.signature) == sa.bindparam("of"))
_FORGET = sa.delete(SignatureRow).where(col(SignatureRow.time) < sa.bindparam("until"))


@dataclass(frozen=True, slots=True)
class UsedSignatures:
    """The signatures of the last 15 minutes, in the database."""

    database: Database

    async def use(self, signature: str, attempt: str) -> None:
        """Stores a signature as used.

        Two tries or calls of a client in one second may have one signature: they differ in `attempt`, which it leaves
        unsigned, and arrive together. Raises PermissionDenied for all others that were used before, InvalidArgument.
        """
        if not _SIGNATURE.fullmatch(signature):
            raise InvalidArgument.of("signature", signature, "64 hexadecimal digits")
        if len(attempt) > MAX_CHARACTERS:
            raise InvalidArgument.of("attempt", f"{attempt[:40]}...", f"at most {MAX_CHARACTERS} characters")
        now = self.database.clock()
        row = {"signature": signature, "attempt": hashlib.sha256(attempt.encode()).hexdigest(), "time": micros(now)}
        try:
            async with self.database.aside() as connection:
                await connection.execute(_FORGET, {"until": micros(now - KEPT)})
                first = (await connection.execute(_FIRST, {"of": signature})).scalar_one()
                # Also a time in the future: the state service that took the first may have another clock.
                if first is not None and not micros(now - TOGETHER) <= first <= micros(now + TOGETHER):
                    raise _used()
                await connection.execute(_INSERT, row)
        except IntegrityError:
            raise _used() from None


def _used() -> PermissionDenied:
    return PermissionDenied("Signature already used: a request is taken once; sign each again", reason="SIGNATURE_USED")
