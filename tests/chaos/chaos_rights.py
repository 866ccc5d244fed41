"""Faults of logged-in clients: short sessions, and rights that are taken away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from chaos.chaos_kafka import ANSWER_SECONDS, common
from chaos.chaos_paths import Run
from chaos.chaos_scene import Scene
from chaos.chaos_system import GROUP
from support.brokers.secure_broker import SESSION_SECONDS, USER

TAKEN_SECONDS = 4.0
SESSIONS = 3


@dataclass(frozen=True, slots=True)
class Right:
    """An operation that is denied for a while on the resource that `of` names for a path, if it has one."""

    kind: ResourceType
    operation: AclOperation
    of: Callable[[Run], str]


RIGHTS = (
    Right(ResourceType.TOPIC, AclOperation.WRITE, lambda run: run.out_topic),
    Right(ResourceType.TOPIC, AclOperation.READ, lambda run: run.feed_topic),
    Right(ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE, lambda run: run.transactional_id),
    Right(ResourceType.GROUP, AclOperation.READ, lambda run: run.group),
    Right(ResourceType.TOPIC, AclOperation.WRITE, lambda _: f"{GROUP}-offsets"),
)


async def taken(scene: Scene) -> None:
    """Takes one right after another from the system while records flow, and gives it back.

    Failed tasks are restarted by hand.
    """
    admin = AdminClient(common(scene.system.open_bootstrap))
    for number, right in enumerate(RIGHTS):
        if number:
            scene.feed.go_on()
        await scene.moment()
        names = sorted({name for run in scene.runs if (name := right.of(run))})
        if not names:  # no run of the scene reads a topic
            continue
        denied = [_denial(right, name) for name in names]
        scene.mark()
        for acl in admin.create_acls(denied).values():
            await asyncio.to_thread(acl.result, ANSWER_SECONDS)
        await asyncio.sleep(scene.chance.uniform(0.5, TAKEN_SECONDS))
        for cleared in admin.delete_acls([_filter_of(item) for item in denied]).values():
            await asyncio.to_thread(cleared.result, ANSWER_SECONDS)
        await scene.start_failed()
        await scene.recovered()


def _denial(right: Right, name: str) -> AclBinding:
    pattern, deny = ResourcePatternType.LITERAL, AclPermissionType.DENY
    return AclBinding(right.kind, name, pattern, f"User:{USER}", "*", right.operation, deny)


def _filter_of(acl: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        acl.restype,
        acl.name,
        acl.resource_pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


async def sessions(scene: Scene) -> None:
    """Clients must log in again every few seconds: several sessions end while records flow."""
    for _ in range(SESSIONS):
        await scene.moment()
        scene.mark()
        await asyncio.sleep(SESSION_SECONDS)
