"""Explains failures of TLS to the people who can fix them."""

from __future__ import annotations

import re
import ssl

_NAME_CODES = (62, 64)  # OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and _IP_ADDRESS_MISMATCH
_TIME_CODES = (9, 10)  # OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and _CERT_HAS_EXPIRED
_ALERT = re.compile(r"^(ssl|tls)v\d+ alert ")


def tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """Returns the TLS library's own error behind a connection that was closed."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error


def not_trusted(error: ssl.SSLError, whose: str, where: str = "") -> str:
    """Returns why we do not trust `whose` certificate, e.g. "the broker's"; empty if that is not the error.

    `where` is appended to the names of properties that help.
    """
    if not isinstance(error, ssl.SSLCertVerificationError):
        return ""
    if error.verify_code in _NAME_CODES:
        reason = f"{whose} certificate is for another host: {error.verify_message}"
        return f"{reason} (an empty ssl.endpoint.identification.algorithm{where} accepts it)"
    if error.verify_code in _TIME_CODES:
        return f"{whose} certificate, or that of an authority behind it, is not valid today: {error.verify_message}"
    return f"{whose} certificate is not trusted: {error.verify_message} (see ssl.truststore.location{where})"


def words(reason: str) -> str:
    """Returns OpenSSL's reason in readable form."""
    return _ALERT.sub("", reason.replace("_", " ").lower())
