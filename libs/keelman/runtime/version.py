"""Finds the version of this installation."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed


@cache
def version() -> str:
    """Returns the version of the installed package; "source" if it runs from a checkout that is not installed."""
    try:
        return installed("keelman")
    except PackageNotFoundError:
        return "source"
