"""`keelman down`: ends the home's `keelman up`; if that is gone already, stops the workloads that it left."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from keelman.cli.client.system import running_system
from keelman.cli.client.target import home_of
from keelman.cli.exits import OK
from keelman.cli.machine.leftovers import living, stop_workloads
from keelman.cli.machine.up import GRACE_SECONDS, lock, starting_up
from keelman.cli.options import HomeFolder, command_group
from keelman.cli.waiting import progress_line, until
from keelman.model.errors import DeadlineExceeded
from keelman.runtime.home import Home
from keelman.runtime.supervise import deadline

app = command_group()
LATEST_SECONDS = GRACE_SECONDS + 15


@app.command()
def down(home: HomeFolder = None) -> int:
    """Stop the system of this home, or the processes that a killed one left."""
    with progress_line() as line:
        text = asyncio.run(_stop(home_of(home), line.show))
    print(text)
    return OK


async def _stop(home: Home, show: Callable[[str], None]) -> str:
    """Stops everything of this home and returns a line about it, for people.

    Raises DeadlineExceeded when the system does not end, FailedPrecondition while another `keelman down` stops it.
    """
    system = running_system(home)
    up = system.up if system is not None else starting_up(home)
    if up is not None:
        show(f"stopping the system of {home.root} (process {up.pid})")
        os.kill(up.pid, signal.SIGTERM)
        late = DeadlineExceeded(
            f"process {up.pid} did not end within {LATEST_SECONDS:.0f} s: see {home.log('up')}, "
            "and run `keelman down` again to cut it"
        )
        async with deadline(LATEST_SECONDS, late):
            await until(lambda: not up.alive)
        return f"stopped the system of {home.root}"
    if not home.root.exists():
        return f"nothing runs: {home.root} does not exist"
    with lock(home, "down"):
        left = await asyncio.to_thread(living, home)
        names = await stop_workloads(home)
        home.system.unlink(missing_ok=True)
    if left or names:
        names_stopped = ", ".join(sorted({*names, *(r.name for r in left)}))
        return f"`keelman up` of {home.root} had ended already; stopped its remaining processes: {names_stopped}"
    return f"nothing runs in {home.root}"
