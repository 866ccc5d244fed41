"""Stores contexts: gateways by name, each with its trusted certificates and the user's credentials, in a file that only
its owner can read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from keelman.model.errors import InvalidArgument, NotFound
from keelman.rpc.credentials import Pems, check_pair
from keelman.runtime.home import write_file

FILE, NAME = "KEELMAN_CONTEXTS", "KEELMAN_CONTEXT"
"""Environment variables: the file of contexts, and the name of the context that commands use."""


@dataclass(frozen=True, slots=True)
class Context:
    """A gateway (host:port) and the URL of its HTTP API. `ca`, `certificate` and `key` are paths of PEM files; `mesh`:
    a sidecar secures the connections that leave this host."""

    gateway: str
    http: str = ""
    ca: str = ""
    token: str = field(default="", repr=False)
    certificate: str = ""
    key: str = ""
    mesh: bool = False

    @property
    def certificates(self) -> bytes | None:
        """The certificates that the gateway is trusted by; None for plain text. Raises InvalidArgument."""
        if not self.ca:
            return None
        try:
            return Path(self.ca).read_bytes()
        except OSError as error:
            raise InvalidArgument.of("ca", self.ca, f"a readable PEM file ({error.strerror})") from None

    @property
    def client(self) -> Pems | None:
        """The client certificate for the gateway; None without one. Raises InvalidArgument."""
        if not self.certificate:
            return None
        contents = []
        for name, file in (("certificate", self.certificate), ("key", self.key)):
            try:
                contents.append(Path(file).read_bytes())
            except OSError as error:
                raise InvalidArgument.of(name, file, f"a readable PEM file ({error.strerror})") from None
        pems = Pems(*contents)
        check_pair("certificate", self.certificate, pems, key_file=self.key)
        return pems

    def shown(self) -> dict[str, object]:
        """Returns the fields to show to people, with the token hidden."""
        fields = {name: value for name, value in asdict(self).items() if value}
        return fields | ({"token": "[hidden]"} if self.token else {})


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts of a user, and the name of the default context; "" for none."""

    file: Path
    current: str
    known: Mapping[str, Context]

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Contexts:
        """Reads the contexts of the user's file; none without a file. Raises InvalidArgument for a file that others may
        read, or that is no file of contexts."""
        file = file_of(environment)
        try:
            if file.stat().st_mode & 0o077:
                raise InvalidArgument.of(
                    FILE, str(file), f"a file of its owner's alone, since it has tokens: chmod 600 {file}"
                )
            document = json.loads(file.read_text(encoding="utf-8"))
            contexts = {name: Context(**fields) for name, fields in document["contexts"].items()}
            return cls(file, str(document["current"]), contexts)
        except FileNotFoundError:
            return cls(file, "", {})
        except OSError as error:
            raise InvalidArgument.of(FILE, str(file), f"a file that can be read ({error.strerror})") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidArgument.of(FILE, str(file), "a file that `keelman context create` has written") from None

    def named(self, name: str, source: str = "NAME") -> Context:
        """Returns one context. Raises NotFound with the names of all contexts."""
        if name not in self.known:
            there = ", ".join(sorted(self.known)) or "none"
            raise NotFound(f"{source}: no context {name!r}: the contexts are {there}")
        return self.known[name]

    def write(self, known_contexts: Mapping[str, Context], current: str) -> None:
        """Replaces the file's contexts by these."""
        contexts = {
            name: {k: v for k, v in asdict(context).items() if v} for name, context in sorted(known_contexts.items())
        }
        document = json.dumps({"current": current, "contexts": contexts}, indent=2) + "\n"
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_file(self.file, document.encode())
        except OSError as error:
            raise InvalidArgument.of(FILE, str(self.file), f"a file that can be written ({error.strerror})") from None


def file_of(environment: Mapping[str, str]) -> Path:
    """Returns KEELMAN_CONTEXTS, else keelman/contexts.json in the user's configuration folder."""
    if path := environment.get(FILE):
        return Path(path).expanduser().absolute()
    folder = environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder).expanduser().absolute() / "keelman" / "contexts.json"
