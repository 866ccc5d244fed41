"""`keelman doctor`: finds problems of an installation, each with its remedy."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.system import running_system
from keelman.cli.client.target import GatewayTarget, home_of
from keelman.cli.doctor.clusters import broker_findings, definition_findings, topic_findings, worker_findings
from keelman.cli.doctor.finding import Finding
from keelman.cli.doctor.here import degraded_findings, gateway_findings, home_findings
from keelman.cli.doctor.nodes import node_findings
from keelman.cli.doctor.storage_topics import reported_findings, storage_findings
from keelman.cli.exits import FAILED, OK
from keelman.cli.options import TextForm, command_group
from keelman.cli.output.printing import TEXT_FORMATS, checked_format, on_one_line, print_document
from keelman.cli.output.words import quantity
from keelman.model.errors import FailedPrecondition, KeelmanError
from keelman.rpc.enums import state_word
from keelman.rpc.errors import NOT_SERVED
from keelman.runtime.version import version

app = command_group()


@app.command()
def doctor(*, output: TextForm = "text", target: GatewayTarget) -> int:
    """Look for problems: network, TLS, SASL, topics, disk, limits, versions, clocks. Each finding has its remedy; exit
    code 1 where there is one."""
    form = checked_format(output, TEXT_FORMATS)
    home, findings, looked_at = home_of(target.home), list[Finding](), dict[str, int]()
    policies: dict[str, str] = {}
    if running_system(home) is not None:
        findings += home_findings(home.root)

    async def body(client: Gateway) -> None:
        place = target.place
        findings.extend(await degraded_findings(place.http, place.context.certificates))
        findings.extend(await _look(client, looked_at, policies))

    try:
        target.run(body)
    except KeelmanError as error:
        place = target.place
        findings += asyncio.run(gateway_findings(place.address, place.source, error))
    if form != "text":
        listed = [asdict(finding) for finding in findings]
        print_document({"findings": listed, "looked_at": looked_at, "connector_policies": policies}, form)
    else:
        for finding in findings:
            print(on_one_line(f"{finding.check}: {finding.subject}: {finding.problem}"))
            print(on_one_line(f"    {finding.remedy}"))
        for name, policy in policies.items():
            print(on_one_line(f"connector policy of {name}: {policy}"))
        seen = ", ".join(quantity(number, noun) for noun, number in looked_at.items())
        print(quantity(len(findings), "finding") + (f"; looked at {seen}" if seen else ""))
    return FAILED if findings else OK


async def _look(client: Gateway, looked_at: dict[str, int], policies: dict[str, str]) -> list[Finding]:
    """Findings from the gateway's knowledge, and from brokers' answers to this host. Notes the numbers of resources by
    kind, and the policies for connectors by worker cluster."""
    listed: dict[str, Any] = {}
    kinds_asked = (kinds.NODES, kinds.BROKER_CLUSTERS, kinds.WORKER_CLUSTERS, kinds.TOPICS, kinds.DEFINITIONS)
    for kind in kinds_asked:
        listed[kind.plural] = await client.list(kind)
        looked_at[kind.singular] = len(listed[kind.plural])
    brokers, workers = listed[kinds.BROKER_CLUSTERS.plural], listed[kinds.WORKER_CLUSTERS.plural]
    policies |= {w.name: w.status.connector_policy for w in workers if w.status.connector_policy}
    findings = [
        *node_findings(listed[kinds.NODES.plural], version(), workers),
        *broker_findings(brokers, workers),
        *worker_findings(workers),
        *topic_findings(listed[kinds.TOPICS.plural]),
        *definition_findings(listed[kinds.DEFINITIONS.plural]),
    ]
    for cluster in brokers:
        on_it = [worker for worker in workers if worker.spec.broker_cluster == cluster.name]
        if state_word(cluster.status) != "RUNNING" or not on_it:
            continue
        try:
            properties = await client.client_properties(cluster.name)
        except FailedPrecondition as error:
            if error.reason != "HIDDEN":
                raise
            for worker in on_it:
                findings += await _reported(client, worker.name)
            continue
        findings += await storage_findings(properties, cluster.name, on_it)
    return findings


async def _reported(client: Gateway, cluster: str) -> list[Finding]:
    """Findings on a worker cluster's topics, by the state service; none where it is older, and is not able to look."""
    try:
        return list(reported_findings(cluster, await client.storage_topics(cluster)))
    except KeelmanError as error:
        if error.reason == NOT_SERVED:
            return []
        remedy = "the state service's host must reach the brokers, and its client properties need DESCRIBE_CONFIGS"
        return [Finding("topics", f"worker-cluster/{cluster}", f"not checked: {error.message}", remedy)]
