"""Runs a Kubernetes API server: Secrets of one namespace, for one service account.

`pretended` answers as kube-apiserver 1.34 does; `real` runs a kube-apiserver with etcd. Both pass the same tests
(tests/component/state/secrets/test_kubernetes_secrets.py).
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from keelman.runtime.processes.ports import free_ports
from support.certificates import Authority
from support.servers.http_server import HttpRequest, http_server
from support.waiting import until

NAMESPACE = "data"
TOKEN = "token-of-the-pod"
ACCOUNT = "system:serviceaccount:data:kn-secrets"
GROUPS = "system:serviceaccounts,system:authenticated"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(slots=True)
class ApiServer:
    """A running server, as a pod sees it."""

    port: int
    account: Path
    """The folder that a pod has its service account in."""
    token: str
    """An administrator's token."""
    trusted: ssl.SSLContext
    failing: list[int] = field(default_factory=list)
    """Statuses of the next answers; only the pretended server has them."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that a pod has."""
        return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.port)}

    def call(self, verb: str, path: str, body: Any = None, token: str = "") -> httpx.Response:
        """A request of the administrator, or with another token."""
        with httpx.Client(verify=self.trusted, trust_env=False) as client:
            headers = {"Authorization": f"Bearer {token or self.token}"}
            return client.request(verb, f"https://127.0.0.1:{self.port}{path}", json=body, headers=headers)

    def secret(self, name: str) -> dict[str, str]:
        """The decoded entries of a Secret."""
        data = self.call("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/{name}").json()["data"]
        return {key: base64.b64decode(value).decode() for key, value in data.items()}


@contextlib.contextmanager
def pretended(folder: Path, readable: tuple[str, ...]) -> Iterator[ApiServer]:
    """A server of ours. The pod's account may create Secrets, and read those named in `readable`."""
    authority, files = _identity(folder)
    secrets: dict[str, Any] = {}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    server = ApiServer(0, _account(folder, authority, TOKEN), "administrator", _trust(authority))

    def serve(request: HttpRequest) -> None:
        status, body = _answer(request, secrets, readable, server)
        request.answer(status, json.dumps(body).encode(), {"Content-Type": "application/json"})

    with http_server(serve, context) as server.port:
        yield server


def _answer(
    request: HttpRequest, secrets: dict[str, Any], readable: tuple[str, ...], server: ApiServer
) -> tuple[int, Any]:
    content = request.body()
    if server.failing:
        return server.failing.pop(0), {"kind": "Status", "message": "etcdserver: leader changed"}
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if token not in (TOKEN, server.token):
        return _status(401, "Unauthorized", "Unauthorized")
    name = request.path.removeprefix(f"/api/v1/namespaces/{NAMESPACE}/secrets").removeprefix("/")
    verb = {"GET": "get", "POST": "create"}[request.command]
    allowed = token == server.token or (verb == "create" if not name else name in readable and verb == "get")
    if not allowed:
        which = f'secrets "{name}"' if name else "secrets"
        return _status(403, "Forbidden", f'{which} is forbidden: User "{ACCOUNT}" cannot {verb} resource "secrets" '
                       f'in API group "" in the namespace "{NAMESPACE}"')  # fmt: skip
    if verb == "get":
        there = secrets.get(name)
        return (200, there) if there else _status(404, "NotFound", f'secrets "{name}" not found')
    return _created(json.loads(content), secrets)


def _created(body: Any, secrets: dict[str, Any]) -> tuple[int, Any]:
    wanted = body["metadata"]["name"]
    if not _NAME.fullmatch(wanted):
        return _status(422, "Invalid", f'Secret "{wanted}" is invalid: metadata.name: Invalid value: "{wanted}"')
    if wanted in secrets:
        return _status(409, "AlreadyExists", f'secrets "{wanted}" already exists')
    secrets[wanted] = {**body, "metadata": {**body["metadata"], "namespace": NAMESPACE, "resourceVersion": "1"}}
    return 201, secrets[wanted]


def _status(code: int, reason: str, message: str) -> tuple[int, Any]:
    """https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md"""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return code, {**status, "reason": reason, "code": code}


@contextlib.contextmanager
def real(folder: Path, server: Path, etcd: Path) -> Iterator[ApiServer]:
    """A kube-apiserver and an etcd, whose programs these files are. The pod's account may do nothing yet."""
    authority, (chain, key) = _identity(folder)
    public = folder / "server.pub"
    public.write_bytes(
        load_pem_private_key(key.read_bytes(), None)
        .public_key()
        .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    port, *ports = free_ports(3)
    tokens = folder / "tokens.csv"
    tokens.write_text(f'administrator,root,1,"system:masters"\n{TOKEN},{ACCOUNT},2,"{GROUPS}"\n')
    urls = [f"http://127.0.0.1:{number}" for number in ports]
    store = [f"--data-dir={folder / 'etcd'}", f"--listen-client-urls={urls[0]}", f"--advertise-client-urls={urls[0]}"]
    store += [f"--listen-peer-urls={urls[1]}", f"--initial-cluster=default={urls[1]}"]
    store += [f"--initial-advertise-peer-urls={urls[1]}"]
    words = [f"--etcd-servers={urls[0]}", f"--secure-port={port}", "--bind-address=127.0.0.1"]
    words += [f"--tls-cert-file={chain}", f"--tls-private-key-file={key}", f"--token-auth-file={tokens}"]
    words += ["--authorization-mode=RBAC", f"--service-account-signing-key-file={key}"]
    words += [f"--service-account-key-file={public}", "--service-account-issuer=https://kubernetes.default.svc"]
    words += ["--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount"]
    with _process([str(etcd), *store], folder / "etcd.log"), _process([str(server), *words], folder / "server.log"):
        made = ApiServer(port, _account(folder, authority, TOKEN), "administrator", _trust(authority))
        _until_ready(made)
        made.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}).raise_for_status()
        yield made


def _until_ready(server: ApiServer) -> None:
    def ready() -> bool:
        try:
            return server.call("GET", "/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    until(ready, "the API server is ready")


@contextlib.contextmanager
def _process(words: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as output, subprocess.Popen(words, stdout=output, stderr=output) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def _identity(folder: Path) -> tuple[Authority, tuple[Path, Path]]:
    folder.mkdir(parents=True, exist_ok=True)
    authority = Authority("kubernetes")
    issued = authority.issue("kube-apiserver", "127.0.0.1")
    chain, key = folder / "server.pem", folder / "server.key"
    chain.write_text(issued.chain_pem)
    key.write_text(issued.key_pem)
    return authority, (chain, key)


def _account(folder: Path, authority: Authority, token: str) -> Path:
    account = folder / "account"
    account.mkdir()
    (account / "ca.crt").write_text(authority.pem)
    (account / "token").write_text(token)
    (account / "namespace").write_text(NAMESPACE)
    return account


def _trust(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.pem)
