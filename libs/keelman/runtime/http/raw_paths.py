"""Routes requests by the path as it was sent: an escaped slash in a name separates nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar
from urllib.parse import unquote_to_bytes

from starlette.types import Scope

Target = TypeVar("Target")


def raw_path(scope: Scope) -> str:
    """Returns the path of a request with its escapes, without the query."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.decode("latin-1").partition("?")[0]


def decoded(text: str) -> str:
    """Decodes the escapes in a part of a URL. Raises UnicodeDecodeError for bytes that are not UTF-8."""
    return unquote_to_bytes(text.encode("latin-1")).decode("utf-8")


def segments_of(path: str, decode: Callable[[str], str] = decoded) -> tuple[str, ...]:
    """Returns the segments of a raw path, each decoded by itself. Raises what `decode` raises."""
    return tuple(decode(segment) for segment in path.removeprefix("/").split("/"))


class PathPattern:
    """A path such as `connectors/{name}/config`, where `{name}` matches any one segment."""

    def __init__(self, text: str) -> None:
        self._words = tuple(text.removeprefix("/").split("/"))

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """Returns the segments that the pattern names; None for another path."""
        if len(segments) != len(self._words):
            return None
        variables = {}
        for word, segment in zip(self._words, segments, strict=True):
            if word.startswith("{"):
                variables[word[1:-1]] = segment
            elif word != segment:
                return None
        return variables


class RawRouter(Generic[Target]):
    """Finds the target of a request by its method and the segments of its path; the first matching route counts."""

    def __init__(self, routes: Iterable[tuple[str, str, Target]]) -> None:
        """`routes`: method, pattern of the path, and target of each."""
        self._routes = [(method, PathPattern(pattern), target) for method, pattern, target in routes]

    def find(self, method: str, segments: Sequence[str]) -> tuple[Target, dict[str, str]] | None:
        """Returns the target and the segments that its pattern names; None if there is no such route."""
        for own, pattern, target in self._routes:
            if own == method and (variables := pattern.match(segments)) is not None:
                return target, variables
        return None
