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


async def join_host(text: str, joining: Joining) -> Sequence[str]:
    """Joins with TOKEN@host:port; returns lines for people.

    The private key is generated here, or reused if this host joined before. Raises InvalidArgument for a home that
    cannot be written, and as `keelman.rpc.joining.join`.
    """
    token, gateway = token_and_address(text)
    address = joining.address.strip("[]") or own_address(gateway)
    if not address:
        raise InvalidArgument.of("--address", "", f"the address of this host: no route to {gateway} shows it")
    holder = Identity(IdentityKind(joining.role.value), joining.name)
    folder = MemberFolder(joining.home.member(holder.kind))
    file = joining.home.settings_file("agent" if joining.role is JoinRole.NODE else "gateway")
    key = _key(folder)
    joined = await join(gateway, token, holder, (address,), key)
    settings = _agent(joining, address, joined.state_address)
    if joining.role is JoinRole.GATEWAY:
        settings = _gateway(joining, address, joined.state_address)
    try:
        folder.write(joined.pems)
        write_file(file, settings_text(settings, file.read_text(encoding="utf-8") if file.exists() else "").encode())
    except OSError as error:
        raise InvalidArgument.of("--home", str(joining.home.root), f"a folder that can be written ({error})") from None
    home = f" --home {joining.home.root}" if joining.has_home else ""
    ends = shown_time(certificate_facts(joined.pems.chain).end)
    lines = [
        f"{holder.path} joined: its certificate is good until {ends}, and renewed before",
        f"settings: {file}",
        f"start it with: keelman {file.stem} run{home}",
    ]
    if joining.role is JoinRole.NODE and not joining.workload_trust:
        lines.append(
            "its brokers and workers listen on loopback alone: with --workload-trust https those whose TLS "
            "authenticates callers are reached from other hosts, with mesh all of them, in plain text too"
        )
    return lines


def settings_text(settings: Mapping[str, str], before: str) -> str:
    """Returns a TOML file with these settings, and with an operator's additions to the former file."""
    own = [HEAD, *(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())]
    own_line = re.compile(rf"({'|'.join(SETTINGS)})\s*=")
    rest = [line for line in before.splitlines(keepends=True) if line != HEAD and not own_line.match(line)]
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


def _agent(joining: Joining, address: str, state: str) -> dict[str, str]:
    settings = {
        "node": joining.name,
        "host": address,
        "advertised_address": joined_address(address, AGENT_PORT),
        "node_address": address if joining.workload_trust else "127.0.0.1",
        "state_address": state,
        "trust": INSTALLATION,
    }
    return settings | ({"workload_trust": joining.workload_trust} if joining.workload_trust else {})


def _gateway(joining: Joining, address: str, state: str) -> dict[str, str]:
    return {"name": joining.name, "host": address, "state_address": state, "trust": INSTALLATION}
