"""The kinds of resources in commands: their names, short names and verbs. Text only: imports nothing heavy."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from keelman.model.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind; `plural` is the word in listings, `short` the abbreviation. A resource of a kind `in_cluster` belongs
    to a worker cluster. `wire` is the kind's name in the wire contract if it differs, `area` its service's area there.
    """

    plural: str
    singular: str
    short: str
    verbs: tuple[str, ...] = ()
    in_cluster: bool = False
    wire: str = ""
    more: tuple[str, ...] = ()
    area: str = "connect"

    @property
    def words(self) -> tuple[str, ...]:
        """All words for this kind."""
        return (self.plural, self.singular, self.short, *self.more)

    @property
    def field(self) -> str:
        """The field of an answer with one resource of the kind."""
        return (self.wire or self.singular).replace("-", "_")

    @property
    def fields(self) -> str:
        """The field of an answer with many resources of the kind."""
        return f"{self.wire}s".replace("-", "_") if self.wire else self.plural.replace("-", "_")

    def rpc(self, verb: str) -> str:
        """Returns the name of the RPC of a verb: GetWorkerCluster, ListWorkerClusters."""
        noun = self.fields if verb == "List" else self.field
        return verb + "".join(word.capitalize() for word in noun.split("_"))


SHOWN = ("get", "describe", "logs")
SPEC = ("create", "update", "label", "delete")
BROKER_CLUSTERS = Kind("broker-clusters", "broker-cluster", "bc", (*SHOWN, *SPEC, "start", "stop"))
WORKER_CLUSTERS = Kind("worker-clusters", "worker-cluster", "wc", (*SHOWN, *SPEC, "scale", "start", "stop", "restart"))
WORKERS = Kind("workers", "worker", "wk", (*SHOWN, "restart"), in_cluster=True)
CONNECTORS = Kind(
    "connectors",
    "connector",
    "cn",
    (*SHOWN, "create", "configure", "delete", "start", "stop", "pause", "resume", "restart"),
    in_cluster=True,
)
NODES = Kind("nodes", "node", "no", (*SHOWN, *SPEC, "cordon", "uncordon", "drain"), area="node")
COPY_RUNS = Kind("copy-runs", "copy-run", "cr", (*SHOWN, "watch"), in_cluster=True, area="copy")
WORKLOADS = Kind("workloads", "workload", "wl", SHOWN, area="node")
PLUGINS = Kind(
    "plugins", "plugin", "pl", ("get", "describe", "create", "update", "label", "delete", "download"), in_cluster=True
)
PLUGIN_CLASSES = Kind("plugin-classes", "plugin", "pl")
"""The classes that the workers of a cluster can run: `get plugins --cluster`."""
TOPICS = Kind("topics", "topic", "tp", ("get", "describe", *SPEC, "apply"))
DEFINITIONS = Kind(
    "definitions",
    "definition",
    "df",
    ("get", "describe", *SPEC, "apply"),
    in_cluster=True,
    wire="connector-definition",
    more=("connector-definitions", "connector-definition", "cd"),
)
DEDICATED_CONNECTORS = Kind(
    "dedicated-connectors", "dedicated-connector", "dc", ("get", "describe", *SPEC, "pause", "resume", "restart")
)
WORKER_CONFIGURATIONS = Kind("worker-configurations", "worker-configuration", "wf", ("get", "describe", *SPEC))
PLUGIN_IMPORTS = Kind("plugin-imports", "plugin-import", "pi", ("get", "describe", *SPEC))
SECRETS = Kind("secrets", "secret", "se", ("get", "describe", *SPEC))
SPARK_CLUSTERS = Kind("spark-clusters", "spark-cluster", "sc", ("get", "describe", *SPEC))
OPERATIONS = Kind("operations", "operation", "op", ("get", "describe", "cancel", "delete"))
DOCUMENTS = Kind("documents", "document", "doc", ("get", "describe"))
APPLIED = (TOPICS, DEFINITIONS)
"""The kinds that operations apply."""
SAID = (PLUGINS, WORKER_CONFIGURATIONS, PLUGIN_IMPORTS, SECRETS)
"""The kinds of which only the description and labels change."""
PLANS = Kind("plans", "plan", "pn", ("get",), area="node")
AUDIT = Kind("audit", "audit-event", "au", ("get",), wire="audit-event", area="event")
"""The calls that wrote and those that were refused: `get audit`."""

BATCHES = Kind("batches", "batch", "")
"""Batches of writes: no kind of resources, but a service with the same naming."""

KINDS = (
    BROKER_CLUSTERS,
    WORKER_CLUSTERS,
    WORKERS,
    CONNECTORS,
    NODES,
    COPY_RUNS,
    WORKLOADS,
    PLUGINS,
    TOPICS,
    DEFINITIONS,
    DEDICATED_CONNECTORS,
    WORKER_CONFIGURATIONS,
    PLUGIN_IMPORTS,
    SECRETS,
    SPARK_CLUSTERS,
    OPERATIONS,
    DOCUMENTS,
    PLANS,
    AUDIT,
)


def legal_kinds(verb: str = "") -> str:
    """Returns the kinds with a verb, or all kinds, with their short names."""
    return ", ".join(f"{k.plural} ({k.short})" for k in KINDS if not verb or verb in k.verbs)


def kind_of(word: str, verb: str = "", *, cluster: str = "") -> Kind:
    """Returns the kind for a user's word; `cluster` is the value of --cluster.

    Raises InvalidArgument with the nearest and the legal kinds, or the kinds with the verb, or the kinds of clusters.
    """
    kind = _kind_of(word, verb)
    if cluster:
        check_option("--cluster", kind, [k for k in KINDS if k.in_cluster])
    return kind


def check_option(option: str, kind: Kind, legal: Sequence[Kind]) -> None:
    """Raises InvalidArgument for an option that is not for this kind."""
    if kind not in legal:
        raise InvalidArgument(f"{option}: not for {kind.plural}, only for {', '.join(k.plural for k in legal)}")


def cluster_and_name(kind: Kind, name: str, cluster: str = "") -> tuple[str, str]:
    """Returns the worker cluster, empty if none is named, and the plain name of a resource in a cluster.

    `cluster` is the value of --cluster; the name may begin with a cluster. Raises InvalidArgument if the two differ.
    """
    if not kind.in_cluster:
        return cluster, name
    owner, slash, plain = name.partition("/")
    if not (slash and owner and plain):
        return cluster, name
    if cluster not in ("", owner):
        other = f"; a {kind.singular} {name!r} of {cluster!r} is typed {cluster}/{name}" if kind is CONNECTORS else ""
        raise InvalidArgument(f"--cluster: {kind.singular} {name!r} belongs to {owner!r}, not to {cluster!r}{other}")
    return owner, plain


def _kind_of(word: str, verb: str) -> Kind:
    plain = word.lower().replace("_", "-")
    for kind in KINDS:
        if plain in kind.words or plain.replace("-", "") in {w.replace("-", "") for w in kind.words}:
            if verb and verb not in kind.verbs:
                raise InvalidArgument.of("kind", word, f"`{verb}` works on {legal_kinds(verb)}")
            return kind
    near = difflib.get_close_matches(plain, [w for k in KINDS for w in k.words if len(w) > 2], n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InvalidArgument.of("kind", word, f"{hint}one of {legal_kinds()}")
