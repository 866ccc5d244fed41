"""Watches a copy until OUTPUT is whole, and notices when it never will be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_FAILED
from keelman.cli import kinds
from keelman.cli.demo.copying import CALM_SECONDS, POLL_SECONDS, WORKER_CLUSTER, Copy
from keelman.cli.demo.progress import display, leg, newest_run, source_position
from keelman.cli.demo.text import Facts
from keelman.cli.gateway import Gateway
from keelman.model.errors import Conflict, FailedPrecondition, NotFound, Unavailable
from keelman.model.traces import why_line

STALLED_SECONDS = 180.0


async def watch_copy(gateway: Gateway, copy: Copy, facts: Facts, alive: Callable[[], bool]) -> None:
    """Shows both legs until OUTPUT has as many bytes as INPUT.

    Raises FailedPrecondition when a task failed for good or nothing moved for long, Unavailable when the system ended.
    """
    clock = asyncio.get_running_loop().time
    moved_at, best, bad_since = clock(), (-1, -1), None
    with display(facts.size) as shown:
        while True:
            problem = ""
            try:
                runs = await gateway.list(kinds.COPY_RUNS, cluster=WORKER_CLUSTER, ended=True)
                done, read = _written(copy.output), 0
                source, sink = newest_run(runs, copy.source), newest_run(runs, copy.sink)
                read = max(source_position(source) or 0, done)
                shown.show({"file -> topic": leg(read, source), "topic -> file": leg(done, sink)})
                if done >= facts.size:
                    return
                problem = await _failure(gateway, copy)
            except Unavailable as error:
                problem, done, read = error.message, *best
            now = clock()
            if (done, read) > best:
                moved_at, best = now, (done, read)
            bad_since = (bad_since or now) if problem else None
            if not alive():
                raise Unavailable("the system ended while the copy went on")
            if bad_since is not None and now - bad_since > CALM_SECONDS:
                raise FailedPrecondition(problem)
            if now - moved_at > STALLED_SECONDS:
                raise FailedPrecondition(f"nothing moved for {STALLED_SECONDS:.0f} s: see `keelman describe wc demo`")
            await asyncio.sleep(POLL_SECONDS)


def _written(output: Path) -> int:
    try:
        return output.stat().st_size
    except OSError:
        return 0


async def _failure(gateway: Gateway, copy: Copy) -> str:
    for name in (copy.source, copy.sink):
        try:
            found = await gateway.get(kinds.CONNECTORS, name, cluster=WORKER_CLUSTER)
        except (NotFound, Conflict):
            continue
        parts = [(found.state, found.trace), *((t.state, t.trace) for t in found.tasks)]
        for state, trace in parts:
            if state == CONNECTOR_STATE_FAILED:
                return f"connector {name} failed: {why_line(trace)}"
    return ""
