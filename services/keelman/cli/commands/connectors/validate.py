"""`keelman validate`: what Connect finds wrong with a connector's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from keelman.cli.client.rest import ConnectorRest, Where
from keelman.cli.configuration import class_of, given_config
from keelman.cli.exits import FAILED, OK, plain_plugins
from keelman.cli.options import ConfigFile, ConfigValues, Name, TextForm, command_group
from keelman.cli.output.printing import TEXT_FORMATS, checked_format, on_one_line, print_document
from keelman.model.errors import KeelmanError, NotFound

app = command_group()
UNKNOWN_CLASS = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException: "


@app.command()
def validate(
    name: Name, *, config_file: ConfigFile = None, values: ConfigValues = None, output: TextForm = "text", where: Where
) -> int:
    """Check a connector's configuration, new or stored, and change nothing. Exit code 1 when something is wrong.

    Without --config-file it is the configuration that the connector has, with each --set over it.
    """
    form, (whole, values_given) = checked_format(output, TEXT_FORMATS), given_config(config_file, values)
    new = whole is not None or "connector.class" in values_given

    async def body(rest: ConnectorRest) -> int:
        config = {**(whole or {}), **values_given} if new else {**await rest.ask("GET", "/config"), **values_given}
        config.setdefault("name", rest.name)
        wrong = await _problems(rest, class_of(config), config)
        if form != "text":
            print_document({"connector": rest.full, "problems": wrong}, form)
        elif not wrong:
            print(f"connector/{rest.full}: no problem found")
        else:
            for problem in wrong:
                print(on_one_line(f"{problem['key']}: {problem['problem']}"))
        return FAILED if wrong else OK

    try:
        return where.ask_connector(name, body, new=new)
    except NotFound as error:
        if new:
            raise
        hint = "for a new connector use --config-file FILE or --set connector.class=..."
        raise NotFound(f"{error.message}; {hint}") from None


async def _problems(rest: ConnectorRest, kind: str, config: Mapping[str, str]) -> list[dict[str, str]]:
    try:
        path = f"/connector-plugins/{quote(kind, safe='')}/config/validate"
        return problems_of(await rest.cluster.ask("PUT", path, config))
    except KeelmanError as error:  # Connect finds no class, or no version of it: then it does not judge other keys
        if not error.message.startswith(UNKNOWN_CLASS):
            raise
        return [{"key": "connector.class", "problem": plain_plugins(error.message.removeprefix(UNKNOWN_CLASS))}]


def problems_of(answer: Mapping[str, Any]) -> list[dict[str, str]]:
    """Key and text of each problem in what Connect answers to a configuration, by key."""
    pairs = sorted(
        (config["value"]["name"], text) for config in answer["configs"] for text in config["value"]["errors"]
    )
    return [{"key": key, "problem": text} for key, text in pairs]
