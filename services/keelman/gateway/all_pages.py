"""Reads a list of the state service to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

PAGE = 1000
SECONDS = 10.0
"""Deadline of one page."""


async def all_pages(method: Any, request_type: Any, field: str, **given: Any) -> AsyncIterator[Any]:
    """All items of a list, its pages one after another. `field` is that of the answer which has them; `given` is in
    each request."""
    token = ""
    while True:
        answer = await method(request_type(page_size=PAGE, page_token=token, **given), timeout=SECONDS)
        for item in getattr(answer, field):
            yield item
        token = answer.next_page_token
        if not token:
            return
