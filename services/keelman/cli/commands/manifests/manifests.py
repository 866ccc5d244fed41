"""`keelman apply -f` and `keelman export`: resources from manifests, and manifests of resources."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import GatewayTarget
from keelman.cli.commands.manifests.options import ManifestOptions
from keelman.cli.exits import FAILED, OK, print_error
from keelman.cli.kinds import kind_of
from keelman.cli.manifests import printing
from keelman.cli.manifests.carrying_out import carry_out, checked_plan, plan_and_write
from keelman.cli.manifests.exporting import export_all
from keelman.cli.manifests.manifest import Manifest, ManifestsRefused
from keelman.cli.manifests.reading import read_manifests
from keelman.cli.options import Cluster, command_group, kind_word
from keelman.cli.output.printing import TEXT_FORMATS, as_yaml, checked_format, print_document
from keelman.cli.selectors import Selector, selector
from keelman.model.errors import InvalidArgument, KeelmanError

app = command_group()
CHANGES = 2
"""Exit code of a plan of which something is to be done."""


def apply_files(target: GatewayTarget, options: ManifestOptions, seconds: float | None) -> int:
    """Has resources be as files say; returns the exit code."""
    form, chosen = checked_format(options.output, TEXT_FORMATS), selector(options.selector or ())
    if options.prune and not chosen.asked:
        raise InvalidArgument("--prune: only together with -l, which selects the resources that may be removed")
    if options.plan and seconds is not None:
        raise InvalidArgument("--wait: not together with --plan: nothing is done")
    if form != "text" and not options.plan:
        raise InvalidArgument("-o: only together with --plan")
    try:
        manifests = _narrowed(read_manifests(options.paths or (), cluster=options.cluster), chosen)

        async def body(client: Gateway) -> int:
            return await _apply(client, manifests, chosen, options, form=form, seconds=seconds)

        return target.run(body)
    except ManifestsRefused as error:
        for line in error.lines:
            print_error(line)
        print_error("nothing was changed")
        return FAILED if options.plan else error.exit_code
    except KeelmanError as error:
        if not options.plan:
            raise
        print_error(error.message)
        return FAILED


async def _apply(
    client: Gateway,
    manifests: list[Manifest],
    chosen: Selector,
    options: ManifestOptions,
    *,
    form: str,
    seconds: float | None,
) -> int:
    prune = chosen.takes if options.prune else None
    if options.plan:
        plan = await checked_plan(client, manifests, prune)
        if form == "text":
            for line in printing.lines(plan):
                print(line)
        else:
            print_document(printing.document(plan), form)
        return CHANGES if plan.changes else OK
    plan = await plan_and_write(client, manifests, prune)
    await carry_out(client, plan, print, seconds=seconds)
    if same := len(plan.items) - len(plan.changes):
        print(f"{same} unchanged")
    return OK


def _narrowed(manifests: list[Manifest], chosen: Selector) -> list[Manifest]:
    """The manifests with the requested labels; a remark names the others."""
    chosen_manifests = [manifest for manifest in manifests if chosen.takes(manifest.labels)]
    if others := [manifest.title for manifest in manifests if manifest not in chosen_manifests]:
        print(f"keelman: left out, because they lack the labels of -l: {', '.join(others)}", file=sys.stderr)
    return chosen_manifests


@app.command()
def export(
    kind: Annotated[str, kind_word("get")] = "",
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="One of them; all when left out.")] = "",
    *,
    labels: Annotated[
        list[str] | None, typer.Option("-l", "--selector", metavar="SELECTOR", help="Only those with these labels.")
    ] = None,
    cluster: Cluster = "",
    output: Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="yaml or json.")] = "yaml",
    target: GatewayTarget,
) -> int:
    """Print resources as files that `keelman apply -f` takes back, secrets hidden."""
    form = checked_format(output, ("yaml", "json"))
    noun = kind_of(kind, "create") if kind and kind_of(kind).singular != "document" else kind_of(kind) if kind else None
    chosen = selector(labels or ())

    async def body(client: Gateway) -> None:
        documents = await export_all(client, noun, name, chosen, cluster=cluster)
        if form == "json":
            print_document({"items": documents}, form)
            return
        print("---\n".join(as_yaml(document) for document in documents), end="")

    return target.run(body)
