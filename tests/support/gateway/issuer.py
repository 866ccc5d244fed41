"""An issuer of OpenID Connect tokens: keys, signed tokens, and an HTTP server on loopback with its documents."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from keelman.runtime.http.server import serve_http
from keelman.runtime.processes.ports import free_ports

AUDIENCE = "keelman"
_JWK: Any = {"RS256": RSAAlgorithm, "ES256": ECAlgorithm, "EdDSA": OKPAlgorithm}


def new_key(algorithm: str) -> Any:
    """A private key for an algorithm."""
    match algorithm:
        case "RS256":
            return rsa.generate_private_key(65537, 2048)
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
    return ed25519.Ed25519PrivateKey.generate()


@dataclass
class Issuer:
    """An issuer with keys by their id. `requests` counts those for its key set."""

    url: str = "http://127.0.0.1:1"
    keys: dict[str, tuple[str, Any]] = field(default_factory=dict)
    requests: int = 0

    def add_key(self, key_id: str, algorithm: str = "ES256") -> None:
        """Publishes another key."""
        self.keys[key_id] = algorithm, new_key(algorithm)

    def jwks(self) -> dict[str, Any]:
        """The published key set."""
        rows = []
        for key_id, (algorithm, key) in self.keys.items():
            row = json.loads(_JWK[algorithm].to_jwk(key.public_key()))
            rows.append(row | {"kid": key_id, "alg": algorithm, "use": "sig"})
        return {"keys": rows}

    def token(self, key_id: str, /, *, seconds: float = 600, now: float | None = None, **claims: Any) -> str:
        """A token of this issuer for the gateway, signed with a key; a claim of None is left out."""
        algorithm, key = self.keys[key_id]
        begin = time.time() if now is None else now
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "ada", "iat": int(begin), "exp": int(begin + seconds)}
        content = {name: value for name, value in (usual | claims).items() if value is not None}
        return jwt.encode(content, key, algorithm, headers={"kid": key_id})

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        """Serves the discovery document and the key set."""
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"

        async def discovery(_: Request) -> JSONResponse:
            return JSONResponse({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})

        async def keys(_: Request) -> JSONResponse:
            self.requests += 1
            return JSONResponse(self.jwks())

        app = Starlette(routes=[Route("/.well-known/openid-configuration", discovery), Route("/keys", keys)])
        async with serve_http(app, host="127.0.0.1", port=port, label="issuer", grace_seconds=0.1):
            yield
