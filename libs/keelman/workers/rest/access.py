"""Access of a service to workers that speak https and require a password."""

from __future__ import annotations

import base64
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from keelman.model.errors import InvalidArgument, Unauthenticated
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.tls.failures import tls_error, words
from keelman.workers.rest.settings import WorkerAccessSettings

log = get_logger()


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of the settings as a service's users write them."""

    service: str = "gateway"

    def __getattr__(self, name: str) -> str:
        return f"{self.service}.worker_{name}"


@dataclass(frozen=True, slots=True)
class Login:
    """A user of worker clusters."""

    user: str
    authorization: bytes = field(repr=False)
    """The header value of this user's requests."""

    @classmethod
    def of(cls, user: str, password: str) -> Login:
        """Returns the login for a known password."""
        return cls(user, b"Basic " + base64.b64encode(f"{user}:{password}".encode()))


class Logins:
    """The users as which a service sends requests to worker clusters."""

    def __init__(self, default: Login | None = None, file: Path | None = None, *, setting: str = "") -> None:
        """`default` is for clusters that are not in the file; `setting` names the file's setting. Raises
        InvalidArgument for an illegal file."""
        self._default = default
        self._file = file
        self._setting = setting
        self._of_clusters = _logins(setting, file)

    def of(self, cluster: str) -> Login | None:
        """Returns the user for a worker cluster; None if the service has none there."""
        return self._of_clusters.get(cluster, self._default)

    def read_again(self) -> None:
        """Reads the file again. If it is illegal, that is logged and the old users stay in use."""
        try:
            self._of_clusters = _logins(self._setting, self._file)
        except InvalidArgument as error:
            log.warning("worker_users_not_read", error=error.message)


def _logins(setting: str, file: Path | None) -> dict[str, Login]:
    logins: dict[str, Login] = {}
    lines = [] if file is None else _text(setting, file).splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        cluster, _, login = line.partition("=")
        user, _, password = login.partition(":")
        if not (cluster.strip() and user and password):
            raise InvalidArgument.of(setting, f"{file}:{number}", "lines of CLUSTER=USER:PASSWORD")
        logins[cluster.strip()] = Login.of(user, password)
    return logins


@dataclass(frozen=True, slots=True)
class WorkerAccess:
    """The certificates that a service trusts, and the users of its own requests to workers. Requests that the gateway
    forwards for clients have the clients' users."""

    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    logins: Logins = field(default_factory=Logins)
    names: _Names = _Names()

    @classmethod
    def of(cls, service: str, settings: WorkerAccessSettings) -> WorkerAccess:
        """Creates the access from a service's settings. Raises InvalidArgument naming the setting at fault."""
        names = _Names(service)
        tls = _context(names, settings.worker_ca, verify=settings.worker_verify)
        _show(names, tls, settings.worker_certificate, settings.worker_key)
        logins = Logins(_default(names, settings), settings.worker_users_file, setting=names.users_file)
        return cls(tls, logins, names)

    def problem(self, error: Exception) -> str:
        """Returns why a connection failed, for people; with the setting to change if the worker is not trusted."""
        failure = tls_error(error)
        if isinstance(failure, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {failure.verify_message} (see {self.names.ca})"
        if failure is not None and failure.reason:
            return f"TLS failed: {words(failure.reason)}"
        return str(error) or type(error).__name__

    def refused(self, cluster: str) -> Unauthenticated:
        """Returns the error for workers that reject the service's user, or that require one if it has none."""
        login, names = self.logins.of(cluster), self.names
        reason = "requires a user and a password" if login is None else f"refuses user {login.user!r}"
        return Unauthenticated(
            f"worker cluster {cluster!r} {reason}: name one of its users with {names.user} and "
            f"{names.password_file}, or in {names.users_file}",
            reason="WORKER_USER",
            metadata={"worker_cluster": cluster},
        )


def _default(names: _Names, settings: WorkerAccessSettings) -> Login | None:
    user, file = settings.worker_user, settings.worker_password_file
    if not user and file is None:
        return None
    if not user or ":" in user:
        raise InvalidArgument.of(names.user, user, f"a name without a colon, as {names.password_file} is set")
    if file is None:
        raise InvalidArgument.of(names.password_file, "", f"a file with the password of {names.user}")
    password = _text(names.password_file, file).rstrip("\r\n")
    if not password:
        raise InvalidArgument.of(names.password_file, str(file), "a file that is not empty")
    return Login.of(user, password)


def _context(names: _Names, ca: Path | None, *, verify: bool) -> ssl.SSLContext:
    if not verify:
        if ca is not None:
            raise InvalidArgument.of(names.verify, "false", f"true, as {names.ca} is set")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    pem = None if ca is None else _text(names.ca, ca)
    try:
        context = ssl.create_default_context(cadata=pem)
    except ssl.SSLError:
        raise InvalidArgument.of(names.ca, str(ca), "a file of certificates in PEM") from None
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # all certificates in the file are trusted, a worker's too
    return context


def _show(names: _Names, context: ssl.SSLContext, certificate: Path | None, key: Path | None) -> None:
    """Has connections send a certificate to workers that request one. Raises InvalidArgument."""
    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        missing = names.certificate if certificate is None else names.key
        raise InvalidArgument.of(missing, "", f"a PEM file: {names.certificate} and {names.key} go together")
    _text(names.certificate, certificate)
    _text(names.key, key)
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError:
        legal = f"a PEM file with the certificate that {names.key} is the key of"
        raise InvalidArgument.of(names.certificate, str(certificate), legal) from None


def _text(setting: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise InvalidArgument.of(setting, str(file), f"a readable file ({reason})") from None
