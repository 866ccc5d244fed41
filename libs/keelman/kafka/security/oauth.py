"""Gets tokens for SASL OAUTHBEARER as Java's own login handlers get them.

Unsecured tokens are made from the options of `sasl.jaas.config`; with `sasl.oauthbearer.token.endpoint.url` tokens come
from that server (grant type client_credentials, RFC 6749 section 4.4) or file. Such a URL must be on the process's
list: a configuration may come from any user, and must not make a worker call arbitrary addresses (Java's system
property `org.apache.kafka.sasl.oauthbearer.allowed.urls`).
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlsplit

from keelman.kafka.security.tokens import Token, Tokens
from keelman.model.errors import InvalidArgument, Unauthenticated, Unavailable
from keelman.model.keys import number_of, under
from keelman.runtime.tls.failures import not_trusted, tls_error
from keelman.runtime.tls.followed import FollowedContext

if TYPE_CHECKING:
    import httpx

URL_KEY = "sasl.oauthbearer.token.endpoint.url"
ALLOWED_KEY = "keelman.oauthbearer.allowed.urls"
JAVA_ALLOWED_KEY = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""The system property of Java's clients."""
_CREDENTIALS = "sasl.oauthbearer.client.credentials."
_UNSECURED = "unsecuredLogin"
_MAX_BYTES = 1 << 20
_allowed: set[str] = set()


def allow_urls(text: str) -> None:
    """Adds the URLs of a worker's `keelman.oauthbearer.allowed.urls` to this process's allowed token endpoints."""
    _allowed.update(listed(text))


def listed(text: str) -> set[str]:
    """Returns the URLs of such a list."""
    return {part.strip() for part in text.split(",") if part.strip()}


def checked_url(url: str, allowed: set[str] | None = None) -> str:
    """Returns the URL if it is an allowed token endpoint; else raises InvalidArgument. `allowed`: None for this
    process's list."""
    scheme = urlsplit(url).scheme.lower()
    if scheme not in ("http", "https", "file"):
        raise InvalidArgument(f'{URL_KEY}: {url!r} is not legal: only "http", "https" and "file" are supported')
    if url not in (_allowed if allowed is None else allowed):
        raise InvalidArgument(
            f"Invalid value {url} for configuration {URL_KEY}: The URL cannot be accessed due to restrictions. "
            f"Add it to {ALLOWED_KEY} in the worker's properties to allow the URL to be accessed.",
            metadata={"field": URL_KEY},
        )
    return url


def tokens(properties: Mapping[str, str], options: Mapping[str, str]) -> Tokens:
    """Returns the tokens for Java's client properties and their login module's options. Raises InvalidArgument."""
    factor = number_of(properties, "sasl.login.refresh.window.factor", 0.8)
    wait, most = (
        number_of(properties, f"sasl.login.retry.backoff.{name}", default) / 1000
        for name, default in (("ms", 100), ("max.ms", 10_000))
    )
    url = properties.get(URL_KEY, "").strip()
    get = _asking(checked_url(url), properties, options) if url else _unsecured(options)
    return Tokens(get, factor, (max(wait, 0.01), most))


def _unsecured(options: Mapping[str, str]) -> Callable[[], Token]:
    """Makes tokens like Java's OAuthBearerUnsecuredLoginCallbackHandler: for tests, never for production."""

    def of(kind: str) -> dict[str, str]:
        prefix = f"{_UNSECURED}{kind}_"
        return under(prefix, options)

    name = options.get(f"{_UNSECURED}PrincipalClaimName", "sub")
    claims: dict[str, Any] = {
        **{k: v[1:].split(v[0]) if v else [] for k, v in of("ListClaim").items()},
        **{k: number_of(options, f"{_UNSECURED}NumberClaim_{k}", 0) for k in of("NumberClaim")},
        **of("StringClaim"),
    }
    if not isinstance(claims.get(name), str):
        raise InvalidArgument(
            f"sasl.jaas.config: {_UNSECURED}StringClaim_{name} is missing, or set {URL_KEY} for tokens of a server"
        )
    life = number_of(options, f"{_UNSECURED}LifetimeSeconds", 3600)

    def make() -> Token:
        now = time.time()
        text = f"{_encoded({'alg': 'none'})}.{_encoded({'exp': now + life, 'iat': now, **claims})}."
        return Token(text, claims[name], now, now + life, of("Extension"))

    return make


def _asking(url: str, properties: Mapping[str, str], options: Mapping[str, str]) -> Callable[[], Token]:
    claim = properties.get("sasl.oauthbearer.sub.claim.name", "") or "sub"
    prefix = "extension_"
    extensions = under(prefix, options)
    if urlsplit(url).scheme == "file":
        return lambda: _from_jwt(_file(url), claim, extensions, None)
    user = properties.get(f"{_CREDENTIALS}client.id", "") or options.get("clientId", "")
    secret = properties.get(f"{_CREDENTIALS}client.secret", "") or options.get("clientSecret", "")
    for value, key in ((user, "client.id"), (secret, "client.secret")):
        if not value:
            raise InvalidArgument(f"{_CREDENTIALS}{key} is missing: set it to request tokens from {url}")
    if properties.get("sasl.oauthbearer.header.urlencode", "").strip().lower() == "true":
        user, secret = quote_plus(user), quote_plus(secret)
    import httpx  # noqa: PLC0415  (10 MB, only for clients that request tokens)

    form = {"grant_type": "client_credentials"}
    scope = properties.get("sasl.oauthbearer.scope", "") or options.get("scope", "")
    if scope:
        form["scope"] = scope
    headers = {"Authorization": "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode()}
    seconds = httpx.Timeout(
        number_of(properties, "sasl.login.read.timeout.ms", 10_000) / 1000,
        connect=number_of(properties, "sasl.login.connect.timeout.ms", 10_000) / 1000,
    )
    # As in Java, trust comes from the login module's own options, not from the brokers' trust store.
    context = FollowedContext(options) if url.lower().startswith("https:") else False

    def ask() -> Token:
        try:
            with httpx.Client(verify=context, timeout=seconds, trust_env=False) as client:
                answer = client.post(url, data=form, headers=headers)
        except httpx.HTTPError as error:
            raise _unanswered(url, error) from None
        if answer.status_code >= 500:
            raise Unavailable(f"{URL_KEY}: {url} answered {answer.status_code}", reason="NO_TOKEN")
        if answer.status_code != 200:
            raise Unauthenticated(
                f"{URL_KEY}: {url} gives no token: it answered {answer.status_code} {_reason(answer)}".rstrip(),
                reason="BROKER_REFUSED",
            )
        try:
            answer_json = json.loads(answer.content[:_MAX_BYTES])
            text, life = str(answer_json["access_token"]), answer_json.get("expires_in")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Unauthenticated(
                f"{URL_KEY}: {url} answered without an access_token", reason="BROKER_REFUSED"
            ) from None
        return _from_jwt(text, claim, extensions, life)

    return ask


def _unanswered(url: str, error: Exception) -> Unauthenticated | Unavailable:
    failure = tls_error(error)
    reason = "" if failure is None else not_trusted(failure, "its", " among the options of sasl.jaas.config")
    if reason:
        return Unauthenticated(f"{URL_KEY}: {url} gives no token: {reason}", reason="BROKER_REFUSED")
    text = str(error) or type(error).__name__
    return Unavailable(f"{URL_KEY}: {url} does not answer: {text}", reason="NO_TOKEN")


def _reason(answer: httpx.Response) -> str:
    """Returns the `error` of RFC 6749 section 5.2; no other part of an answer is repeated."""
    try:
        return str(answer.json()["error"])[:200]
    except (ValueError, KeyError, TypeError):
        return ""


def _file(url: str) -> str:
    path = Path(urlsplit(url).path)
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Unauthenticated(f"{URL_KEY}: {str(path)!r} cannot be read: {error}", reason="BROKER_REFUSED") from None


def _from_jwt(text: str, claim: str, extensions: Mapping[str, str], life: Any) -> Token:
    """Reads the principal and the expiry from the token itself; brokers check its signature."""
    try:
        body = text.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        now = time.time()
        ends = float(claims["exp"]) if "exp" in claims else now + float(life)
        return Token(text, str(claims[claim]), min(float(claims.get("iat", now)), now), ends, extensions)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        message = f"{URL_KEY}: what came is no JWT with the claims exp and {claim}"
        raise Unauthenticated(message, reason="BROKER_REFUSED") from None


def _encoded(claims: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims, separators=(",", ":")).encode()).rstrip(b"=").decode()
