"""What a Spark master's executors cannot run."""

from __future__ import annotations

from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.connectors.registry import find_connector
from keelman.model.errors import NotFound
from keelman.workers.spark_master import Master


def unfit(master: Master, ticket: StartTicket, cluster: str = "") -> str:
    """Returns why this master's executors cannot run a ticket's connector; empty when they can. `cluster` is the name
    of a Spark cluster to whose drivers workers of other hosts link.

    The needs of an unknown connector are not known: its task fails and reports that.
    """
    elsewhere = "run it in a worker cluster whose nodes have the Spark master local[256,1]"
    if cluster:
        where = f"Spark cluster {cluster} runs its tasks on other hosts"
        elsewhere = "run it in a worker cluster without a spark_cluster"
    elif not master.remote or master.near:
        return ""
    else:
        where = f"executors of {master.shown} are other hosts"
    if ticket.HasField("plugin"):
        return (
            f"connector {ticket.connector}: plugin {ticket.plugin.name} is unpacked on its worker's node only, and "
            f"{where}: {elsewhere}"
        )
    name = ticket.connector_config.get("connector.class", "")
    try:
        needs_node = find_connector(name).runs_on == "node"
    except NotFound:
        return ""
    if not needs_node:
        return ""
    needs = "needs the files or devices of its worker's node"
    return f"connector {ticket.connector}: {name} {needs}, and {where}: {elsewhere}"
