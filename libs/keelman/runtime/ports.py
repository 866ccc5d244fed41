"""Ports: whether one is free, and some that are."""

from __future__ import annotations

import errno
import socket

from keelman.model.errors import InvalidArgument, Unavailable


def port_is_free(host: str, port: int) -> bool:
    """True when a listener could bind now. A port in TIME_WAIT counts as free."""
    return _bind_error(host, port) is None


def check_port(label: str, host: str, port: int) -> None:
    """Raises when a listener could not bind now: Unavailable (PORT_TAKEN) or, for another reason, InvalidArgument.

    `label` is the service whose settings host and port are meant, for the message; `gateway.http` are its http_host
    and http_port.
    """
    error = _bind_error(host, port)
    if error is None:
        return
    if error.errno == errno.EADDRINUSE:
        raise port_taken(label, host, port)
    if error.errno == errno.EACCES:
        raise InvalidArgument.of(
            _setting(label, "port"), port, "a port that this user may open (usually 1024 or higher)"
        )
    raise InvalidArgument.of(_setting(label, "host"), host, f"an address of this host ({error.strerror or error})")


def port_taken(label: str, host: str, port: int) -> Unavailable:
    """The error for a port that something else listens on; it tells how another one is given."""
    setting = _setting(label, "port")
    flag = setting.partition(".")[2].replace("_", "-")
    return Unavailable(
        f"{setting}: {port} on {host} is taken by another process: stop it, or give another free port "
        f"with --{flag} or {variable(setting)}",
        reason="PORT_TAKEN",
        metadata={"host": host, "port": str(port)},
    )


def variable(setting: str) -> str:
    """The variable of the environment that `service.key` is read from."""
    return "KEELMAN_" + setting.replace(".", "_").upper()


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Some ports that are free now, all different; for tests and for `--port 0`."""
    probes = [socket.socket(_family(host)) for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((host, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def joined(host: str, port: int) -> str:
    """host:port, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _setting(label: str, key: str) -> str:
    service, _, part = label.partition(".")
    return f"{service}.{part}_{key}" if part else f"{service}.{key}"


def _bind_error(host: str, port: int) -> OSError | None:
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
    return None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
