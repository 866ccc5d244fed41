"""Turns any error into a text that can be stored and sent."""

from __future__ import annotations

MAX_CHARACTERS = 10_000


def error_text(error: BaseException) -> str:
    """Returns `str(error)`, of at most `MAX_CHARACTERS` and some; a text with its class if that raises or is not
    text."""
    try:
        return plain(str(error))
    except Exception:
        return f"a {type(error).__name__} without a message"


def plain(text: str) -> str:
    """Returns the text without halves of surrogate pairs, which are no characters, and without its end if it is very
    long."""
    whole = text[:MAX_CHARACTERS].encode("utf-8", "replace").decode()
    return whole if len(text) <= MAX_CHARACTERS else f"{whole}... ({len(text)} characters)"
