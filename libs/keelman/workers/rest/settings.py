"""Settings of each service that sends requests to workers: how it reaches them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from keelman.runtime.settings import ProcessSettings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerAccessSettings(ProcessSettings):
    """Settings of a service that sends requests to workers: the trusted certificates, and its credentials."""

    worker_ca: Path | None = setting(
        None, "Certificates by which https workers are trusted, a PEM file; empty: those that the system trusts."
    )
    worker_certificate: Path | None = setting(
        None, "Certificate chain for workers that require one (ssl.client.auth), a PEM file."
    )
    worker_key: Path | None = setting(None, "Private key of worker_certificate, a PEM file.")
    worker_verify: bool = setting(True, "Check certificates and names of https workers; false trusts anybody.")
    worker_user: str = setting("", "User for workers that require one, where worker_users_file names none.")
    worker_password_file: Path | None = setting(None, "File with the password of worker_user.")
    worker_users_file: Path | None = setting(
        None, "File of lines CLUSTER=USER:PASSWORD: the user for the workers of a cluster; read again when it changes."
    )


_OF_ALL = {field.name for field in fields(ProcessSettings)}
WORKER_ACCESS = tuple(field.name for field in fields(WorkerAccessSettings) if field.name not in _OF_ALL)
"""The names of these settings."""
