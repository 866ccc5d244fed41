"""Joins this host: its key, its certificate, and the settings with which its agent or gateway runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keelman.model.access.join_token import JoinRole, token_and_address
from keelman.model.errors import InvalidArgument
from keelman.model.workload import joined_address
from keelman.rpc.identity import Identity, IdentityKind
from keelman.rpc.joining import join, own_address
from keelman.rpc.membership import MemberFolder
from keelman.rpc.server import INSTALLATION
from keelman.runtime.home import Home, private_folder, write_file
from keelman.runtime.tls.certificates import certificate_facts, made_key, private_key_digest, shown_time

AGENT_PORT = 7420
HEAD = "# Written by `keelman node join`, which replaces these lines and leaves others as they are.\n"


SETTINGS = ("node", "name", "host", "advertised_address", "node_address", "state_address", "trust", "workload_trust")


@dataclass(frozen=True, slots=True)
class Joining:
    """A host's request to join; `address` is the host's address for others, empty for its address
    towards the gateway."""

    role: JoinRole
    name: str
    address: str
    workload_trust: str
    home: Home
    has_home: bool = False
    """Whether the home was given: then the printed command names it too."""


async def join_host(text: str, wanted: Joining) -> Sequence[str]:
    """Joins with TOKEN@host:port; returns lines for people.

    The private key is generated here, or reused if this host joined before. Raises InvalidArgument for a home that
    cannot be written, and as `keelman.rpc.joining.join`.
    """
    token, gateway = token_and_address(text)
    address = wanted.address.strip("[]") or own_address(gateway)
    if not address:
        raise InvalidArgument.of("--address", "", f"the address of this host: no route to {gateway} shows it")
    holder = Identity(IdentityKind(wanted.role.value), wanted.name)
    folder = MemberFolder(wanted.home.member(holder.kind))
    file = wanted.home.settings_file("agent" if wanted.role is JoinRole.NODE else "gateway")
    key = _key(folder)
    joined = await join(gateway, token, holder, (address,), key)
    settings = _agent(wanted, address, joined.state_address)
    if wanted.role is JoinRole.GATEWAY:
        settings = _gateway(wanted, address, joined.state_address)
    try:
        folder.write(joined.pems)
        write_file(file, settings_text(settings, file.read_text(encoding="utf-8") if file.exists() else "").encode())
    except OSError as error:
        raise InvalidArgument.of("--home", str(wanted.home.root), f"a folder that can be written ({error})") from None
    home = f" --home {wanted.home.root}" if wanted.has_home else ""
    ends = shown_time(certificate_facts(joined.pems.chain).end)
    lines = [
        f"{holder.path} joined: its certificate is good until {ends}, and renewed before",
        f"settings: {file}",
        f"start it with: keelman {file.stem} run{home}",
    ]
    if wanted.role is JoinRole.NODE and not wanted.workload_trust:
        lines.append(
            "its brokers and workers listen on loopback alone: with --workload-trust https those whose TLS asks who "
            "calls are reached from other hosts, with mesh all, in plain text too"
        )
    return lines


def settings_text(settings: Mapping[str, str], before: str) -> str:
    """Returns a TOML file with these settings, and with an operator's additions to the former file."""
    own = [HEAD, *(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())]
    known = re.compile(rf"({'|'.join(SETTINGS)})\s*=")
    rest = [line for line in before.splitlines(keepends=True) if line != HEAD and not known.match(line)]
    return "".join([*own, *rest])


def _key(folder: MemberFolder) -> bytes:
    """Returns the host's private key, or a new one, stored before its certificate is
    requested. Raises InvalidArgument."""
    try:
        private_folder(folder.root)
        try:
            key = folder.key.read_bytes()
            private_key_digest(key)
        except (FileNotFoundError, ValueError):
            key = made_key()
            write_file(folder.key, key)
        return key
    except OSError as error:
        raise InvalidArgument.of("--home", str(folder.root), f"a folder that can be written ({error})") from None


def _agent(wanted: Joining, address: str, state: str) -> dict[str, str]:
    made = {
        "node": wanted.name,
        "host": address,
        "advertised_address": joined_address(address, AGENT_PORT),
        "node_address": address if wanted.workload_trust else "127.0.0.1",
        "state_address": state,
        "trust": INSTALLATION,
    }
    return made | ({"workload_trust": wanted.workload_trust} if wanted.workload_trust else {})


def _gateway(wanted: Joining, address: str, state: str) -> dict[str, str]:
    return {"name": wanted.name, "host": address, "state_address": state, "trust": INSTALLATION}
