"""Prints the tables of docs/client-properties.md, made from the table of client properties.

`make docs` puts them into the site.
"""

from __future__ import annotations

from collections.abc import Iterator

from keelman.kafka.properties.keys import ClientKey
from keelman.kafka.properties.table import FETCHED, TABLE

KINDS = (
    ("pca", "all clients"),
    ("pc", "producers and consumers"),
    ("p", "producers"),
    ("c", "consumers"),
    ("ca", "consumers and admin clients"),
)


MIRRORS = """
## Of a mirror's consumer

A mirror reads with a fetcher of our own. Behind `source.consumer.` and `consumer.` it heeds how the brokers are
reached, and {heeded}. All other keys that are used above are ignored there, with a warning.
"""


def tables() -> str:
    """Returns the tables of the page."""
    sections = "".join(_section(clients, title) for clients, title in KINDS) + _section("a", "admin clients")
    heeded = ", ".join(f"`{key}`" for key in sorted(FETCHED))
    return sections + MIRRORS.format(heeded=heeded)


def _section(clients: str, title: str) -> str:
    rows = sorted((row for row in TABLE if row.clients == clients), key=lambda row: row.name)
    lines = [f"\n## Of {title}\n\n| key | | librdkafka | what it does here |\n|---|---|---|---|\n"]
    return "".join([*lines, *(_line(row) for row in rows)])


def _line(row: ClientKey) -> str:
    named = f"`{row.librdkafka}`" if row.librdkafka else ""
    return f"| `{row.name}` | {row.use} | {named} | {'; '.join(_says(row)) or 'the same, where librdkafka is'} |\n"


def _says(row: ClientKey) -> Iterator[str]:
    if row.says:
        yield row.says.replace("|", "\\|")
    if row.aiokafka:
        yield f"aiokafka `{row.aiokafka}`"
    harmless = dict.fromkeys(one.rpartition(".")[2] for one in row.accepted if one)
    if harmless:
        yield "accepted: " + ", ".join(f"`{one}`" for one in harmless)


if __name__ == "__main__":
    print(tables(), end="")
