"""The `topic.creation.*` settings of the connectors whose topics `record_topic_creation.py` records."""

from __future__ import annotations

DEFAULT = {"topic.creation.default.replication.factor": "1", "topic.creation.default.partitions": "3"}
_D, _A, _B = "topic.creation.default.", "topic.creation.a.", "topic.creation.b."
_GROUP_A = {**DEFAULT, "topic.creation.groups": "a"}
_GROUPS = {**DEFAULT, "topic.creation.groups": "a,b"}

CASES: tuple[tuple[str, dict[str, str]], ...] = (
    ("default", DEFAULT),
    ("blanks", {f"{_D}replication.factor": " 1 ", f"{_D}partitions": " 2 "}),
    ("as the brokers do", {f"{_D}replication.factor": "-1", f"{_D}partitions": "-1"}),
    ("settings", {**DEFAULT, f"{_D}cleanup.policy": "compact", f"{_D}retention.ms": " 12345 "}),
    ("patterns of the default group", {**DEFAULT, f"{_D}include": "nothing", f"{_D}exclude": ".*"}),
    ("bad pattern of the default group", {**DEFAULT, f"{_D}include": "("}),
    ("a group", {**_GROUP_A, f"{_A}include": "t-.*", f"{_A}partitions": "5"}),
    ("a group that matches a part", {**_GROUP_A, f"{_A}include": "t-", f"{_A}partitions": "5"}),
    ("a group without patterns", {**_GROUP_A, f"{_A}partitions": "5"}),
    ("a group with an empty pattern", {**_GROUP_A, f"{_A}include": "", f"{_A}partitions": "5"}),
    ("several patterns", {**_GROUP_A, f"{_A}include": "nothing, t-.*", f"{_A}partitions": "5"}),
    ("alternatives", {**_GROUP_A, f"{_A}include": "nothing|t-.*", f"{_A}exclude": "x|y", f"{_A}partitions": "5"}),
    ("excluded", {**_GROUP_A, f"{_A}include": "t-.*", f"{_A}exclude": "x,.*-excluded", f"{_A}partitions": "5"}),
    (
        "the first",
        {**_GROUPS, f"{_A}include": ".*", f"{_A}partitions": "5", f"{_B}include": ".*", f"{_B}partitions": "6"},
    ),
    (
        "the second",
        {**_GROUPS, f"{_A}include": "x", f"{_A}partitions": "5", f"{_B}include": ".*", f"{_B}partitions": "6"},
    ),
    (
        "order",
        {
            **_GROUPS,
            "topic.creation.groups": " b , a ",
            f"{_A}include": ".*",
            f"{_A}partitions": "5",
            f"{_B}include": ".*",
            f"{_B}partitions": "6",
        },
    ),
    ("inherits", {**_GROUP_A, f"{_A}include": ".*", f"{_D}retention.ms": "1000", f"{_A}cleanup.policy": "compact"}),
    ("a group that is not listed", {**DEFAULT, f"{_A}include": ".*", f"{_A}partitions": "5"}),
    ("a group named default", {**DEFAULT, "topic.creation.groups": "default"}),
    (
        "a group named default and one more",
        {**_GROUPS, "topic.creation.groups": "default,a", f"{_A}include": ".*", f"{_A}partitions": "5"},
    ),
    (
        "a group with a dot",
        {
            **DEFAULT,
            "topic.creation.groups": "x.y",
            "topic.creation.x.y.include": ".*",
            "topic.creation.x.y.partitions": "5",
        },
    ),
    ("no groups", {"topic.creation.groups": ""}),
    (
        "groups without a default",
        {"topic.creation.groups": "a", f"{_A}include": ".*", f"{_A}partitions": "1", f"{_A}replication.factor": "1"},
    ),
    ("no replication factor", {f"{_D}partitions": "1"}),
    ("no partitions", {f"{_D}replication.factor": "1"}),
    ("no number of partitions", {**DEFAULT, f"{_D}partitions": "x"}),
    ("0 partitions", {**DEFAULT, f"{_D}partitions": "0"}),
    ("-2 partitions", {**DEFAULT, f"{_D}partitions": "-2"}),
    ("empty partitions", {**DEFAULT, f"{_D}partitions": ""}),
    ("no number of replicas", {**DEFAULT, f"{_D}replication.factor": "x"}),
    ("0 replicas", {**DEFAULT, f"{_D}replication.factor": "0"}),
    ("-2 replicas", {**DEFAULT, f"{_D}replication.factor": "-2"}),
    ("too many replicas for a number", {**DEFAULT, f"{_D}replication.factor": "70000"}),
    ("0 partitions in a group", {**_GROUP_A, f"{_A}include": ".*", f"{_A}partitions": "0"}),
    ("0 replicas in a group", {**_GROUP_A, f"{_A}include": ".*", f"{_A}replication.factor": "0"}),
    ("a bad pattern", {**_GROUP_A, f"{_A}include": "("}),
    ("a bad pattern to exclude", {**_GROUP_A, f"{_A}include": ".*", f"{_A}exclude": "x, [a"}),
    ("two patterns that are one", {**_GROUP_A, f"{_A}include": "(t-, .*)", f"{_A}partitions": "5"}),
    ("more replicas than brokers", {**DEFAULT, f"{_D}replication.factor": "3"}),
    ("a setting that is none", {**DEFAULT, f"{_D}no.such.setting": "1"}),
    ("a setting that is not legal", {**DEFAULT, f"{_D}cleanup.policy": "nonsense"}),
)
OFF: tuple[tuple[str, dict[str, str]], ...] = (
    ("off: default", DEFAULT),
    ("off: a bad pattern", {**_GROUP_A, f"{_A}include": "("}),
    ("off: no partitions", {f"{_D}replication.factor": "1"}),
)
"""On a worker with `topic.creation.enable=false`, whose brokers create topics at the first write."""
NONE: tuple[tuple[str, dict[str, str]], ...] = (("nothing set", {}),)
"""With brokers that create topics at the first write."""


def topic_of(name: str) -> str:
    """The topic that the connector of a case writes."""
    return "t-" + name.replace(" ", "-").replace(":", "")
