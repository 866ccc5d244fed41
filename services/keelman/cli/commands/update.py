"""`keelman update`, `scale` and `label`: change the specs of clusters and nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from keelman.cli import kinds
from keelman.cli.client.changes import standing, wait_for_update
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import GatewayTarget
from keelman.cli.commands.connectors.dedicated import update_dedicated
from keelman.cli.commands.files.contents import change_by_file, check_no_wait
from keelman.cli.commands.manifests.applying import apply_and_print
from keelman.cli.commands.many import Many, each
from keelman.cli.kinds import Kind, check_option, kind_of
from keelman.cli.options import ConfigFile, NameUnlessMany, PlainName, WaitOptions, command_group, kind_word
from keelman.cli.output.lines import topic_line
from keelman.cli.output.printing import checked_format, print_one
from keelman.cli.specs.fields import apply, check_given
from keelman.cli.specs.options import GivenChange
from keelman.model.errors import InvalidArgument

app = command_group()
ThisForm = Annotated[
    str, typer.Option("-o", "--output", metavar="FORMAT", help="text, table, wide, json, yaml or name.")
]
_FORMS = ("text", "table", "wide", "json", "yaml", "name")


@app.command()
def update(
    kind: Annotated[str, kind_word("update")],
    name: PlainName,
    *,
    change: GivenChange,
    apply_: Annotated[bool, typer.Option("--apply", help="Of a topic or definition: also apply it.")] = False,
    config_file: ConfigFile = None,
    skip_health_check: Annotated[
        bool,
        typer.Option("--skip-health-check", help="Of a dedicated connector: keep the change even if it does not run."),
    ] = False,
    waiting: WaitOptions,
    output: ThisForm = "text",
    target: GatewayTarget,
) -> int:
    """Change the spec of a cluster, node, topic or definition, or the labels and description of a plugin, worker
    configuration or secret; other fields stay. --config-file gives a worker configuration another revision, a secret
    other values. Workers get a change one after the other; of topics and definitions nothing is done until they are
    applied."""
    noun, seconds = kind_of(kind, "update"), waiting.seconds
    if apply_:
        check_option("--apply", noun, kinds.APPLIED)
    if skip_health_check:
        check_option("--skip-health-check", noun, [kinds.DEDICATED_CONNECTORS])
    if config_file is not None:
        check_option("--config-file", noun, [kinds.WORKER_CONFIGURATIONS, kinds.SECRETS])
        check_no_wait(noun, seconds)
    if not check_given(noun, change) and config_file is None:
        raise InvalidArgument("nothing to change: give at least one option, see `keelman update --help`")

    def edit(spec: Any) -> list[str]:
        return apply(change, spec)

    if config_file is not None:
        return change_by_file(target, noun, name, config_file, change, form=checked_format(output, _FORMS))
    if noun is kinds.DEDICATED_CONNECTORS:
        form = checked_format(output, _FORMS)
        return update_dedicated(target, name, change, skip_health_check=skip_health_check, form=form, wait=seconds)
    if noun in kinds.APPLIED:
        return _change_applied(target, noun, name, edit, form=output, applies=apply_, wait=seconds)
    return _change(target, noun, name, edit, wait=seconds, form=output)


@app.command()
def scale(
    kind: Annotated[str, kind_word("scale")],
    name: PlainName,
    *,
    count: Annotated[int, typer.Option("--count", metavar="N", help="The number of its workers.", min=1)],
    waiting: WaitOptions,
    output: ThisForm = "text",
    target: GatewayTarget,
) -> int:
    """Change the number of workers of a cluster that keelman places."""

    def edit(spec: Any) -> list[str]:
        if spec.WhichOneof("placement") == "nodes":
            raise InvalidArgument(
                f"--count: the workers of {name} are on nodes that it names ({', '.join(spec.nodes.names)}): use "
                f"`keelman update wc {name}` with --add-node, --remove-node, or with --count to have them placed"
            )
        if spec.WhichOneof("placement") == "autoscale":
            raise InvalidArgument(
                f"--count: {name} is autoscaled: change its bounds with `keelman update wc {name} --autoscale`, or end "
                f"that with `keelman update wc {name} --count {count}`"
            )
        spec.count = count
        return ["count"]

    return _change(target, kind_of(kind, "scale"), name, edit, wait=waiting.seconds, form=output)


@app.command()
def label(
    kind: Annotated[str, kind_word("label")],
    name: NameUnlessMany = "",
    labels: Annotated[
        list[str] | None, typer.Argument(metavar="K=V|K-", help="A label to set, or to remove with a - after it.")
    ] = None,
    *,
    many: Many,
    output: ThisForm = "text",
    target: GatewayTarget,
) -> int:
    """Set labels of a cluster, a node or a plugin, or remove them: `keelman label node n1 disk=ssd zone-`; with -l or
    --all of many: `keelman label node -l zone=a disk=ssd`."""
    noun, texts = kind_of(kind, "label"), list(labels or ())
    if many.is_given:  # then the word in the name's place is the first label
        name, texts = "", [text for text in (name, *texts) if text]
    if not texts:
        raise InvalidArgument("label: missing: key=value to set one, key- to remove it")
    change = labels_given(texts)

    def do(target_name: str) -> int:
        return _label(target, noun, target_name, change, output)

    return each(target, "label", noun, name, many, do=do)


def _label(target: GatewayTarget, noun: Kind, name: str, change: GivenChange, output: str) -> int:
    def edit(spec: Any) -> list[str]:
        for key in change.unlabel or ():
            if key not in spec.labels:
                names = ", ".join(sorted(spec.labels)) or "there is none"
                raise InvalidArgument.of("label", f"{key}-", f"a label that {name} has: {names}")
        return apply(change, spec)

    if noun in kinds.APPLIED:
        return _change_applied(target, noun, name, edit, form=output, applies=False, wait=None)
    return _change(target, noun, name, edit, form=output)


def labels_given(texts: Sequence[str]) -> GivenChange:
    """The change that `label` requests. Raises InvalidArgument for a text that is neither K=V nor K-."""
    for text in texts:
        if "=" not in text and not (text.endswith("-") and len(text) > 1):
            raise InvalidArgument.of("label", text, "key=value to set it, key- to remove it")
    return GivenChange(
        labels=[text for text in texts if "=" in text], unlabel=[text[:-1] for text in texts if "=" not in text]
    )


def _change_applied(
    target: GatewayTarget,
    kind: Kind,
    name: str,
    edit: Callable[[Any], Sequence[str]],
    *,
    form: str,
    applies: bool,
    wait: float | None,
) -> int:
    checked_format(form, _FORMS)
    if wait is not None and not applies:
        raise InvalidArgument(f"--wait: only together with --apply: a {kind.singular} is only stored without it")

    async def body(client: Gateway) -> None:
        resource, changed = await client.update(kind, name, edit)
        if applies:
            await apply_and_print(client, kind, name, "", wait)
            resource = await client.get(kind, name)
        if form != "text":
            print_one(
                kind, topic_line(resource) if kind is kinds.TOPICS and form not in ("json", "yaml") else resource, form
            )
        elif not applies:
            later = (
                ""
                if resource.generation == resource.status.applied_generation
                else f": `keelman apply {kind.singular} {name}`"
            )
            print(f"{kind.singular}/{name} {f'updated{later}' if changed else 'has these values already'}")

    return target.run(body)


def _change(
    target: GatewayTarget,
    kind: Kind,
    name: str,
    edit: Callable[[Any], Sequence[str]],
    *,
    form: str,
    wait: float | None = None,
) -> int:
    checked_format(form, _FORMS)
    if wait is not None and kind in (kinds.NODES, *kinds.SAID):
        raise InvalidArgument(f"--wait: not for {kind.plural}: a change of a {kind.singular} holds at once")

    async def body(client: Gateway) -> None:
        resource, changed = await client.update(kind, name, edit)
        if wait is not None:
            resource = await wait_for_update(client, kind, name, generation=resource.generation, seconds=wait)
        if form != "text":
            print_one(kind, resource, form)
            return
        text = "updated" if changed else "has these values already"
        print(f"{kind.singular}/{name} {text}{'' if wait is None else ': ' + standing(kind, resource)}")

    return target.run(body)
