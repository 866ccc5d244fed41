"""Writes the secrets that the node's workers may read into a file beside each of them, whenever they change."""

from __future__ import annotations

import json
from collections.abc import Mapping

from keelman.api.node.v1.session_service_pb2 import NodeSecrets
from keelman.connect.config.providers import is_named
from keelman.runtime.home import Home, write_file
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.redaction import HIDDEN, REDACTOR

log = get_logger()
SECRETS = "secrets.json"
NONE = "{}"


class SecretFiles:
    """Writes the workers' files of secrets from the last message of the state service. After a restart of the agent
    they stay unchanged until its next message."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._known: dict[str, str] | None = None

    def take(self, message: NodeSecrets) -> None:
        """Takes a complete set; secrets that a worker may no longer read leave its file."""
        values = {secret.name: dict(secret.values) for secret in message.secrets}
        REDACTOR.add({value: HIDDEN for some in values.values() for value in some.values() if value})
        texts = {
            worker.workload: json.dumps(
                {n: some for n, some in values.items() if is_named(n, worker.names)}, sort_keys=True
            )
            for worker in message.workers
        }
        self._known = texts
        for file in sorted(self._home.workloads.glob(f"*/{SECRETS}")):
            names = {self._home.workload(name): text for name, text in texts.items()}
            text = names.get(file.parent, NONE)
            try:
                if file.read_text(encoding="utf-8") != text:
                    folder = file.parent.stat()
                    write_file(file, text.encode(), owner=(folder.st_uid, folder.st_gid))
                    log.info("secrets_written", folder=file.parent.name)
            except OSError as error:
                log.error("secrets_not_written", file=str(file), error=str(error))

    def files_of(self, workload: str) -> Mapping[str, str]:
        """Returns the file of a worker that is about to start, by name; nothing where the file of an earlier agent is
        valid."""
        if self._known is not None:
            return {SECRETS: self._known.get(workload, NONE)}
        return {} if (self._home.workload(workload) / SECRETS).exists() else {SECRETS: NONE}
