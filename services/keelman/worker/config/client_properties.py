"""Finds the client properties with which a worker calls the brokers of a connector."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.kafka.properties.connector_clients import admin_keys, merged


def fencing_client(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, str]:
    """Returns those of an administrator in the cluster that the connector's producers write to."""
    return {**merged(worker, connector, "producer"), **admin_keys(worker, connector)}


def reads_elsewhere(worker: Mapping[str, str], connector: Mapping[str, str]) -> bool:
    """Returns whether the connector's consumers read from other brokers than the worker's own."""
    return _is_elsewhere(worker, merged(worker, connector, "consumer"))


def writes_elsewhere(worker: Mapping[str, str], connector: Mapping[str, str]) -> bool:
    """Returns whether the connector's producers write to other brokers than the worker's own."""
    return _is_elsewhere(worker, merged(worker, connector, "producer"))


def _is_elsewhere(worker: Mapping[str, str], client: Mapping[str, str]) -> bool:
    return client.get("bootstrap.servers") != worker.get("bootstrap.servers")
