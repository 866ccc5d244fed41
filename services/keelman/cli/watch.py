"""`keelman watch`: the copy runs that copy now, as their table changes; on a pipe one JSON document a change."""

from __future__ import annotations

import json
import sys
from typing import Any

from keelman.api.copy.v1 import copy_run_service_pb2 as cr
from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_ENDED, COPY_RUN_STATE_FAILED
from keelman.cli.client.gateway import Gateway
from keelman.cli.kinds import COPY_RUNS
from keelman.cli.output.printing import plain, table
from keelman.rpc.errors import translated_stream

OVER = (COPY_RUN_STATE_ENDED, COPY_RUN_STATE_FAILED)


async def print_watch(gateway: Gateway, *, cluster: str, connector: str, form: str) -> None:
    """Goes on until it is interrupted. `form` is table, wide or json. Raises NotFound for an unknown worker cluster,
    Unavailable when the gateway goes."""
    request = cr.WatchCopyRunsRequest(worker_cluster=cluster, connector=connector)
    answers = translated_stream(gateway.copy_runs.WatchCopyRuns(request))
    if form == "json":
        async for answer in answers:
            for run in answer.copy_runs:
                print(json.dumps(plain(run), ensure_ascii=False), flush=True)
        return
    await _show(answers, wide=form == "wide")


async def _show(answers: Any, *, wide: bool) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    runs: dict[str, Any] = {}
    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        async for answer in answers:
            for run in answer.copy_runs:
                if run.state in OVER:
                    runs.pop(run.uid, None)
                else:
                    runs[run.uid] = run
            shown = sorted(runs.values(), key=lambda r: (r.worker_cluster, r.connector, r.task, r.uid))
            live.update(table(COPY_RUNS, shown, wide=wide) if shown else "no copy runs now", refresh=True)
    sys.stdout.flush()
