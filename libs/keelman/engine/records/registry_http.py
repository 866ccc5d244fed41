"""Queries a schema registry over HTTP: its URLs in turn, with credentials, TLS and bounded waits.

The API is Confluent's, https://docs.confluent.io/platform/current/schema-registry/develop/api.html; the properties are
those of its client. It uses httpx and not Confluent's Python client, because that reads no JKS and no PKCS12
stores, and needs a second HTTP library and three more packages beside it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import queue
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from keelman.kafka.security import jaas
from keelman.model.errors import FailedPrecondition, InvalidArgument, Unauthenticated, Unavailable
from keelman.model.keys import number_of, under
from keelman.runtime.tls.followed import FollowedContext

if TYPE_CHECKING:
    import httpx

PREFIX = "schema.registry."
URL = "schema.registry.url"
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
MAX_SECONDS = 8.0
"""The longest total wait of one request: a loop that is silent for longer gets its slot recycled."""
MAX_ANSWER_BYTES = 16 << 20
_OWN = (
    "basic.auth.",
    "bearer.auth.",
    "http.",
    "max.retries",
    "proxy.",
    "request.header.",
    "retries.",
    "sasl.jaas.config",
    "ssl.",
)
_BUSY = frozenset({408, 429, 500, 502, 503, 504})


class RegistryNo(Exception):
    """The registry answered with an error: `status` is HTTP's, `code` the registry's own (40401 and so on)."""

    def __init__(self, message: str, status: int, code: int) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class _Answer(NamedTuple):
    status: int
    content: bytes


def client_properties(config: Mapping[str, str]) -> dict[str, str]:
    """Returns the client's properties in a converter's configuration; those behind `schema.registry.` win."""
    values = {key: value for key, value in config.items() if key.startswith(_OWN)}
    values |= {key: value for key, value in under(PREFIX, config).items() if key.startswith(_OWN)}
    return {**values, URL: config.get(URL, "")}


class RegistryHttp:
    """One registry, by its URLs; for any thread. Opens connections with the first request."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """`properties` are those of `client_properties`. Raises InvalidArgument that names the illegal property."""
        self._properties = dict(properties)
        self._urls, self._headers = _places(self._properties)
        self.urls = tuple(url for url, _ in self._urls)
        """The URLs without user and password."""
        self._connect = number_of(properties, "http.connect.timeout.ms", 5_000) / 1000
        self._read = number_of(properties, "http.read.timeout.ms", 10_000) / 1000
        self._retries = int(number_of(properties, "max.retries", 1))
        self._wait = number_of(properties, "retries.wait.ms", 200) / 1000
        self._most_wait = number_of(properties, "retries.max.wait.ms", 2_000) / 1000
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._good = 0

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Sends a request. Returns the answer's JSON.

        Raises RegistryNo for the registry's own errors, Unauthenticated when it refuses our credentials, Unavailable
        when none of the URLs answers in time or all are busy, FailedPrecondition when the server is no registry,
        InvalidArgument for stores that cannot be read.
        """
        end, wait, problem = time.monotonic() + MAX_SECONDS, self._wait, ""
        for attempt in range(self._retries + 1):
            if attempt:
                pause = min(wait, self._most_wait)
                if time.monotonic() + pause >= end:
                    break
                time.sleep(pause)
                wait *= 2
            for turn in range(len(self._urls)):
                place = (self._good + turn) % len(self._urls)
                # A URL that is silent leaves time for those after it.
                share = (end - time.monotonic()) / (len(self._urls) - turn)
                try:
                    answer = self._asked(place, method, path, body, seconds=share)
                except Unavailable as error:
                    problem = error.message
                    continue
                self._good = place
                return answer
        raise Unavailable(problem or f"{', '.join(self.urls)} gave no answer", reason="NO_REGISTRY")

    def _asked(self, place: int, method: str, path: str, body: Any, *, seconds: float) -> Any:
        url, credentials = self._urls[place]
        if seconds <= 0:
            raise Unavailable(f"{url} gave no answer within {MAX_SECONDS:.0f} s", reason="NO_REGISTRY")
        simple_queue: queue.SimpleQueue[_Answer | Exception] = queue.SimpleQueue()
        content = None if body is None else json.dumps(body).encode()
        headers = {**credentials, "Content-Type": CONTENT_TYPE} if content is not None else credentials

        def exchange() -> None:
            try:
                simple_queue.put(self._exchanged(method, url + path, content, headers, seconds))
            except Exception as error:
                simple_queue.put(error)

        # httpx bounds each read, not all of them together: one byte now and then would hold its caller for ever.
        threading.Thread(target=exchange, name="schema-registry", daemon=True).start()
        try:
            answer = simple_queue.get(timeout=seconds)
        except queue.Empty:
            self.close()  # ends a read that is still under way with an error
            raise Unavailable(f"{url} gave no answer within {seconds:.1f} s", reason="NO_REGISTRY") from None
        if isinstance(answer, Exception):
            import httpx  # noqa: PLC0415  (10 MB, needed only with a registry)

            if not isinstance(answer, httpx.HTTPError):
                raise answer
            said = str(answer) or type(answer).__name__
            raise Unavailable(f"{url} does not answer: {said}", reason="NO_REGISTRY") from None
        return _read_answer(url, path, answer)

    def _exchanged(
        self, method: str, url: str, content: bytes | None, headers: dict[str, str], seconds: float
    ) -> _Answer:
        import httpx  # noqa: PLC0415  (the same)

        end, held = time.monotonic() + seconds, bytearray()
        most = httpx.Timeout(min(self._read, seconds), connect=min(self._connect, seconds))
        with self._connected().stream(method, url, content=content, headers=headers, timeout=most) as answer:
            for chunk in answer.iter_bytes():
                held += chunk
                if time.monotonic() > end or len(held) > MAX_ANSWER_BYTES:
                    raise httpx.ReadTimeout(f"its answer is longer than {len(held)} bytes or takes too long")
            return _Answer(answer.status_code, bytes(held))

    def _connected(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                import httpx  # noqa: PLC0415  (the same)

                self._client = httpx.Client(
                    headers={"Accept": f"{CONTENT_TYPE}, application/json", **self._headers},
                    verify=self._context(),
                    proxy=_proxy(self._properties),
                    trust_env=False,
                    follow_redirects=False,
                )
            return self._client

    def _context(self) -> Any:
        if not any(url.lower().startswith("https:") for url in self.urls):
            return False
        return FollowedContext(self._properties)

    def close(self) -> None:
        """Closes its connections; the next request opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()


def _read_answer(url: str, path: str, answer: _Answer) -> Any:
    if answer.status in (401, 403):
        said = _error_of(answer)[0]
        raise Unauthenticated(f"{url} refuses the credentials: it answered {answer.status} {said}".rstrip())
    if answer.status in _BUSY:
        raise Unavailable(f"{url} answered {answer.status} {_error_of(answer)[0]}".rstrip(), reason="NO_REGISTRY")
    if 200 <= answer.status < 300:
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(answer.content)
    if answer.status < 400:
        raise FailedPrecondition(f"{url}{path} answered {answer.status}, but not as a schema registry does")
    message, code = _error_of(answer)
    if code is None:  # from something before the registry: it is just being set up, or the URL lacks a path
        what = f"{url}{path} answered {answer.status} without a schema registry's code: {message}"
        raise Unavailable(what.rstrip(": "), reason="NO_REGISTRY")
    raise RegistryNo(message or f"{url}{path} answered {answer.status}", answer.status, code)


def _error_of(answer: _Answer) -> tuple[str, int | None]:
    """Returns the registry's own message and code; None as code if the answer is not a registry's."""
    try:
        body = json.loads(answer.content)
        message = str(body.get("message") or body.get("title") or body.get("detail") or "")
        code = body.get("error_code")
        return " ".join(message.split())[:2000], None if code is None else int(code)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return "", None


def _places(properties: Mapping[str, str]) -> tuple[list[tuple[str, dict[str, str]]], dict[str, str]]:
    """Returns each URL without its user, with its own headers; and the headers for all URLs."""
    urls = [part.strip().rstrip("/") for part in properties.get(URL, "").split(",") if part.strip()]
    if not urls:
        raise InvalidArgument(f"{URL} is missing: http://host:port of the schema registry")
    headers = under("request.header.", properties)
    source = (properties.get("basic.auth.credentials.source", "") or "URL").strip().upper()
    token = properties.get("bearer.auth.token", "").strip()
    shared = ""
    if token and properties.get("bearer.auth.credentials.source", "STATIC_TOKEN").strip():
        headers["Authorization"] = f"Bearer {token}"
    elif source == "USER_INFO":
        shared = properties.get("basic.auth.user.info", "").strip()
        if ":" not in shared:
            raise InvalidArgument("basic.auth.user.info is missing: user:password, since its source is USER_INFO")
    elif source == "SASL_INHERIT":
        module = jaas.parse(properties.get("sasl.jaas.config", ""))
        if not {"username", "password"} <= module.options.keys():
            raise InvalidArgument("sasl.jaas.config: username and password are missing: SASL_INHERIT needs them")
        shared = f"{module.options['username']}:{module.options['password']}"
    for name, value in headers.items():
        if not (name.isascii() and name.isprintable() and value.isascii() and value.isprintable()):
            raise InvalidArgument(f"The header {name} for the schema registry may hold printable ASCII characters only")
    places = []
    for url in urls:
        plain, own = _without_user(url)
        user = shared or (own if "Authorization" not in headers else "")
        basic = base64.b64encode(user.encode()).decode()
        places.append((plain, {"Authorization": f"Basic {basic}"} if user else {}))
    return places, headers


def _without_user(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        legal = parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        legal = False
    if not legal:
        start, mark, rest = url.partition("://")  # the text before the host must not be shown
        shown = f"{start}://{rest.rpartition('@')[2]}" if mark else url.rpartition("@")[2]
        raise InvalidArgument.of(URL, shown, "URLs, http://host:port")
    user, at, host = parts.netloc.rpartition("@")
    return (parts._replace(netloc=host).geturl(), unquote(user)) if at else (url, "")


def _proxy(properties: Mapping[str, str]) -> str | None:
    host = properties.get("proxy.host", "").strip()
    port = int(number_of(properties, "proxy.port", -1))
    return f"http://{host}:{port}" if host and port > 0 else None
