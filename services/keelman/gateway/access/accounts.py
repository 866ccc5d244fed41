"""Decides which secrets and buckets an account of the managed Connect API may name. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from keelman.connect.config.providers import is_named

ALL = ("*",)
BUCKET = re.compile(r"[a-z0-9.-]{0,63}\*?")


@dataclass(frozen=True, slots=True)
class Account:
    """Names of secrets and buckets, with * for any rest."""

    secrets: tuple[str, ...] = ALL
    buckets: tuple[str, ...] = ALL

    @staticmethod
    def own(number: str) -> Account:
        """Returns the default of one of several accounts: only secrets whose names begin with its number."""
        return Account((f"{number}/*",), ())

    @property
    def has_all_secrets(self) -> bool:
        """Whether the account's connectors may read every secret."""
        return "*" in self.secrets

    def has_bucket(self, name: str) -> bool:
        """Tells whether the account may name this bucket."""
        return is_named(name, self.buckets)


WHOLE = Account()
"""The permissions of the only account of an installation."""
