"""Checks the volumes that brokers and zookeepers name."""

from __future__ import annotations

from collections.abc import Sequence

from keelman.gateway.ohara.clusters.known_clusters import STATE
from keelman.gateway.ohara.clusters.processes import RUNNING
from keelman.gateway.ohara.definitions.volume import PATH
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.state.stored import Stored
from keelman.gateway.ohara.wire.keys import ObjectKey
from keelman.gateway.ohara.wire.wording import must_run, not_stored

VOLUME = "volume"


async def check_volumes(control: OharaControl, keys: Sequence[ObjectKey], *, running: bool) -> list[str]:
    """Returns the paths of volumes. Raises OharaError for volumes that do not exist, or with `running`
    are not started."""
    if not keys:
        return []
    there = {volume.key: volume for volume in await Stored(control, VOLUME).list()}
    if missing := [key for key in keys if key not in there]:
        raise not_stored(VOLUME, missing)
    if running and (stopped := [key for key in keys if there[key].content.get(STATE) != RUNNING]):
        raise must_run(VOLUME, stopped)
    return [str(there[key].content[PATH]) for key in keys]
