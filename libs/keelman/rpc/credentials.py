"""A process's TLS credentials: its own certificate, and the CAs that it trusts, from files or from memory. A caller
that gets the newest each time follows a renewal without a restart."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from keelman.model.errors import InvalidArgument
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.tls.pairs import load_pair

log = get_logger()
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pems:
    """A certificate chain, its private key, and the certificates by which the other side is trusted, all PEM. Without
    `chain` no certificate is sent; a server without `roots` requests none from its clients."""

    chain: bytes = b""
    key: bytes = field(default=b"", repr=False)
    roots: bytes = b""


Newest: TypeAlias = Callable[[], Pems]
"""Returns the current credentials. Called at each handshake, also from grpc's threads; must not raise."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificate chain and private key of a server, PEM files; with `client_ca`, only clients with a certificate of
    these CAs may connect."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    @classmethod
    def of(
        cls,
        service: str,
        certificate: Path | None,
        key: Path | None,
        client_ca: Path | None = None,
        *,
        prefix: str = "",
    ) -> Tls | None:
        """Returns the Tls of a service's settings tls_certificate, tls_key and client_ca; None without the first two.
        The names of these settings begin with `prefix`. Raises InvalidArgument for one without the other, and for
        client_ca without both."""
        chain_setting, key_setting = f"{prefix}tls_certificate", f"{prefix}tls_key"
        if certificate is None and key is None:
            if client_ca is not None:
                raise InvalidArgument.of(
                    f"{service}.{prefix}client_ca", str(client_ca), f"empty without {chain_setting}"
                )
            return None
        if certificate is None or key is None:
            missing = chain_setting if certificate is None else key_setting
            raise InvalidArgument.of(
                f"{service}.{missing}", "", f"a PEM file: {chain_setting} and {key_setting} go together"
            )
        return cls(certificate, key, client_ca)

    def newest(self, service: str, *, prefix: str = "") -> Newest:
        """Returns a function that follows the files. The names of their settings begin with `prefix`. Raises
        InvalidArgument for files that cannot be used at the start."""
        roots = f"{prefix}client_ca"
        return PemFiles(service, self.certificate, self.key, self.client_ca, roots_setting=roots, prefix=prefix).newest


class FollowedFiles(Generic[T]):
    """Reads files, and reads them again when one of them has changed. If the new content cannot be used, that is logged
    and the old content stays in use: a renewal writes the files one after the other."""

    def __init__(self, files: Sequence[Path], read: Callable[[], T], **logged: str) -> None:
        """`read` raises InvalidArgument for unusable content; at the start this constructor passes the error on.
        `logged` names the setting or the service in log lines, which show only the first file."""
        self._files, self._read, self._logged = files, read, logged
        self._times = self._changed()
        self._found = read()

    def newest(self) -> T:
        """Returns the content of the files as they are now."""
        times = self._changed()
        if times != self._times:
            try:
                self._found = self._read()
                log.info("certificate_read", **self._logged, file=str(self._files[0]))
            except InvalidArgument as error:
                log.warning("certificate_not_read", **self._logged, error=error.message)
            self._times = times
        return self._found

    def _changed(self) -> tuple[int, ...]:
        return tuple(map(_changed, self._files))


class PemFiles:
    """Credentials in files, read again when one of them has changed."""

    def __init__(
        self,
        service: str,
        certificate: Path,
        key: Path,
        roots: Path | None = None,
        *,
        roots_setting: str = "state_ca",
        prefix: str = "",
    ) -> None:
        """The names of the settings are `prefix` with tls_certificate and tls_key, and `roots_setting`. Raises
        InvalidArgument naming the setting of `service` at fault."""
        self._service = service
        self._key_setting, self._chain_setting = f"{prefix}tls_key", f"{prefix}tls_certificate"
        self._files = {self._key_setting: key, self._chain_setting: certificate}
        if roots is not None:
            self._files[roots_setting] = roots
        self._roots_setting = roots_setting
        files = [certificate, key, *([] if roots is None else [roots])]
        self._followed = FollowedFiles(files, self._read, service=service)

    def newest(self) -> Pems:
        """Returns the credentials as the files have them now."""
        return self._followed.newest()

    def _read(self) -> Pems:
        read = {setting: _bytes(f"{self._service}.{setting}", file) for setting, file in self._files.items()}
        pems = Pems(read[self._chain_setting], read[self._key_setting], read.get(self._roots_setting, b""))
        certificate, key = self._files[self._chain_setting], self._files[self._key_setting]
        check_pair(f"{self._service}.{self._chain_setting}", str(certificate), pems, key_file=str(key))
        if self._roots_setting in self._files:
            check_roots(f"{self._service}.{self._roots_setting}", self._files[self._roots_setting], pems.roots)
        return pems


class RootsFile:
    """Certificates by which other sides are trusted, in a file that is read again when it has changed."""

    def __init__(self, setting: str, file: Path) -> None:
        """Raises InvalidArgument naming the setting."""
        self._setting, self._file = setting, file
        self._followed = FollowedFiles([file], self._read, setting=setting)

    def newest(self) -> bytes:
        """Returns the certificates as the file has them now."""
        return self._followed.newest()

    def _read(self) -> bytes:
        pem = _bytes(self._setting, self._file)
        check_roots(self._setting, self._file, pem)
        return pem


def check_pair(setting: str, shown: str, pems: Pems, *, key_file: str) -> None:
    """Raises InvalidArgument where chain and key cannot be used together; `shown` is the chain's file."""
    try:
        load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), pems.chain, pems.key)
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        legal = f"a PEM file with the certificate of the key in {key_file}, which is not encrypted ({reason})"
        raise InvalidArgument.of(setting, shown, legal) from None


def check_roots(setting: str, file: Path, roots: bytes) -> None:
    """Raises InvalidArgument where these PEM texts have no certificate, or an invalid one."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=roots.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        raise InvalidArgument.of(setting, str(file), f"a PEM file of certificates ({reason})") from None


def _changed(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _bytes(setting: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidArgument.of(setting, str(file), f"a readable PEM file ({error.strerror})") from None
