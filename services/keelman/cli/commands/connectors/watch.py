"""`keelman watch`: the copy runs that copy now, as their table changes; on a pipe one JSON document a change."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Annotated, Any

import typer

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_ENDED, COPY_RUN_STATE_FAILED
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import GatewayTarget
from keelman.cli.exits import OK
from keelman.cli.kinds import CONNECTORS, COPY_RUNS, kind_of
from keelman.cli.options import Cluster, command_group, kind_word
from keelman.cli.output.printing import WATCH_FORMATS, checked_format, plain, table

app = command_group()
OVER = (COPY_RUN_STATE_ENDED, COPY_RUN_STATE_FAILED)


@app.command()
def watch(
    kind: Annotated[str, kind_word("watch")] = "copy-runs",
    *,
    connector: Annotated[str, typer.Option("--connector", metavar="NAME", help="Only this connector's.")] = "",
    cluster: Cluster = "",
    output: Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="table, wide or json.")] = "table",
    target: GatewayTarget,
) -> int:
    """Show the current copy runs, and each change, until Ctrl-C; on a pipe one JSON document a change."""
    kind_of(kind, "watch")
    form = checked_format(output, WATCH_FORMATS)

    async def body(client: Gateway) -> None:
        owner, plain_name = cluster, connector
        if connector:
            connector_now = await client.get(CONNECTORS, connector, cluster=cluster)
            owner, plain_name = connector_now.worker_cluster, connector_now.name
        answers = client.watch_copy_runs(cluster=owner, connector=plain_name)
        if form == "json" or not sys.stdout.isatty():
            async for answer in answers:
                for run in answer.copy_runs:
                    print(json.dumps(plain(run), ensure_ascii=False), flush=True)
        else:
            await _show_table(answers, wide=form == "wide")

    with contextlib.suppress(KeyboardInterrupt):
        target.run(body)
    return OK


async def _show_table(answers: Any, *, wide: bool) -> None:
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
            rows = table(COPY_RUNS, shown, wide=wide, room=console.width) if shown else "no copy runs now"
            live.update(rows, refresh=True)
    sys.stdout.flush()
