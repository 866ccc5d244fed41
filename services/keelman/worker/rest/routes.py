"""A path of the REST API, of which others can ask whether it has an answer to a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope


class PathRoute(Route):
    """Its handler is given every method, those that nobody has heard of too, and refuses what it does not answer."""

    def __init__(self, path: str, handler: Callable[[Request], Awaitable[Response]], answered: Iterable[str]) -> None:
        super().__init__(path, handler)
        self.methods = None
        self._answered = frozenset(answered) | {"OPTIONS"}

    def answers(self, scope: Scope) -> bool:
        """Whether path and method exist."""
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        return self.matches(scope)[0] is Match.FULL and method in self._answered


def exists(routed: Starlette, scope: Scope) -> bool:
    """Whether any of the application's routes answers this."""
    return any(route.answers(scope) for route in routed.routes if isinstance(route, PathRoute))
