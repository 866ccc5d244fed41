"""How the gateway reaches workers that speak https and ask for a password."""

from __future__ import annotations

import base64
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from keelman.gateway.settings import Settings
from keelman.model.errors import InvalidArgument, Unauthenticated
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.tls.failures import tls_error, words

log = get_logger()
CA, VERIFY = "gateway.worker_ca", "gateway.worker_verify"
USER, PASSWORD_FILE = "gateway.worker_user", "gateway.worker_password_file"
USERS_FILE = "gateway.worker_users_file"


@dataclass(frozen=True, slots=True)
class Login:
    """A user of worker clusters."""

    user: str
    authorization: bytes = field(repr=False)
    """Header of requests as this user."""

    @classmethod
    def of(cls, user: str, password: str) -> Login:
        """With a password that is known."""
        return cls(user, b"Basic " + base64.b64encode(f"{user}:{password}".encode()))


class Logins:
    """Who the gateway is to each worker cluster."""

    def __init__(self, default: Login | None = None, file: Path | None = None) -> None:
        """`default` is for clusters that the file does not name. Raises InvalidArgument for an illegal file."""
        self._default = default
        self._file = file
        self._of_clusters = _logins(file)

    def of(self, cluster: str) -> Login | None:
        """None: it has no user there."""
        return self._of_clusters.get(cluster, self._default)

    def read_again(self) -> None:
        """Takes up what the file says now; one that is not legal is logged, and what it said before holds on."""
        try:
            self._of_clusters = _logins(self._file)
        except InvalidArgument as error:
            log.warning("worker_users_not_read", error=error.message)


def _logins(file: Path | None) -> dict[str, Login]:
    found: dict[str, Login] = {}
    lines = [] if file is None else _text(USERS_FILE, file).splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        cluster, _, login = line.partition("=")
        user, _, password = login.partition(":")
        if not (cluster.strip() and user and password):
            raise InvalidArgument.of(USERS_FILE, f"{file}:{number}", "lines of CLUSTER=USER:PASSWORD")
        found[cluster.strip()] = Login.of(user, password)
    return found


@dataclass(frozen=True, slots=True)
class WorkerAccess:
    """Whom the gateway trusts, and who it is to workers itself. What it passes on for others has their own names."""

    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    logins: Logins = field(default_factory=Logins)

    @classmethod
    def of(cls, settings: Settings) -> WorkerAccess:
        """Raises InvalidArgument naming the setting at fault."""
        tls = _context(settings.worker_ca, verify=settings.worker_verify)
        return cls(tls, Logins(_default(settings), settings.worker_users_file))

    def refused(self, cluster: str) -> Unauthenticated:
        """The error for workers that do not know the gateway's user, or to which it has none to name."""
        login = self.logins.of(cluster)
        why = "asks for a user and a password" if login is None else f"refuses user {login.user!r}"
        return Unauthenticated(
            f"worker cluster {cluster!r} {why}: name one of its users with {USER} and {PASSWORD_FILE}, "
            f"or in {USERS_FILE}",
            reason="WORKER_USER",
            metadata={"worker_cluster": cluster},
        )


def _default(settings: Settings) -> Login | None:
    user, file = settings.worker_user, settings.worker_password_file
    if not user and file is None:
        return None
    if not user or ":" in user:
        raise InvalidArgument.of(USER, user, f"a name without a colon, as {PASSWORD_FILE} is set")
    if file is None:
        raise InvalidArgument.of(PASSWORD_FILE, "", f"a file with the password of {USER}")
    password = _text(PASSWORD_FILE, file).rstrip("\r\n")
    if not password:
        raise InvalidArgument.of(PASSWORD_FILE, str(file), "a file that is not empty")
    return Login.of(user, password)


def said(error: Exception) -> str:
    """What a failed connection says, for people: how to trust a worker, where it was that."""
    found = tls_error(error)
    if isinstance(found, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {found.verify_message} (see {CA})"
    if found is not None and found.reason:
        return f"TLS failed: {words(found.reason)}"
    return str(error) or type(error).__name__


def _context(ca: Path | None, *, verify: bool) -> ssl.SSLContext:
    if not verify:
        if ca is not None:
            raise InvalidArgument.of(VERIFY, "false", f"true, as {CA} is set")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    pem = None if ca is None else _text(CA, ca)
    try:
        context = ssl.create_default_context(cadata=pem)
    except ssl.SSLError:
        raise InvalidArgument.of(CA, str(ca), "a file of certificates in PEM") from None
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # whatever is in the file is trusted, a worker's own too
    return context


def _text(setting: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InvalidArgument.of(setting, str(file), f"a readable file ({why})") from None
