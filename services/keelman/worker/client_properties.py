"""Client properties of a connector's own clients: the worker's, and over them what the connector overrides."""

from __future__ import annotations

from collections.abc import Mapping


def producer_client(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, str]:
    """Of the cluster that the connector's producers write to."""
    return {**worker, **_under(worker, "producer."), **_under(connector, "producer.override.")}


def fencing_client(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, str]:
    """Of an administrator in that cluster."""
    return {**producer_client(worker, connector), **_under(worker, "admin."), **_under(connector, "admin.override.")}


def sink_group_client(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, str]:
    """Of an administrator in the cluster that a sink's consumers read from."""
    consumer = {**worker, **_under(worker, "consumer."), **_under(connector, "consumer.override.")}
    return {**consumer, **_under(worker, "admin."), **_under(connector, "admin.override.")}


def writes_elsewhere(worker: Mapping[str, str], connector: Mapping[str, str]) -> bool:
    """Whether the connector's producers write to other brokers than the worker's own."""
    return producer_client(worker, connector).get("bootstrap.servers") != worker.get("bootstrap.servers")


def _under(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {k.removeprefix(prefix): v for k, v in properties.items() if k.startswith(prefix)}
