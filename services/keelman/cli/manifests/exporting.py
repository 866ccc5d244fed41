"""Writes resources as the manifests that `keelman apply -f` takes back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.kinds import Kind
from keelman.cli.manifests.forms import Form
from keelman.cli.manifests.table import FORMS, form_of
from keelman.cli.selectors import Selector
from keelman.model.errors import NotFound

BY_NAME_ONLY = (kinds.DOCUMENTS,)
"""Kinds of other APIs: exported only if the kind is named."""


async def export_all(
    gateway: Gateway, kind: Kind | None, name: str, selector: Selector, *, cluster: str = ""
) -> list[dict[str, Any]]:
    """Returns the manifests of all resources with these labels, or of one kind or one name, in the order of creation.
    Leaves out resources that are created and deleted with another one. Raises NotFound for an unknown name."""
    forms = [form_of(kind)] if kind is not None else [form for form in FORMS if form.kind not in BY_NAME_ONLY]
    manifests: list[dict[str, Any]] = []
    taken: set[str] = set()
    for form in forms:
        for resource in await _resources(gateway, form, cluster):
            if name and form.key(resource) != name and getattr(resource, "name", "") != name:
                continue
            if not name and (form.owned(resource) or (kind is None and _of_others(form, resource, taken))):
                continue
            if not selector.takes(form.labels_of(resource)):
                continue
            taken |= set(_makes(form, resource))
            manifests.append(manifest_of(form, resource))
    if name and not manifests:
        raise NotFound(f"no {forms[0].kind.singular} {name!r}")
    return manifests


async def _resources(gateway: Gateway, form: Form, cluster: str) -> Any:
    listed = await gateway.list(form.kind, cluster=cluster)
    if form.kind is kinds.WORKER_CONFIGURATIONS:
        return [await gateway.get(form.kind, resource.name) for resource in listed]
    return listed


def manifest_of(form: Form, resource: Any) -> dict[str, Any]:
    """Returns a resource as a manifest, with hidden secrets."""
    labels, goal = form.labels_of(resource), form.goal_of(resource)
    manifest: dict[str, Any] = {"kind": form.kind.singular, "name": form.key(resource)}
    if labels:
        manifest["labels"] = dict(sorted(labels.items()))
    if goal:
        manifest["goal"] = goal
    return manifest | {"spec": form.shown(resource)}


def _makes(form: Form, resource: Any) -> Iterator[str]:
    """Yields the name of the connector that a resource creates, which then needs no manifest of its own."""
    if form.kind is kinds.DEFINITIONS:
        yield f"{resource.spec.worker_cluster}/{resource.spec.connector}"
    if form.kind is kinds.DEDICATED_CONNECTORS:
        yield f"{resource.name}/{resource.spec.connector}"


def _of_others(form: Form, resource: Any, taken: set[str]) -> bool:
    return form.kind is kinds.CONNECTORS and form.key(resource) in taken
