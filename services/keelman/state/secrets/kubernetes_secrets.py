"""Creates the secrets of an installation in a Kubernetes cluster: the key that seals secrets, and the database's
password. `keelman state kubernetes-secrets`, a Job of the chart, runs it in a pod. Existing Secrets are not changed.

Templates cannot do this: rendered again without access to the cluster (`helm template`, Argo CD) they would have other
values, and replace the key that opens the database.

The API: https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/secret-v1/; a pod's access to
it: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/.
"""

from __future__ import annotations

import base64
import os
import secrets
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from keelman.model.errors import FailedPrecondition, InvalidArgument, KeelmanError, Unavailable
from keelman.runtime.backoff import Backoff
from keelman.state.database.key_source import KEY_BYTES

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_SECONDS = 10.0
TOGETHER_SECONDS = 300.0
PASSWORD_BYTES = 24


@dataclass(frozen=True, slots=True)
class SecretApi:
    """The Secrets of one namespace, as the pod's service account may use them."""

    url: str
    """`https://host:port/api/v1/namespaces/NAMESPACE/secrets`."""
    account: Path
    """The folder with the account's `token` and the cluster's `ca.crt`."""

    @classmethod
    def of_pod(cls, environment: Mapping[str, str]) -> SecretApi:
        """Returns the API that a pod reaches. Raises FailedPrecondition outside of a pod."""
        account = ACCOUNT
        host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "443")
        try:
            namespace = (account / "namespace").read_text().strip()
        except OSError as error:
            raise _outside(f"{account / 'namespace'}: {error.strerror}") from None
        if not host:
            raise _outside("KUBERNETES_SERVICE_HOST is not set")
        named = f"[{host}]" if ":" in host else host
        return cls(f"https://{named}:{port}/api/v1/namespaces/{namespace}/secrets", account)

    def create(self, name: str, labels: Mapping[str, str], entries: Mapping[str, str]) -> bool:
        """Creates a Secret unless its name is taken; returns whether it was created.

        `entries` are texts by their keys; an existing Secret must have all these keys. Raises FailedPrecondition if it
        lacks some, Unavailable without an answer, and KeelmanError for refusals.
        """
        existing = self._call("GET", f"/{name}")
        if existing is None:
            manifest = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "labels": dict(labels)},
                "type": "Opaque",
                "data": {key: base64.b64encode(text.encode()).decode() for key, text in entries.items()},
            }
            if self._call("POST", "", manifest) is not None:
                return True
            existing = self._call("GET", f"/{name}") or {}  # another Job was quicker
        missing = sorted(entries.keys() - (existing.get("data") or {}).keys())
        if missing:
            raise FailedPrecondition(
                f"the Secret {name} exists without {', '.join(missing)}: add that, or delete the Secret if nothing "
                "uses it",
                reason="SECRET_INCOMPLETE",
            )
        return False

    def _call(self, verb: str, path: str, body: Any = None) -> dict[str, Any] | None:
        """Returns the answer; None for a Secret that does not exist, or whose name is taken. Repeats the request while
        the server does not answer or is not ready."""
        backoff, end = Backoff(first=0.5, most=10.0), time.monotonic() + TOGETHER_SECONDS
        while True:
            try:
                answer = self._request(verb, path, body)
                problem = f"{answer.status_code} {_message(answer)}"
                if answer.status_code in (404, 409):
                    return None
                if answer.is_success:
                    return dict(answer.json())
                if answer.status_code != 429 and answer.status_code < 500:
                    raise KeelmanError(f"{verb} {self.url}{path}: {problem}")
            except (httpx.HTTPError, ssl.SSLError) as error:
                problem = str(error) or type(error).__name__
            if time.monotonic() > end:
                raise Unavailable(f"{verb} {self.url}{path}: {problem}")
            time.sleep(backoff.next())

    def _request(self, verb: str, path: str, body: Any) -> httpx.Response:
        trusted = ssl.create_default_context(cafile=str(self.account / "ca.crt"))
        headers = {"Authorization": f"Bearer {(self.account / 'token').read_text().strip()}"}  # Kubernetes replaces it
        with httpx.Client(verify=trusted, timeout=REQUEST_SECONDS, trust_env=False) as client:
            return client.request(verb, self.url + path, headers=headers, json=body)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The names of the Secrets of an installation, empty for none."""

    release: str
    key: str = ""
    database: str = ""
    database_host: str = ""

    def __post_init__(self) -> None:
        if self.database and not self.database_host:
            raise InvalidArgument.of("--database-host", "", "the host of the database, for its URL")

    def secrets(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Yields names and entries, with new random values."""
        if self.key:
            yield self.key, {"key": base64.b64encode(os.urandom(KEY_BYTES)).decode() + "\n"}
        if self.database:
            password = secrets.token_urlsafe(PASSWORD_BYTES)
            url = f"postgresql://keelman:{password}@{self.database_host}/keelman"
            yield self.database, {"password": password, "url": url}


def create_secrets(api: SecretApi, wanted: Wanted) -> Sequence[str]:
    """Creates those that are missing; returns a line about each. Raises what `SecretApi.create` raises."""
    # Without the label `app.kubernetes.io/instance`: Argo CD finds objects by it, and deletes those without a manifest.
    labels = {"app.kubernetes.io/name": "keelman", "app.kubernetes.io/part-of": wanted.release}
    return [
        f"secret/{name} {'created' if api.create(name, labels, entries) else 'exists: not changed'}"
        for name, entries in wanted.secrets()
    ]


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json().get("message", answer.reason_phrase))
    except (ValueError, AttributeError):
        return answer.reason_phrase


def _outside(problem: str) -> FailedPrecondition:
    return FailedPrecondition(f"this is no pod with a service account: {problem}", reason="NO_SERVICE_ACCOUNT")
