"""The plugins that come with keelman: their Java names, and their modules, each loaded at its first use."""

from __future__ import annotations

from typing import NamedTuple

from keelman.connect.config.plugin_kinds import PluginType

CONVERTER_VERSION = "4.3.0"
"""Converters, transforms and predicates are those of this version of Connect."""


class Shipped(NamedTuple):
    """One plugin: kind, full Java name, and the module and attribute of our class; none for a class without keys."""

    kind: PluginType
    class_name: str
    module: str = ""
    attribute: str = ""

    @property
    def is_connector(self) -> bool:
        """Whether it is a source or a sink."""
        return self.kind in (PluginType.SINK, PluginType.SOURCE)


_APACHE, _OURS = "org.apache.kafka.connect", "keelman.connectors"
_TOOLS = f"{_APACHE}.tools"
_NUMBERS = ("Boolean", "Double", "Float", "Integer", "Long", "Short")
_CONVERTERS = {
    **{
        f"{_APACHE}.converters.{name}Converter": ("keelman.connect.converters.number_converters", f"{name}Converter")
        for name in _NUMBERS
    },
    f"{_APACHE}.converters.ByteArrayConverter": ("keelman.connect.converters.converter", "ByteArrayConverter"),
    f"{_APACHE}.json.JsonConverter": ("keelman.connect.converters.json_converter", "JsonConverter"),
    f"{_APACHE}.storage.StringConverter": ("keelman.connect.converters.converter", "StringConverter"),
}
_CONFLUENT = {
    "io.confluent.connect.avro.AvroConverter": ("keelman.connect.avro.converter", "AvroConverter"),
    "io.confluent.connect.json.JsonSchemaConverter": ("keelman.connect.json_schema.converter", "JsonSchemaConverter"),
    "io.confluent.connect.protobuf.ProtobufConverter": ("keelman.connect.protobuf.converter", "ProtobufConverter"),
}
"""Those with a schema registry: of keys and values only."""
_TRANSFORMS = {
    "cast": ("Cast",),
    "fields": ("HoistField", "ReplaceField"),
    "headers": ("DropHeaders", "HeaderFrom", "InsertHeader"),
    "insert": ("InsertField",),
    "mask": ("MaskField",),
    "routing": ("Filter", "RegexRouter", "SetSchemaMetadata"),
    "flatten": ("Flatten",),
    "structure": ("ExtractField", "ValueToKey"),
    "times": ("TimestampConverter", "TimestampRouter"),
}
_WHOLE = ("DropHeaders", "Filter", "InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey")
ALL = (
    Shipped(PluginType.SINK, f"{_APACHE}.file.FileStreamSinkConnector", f"{_OURS}.file.sink", "FileStreamSink"),
    Shipped(
        PluginType.SOURCE,
        "com.couchbase.connect.kafka.CouchbaseSourceConnector",
        f"{_OURS}.couchbase.official",
        "CouchbaseSource",
    ),
    Shipped(
        PluginType.SOURCE,
        f"{_APACHE}.couchbase.CouchbaseSourceConnector",
        f"{_OURS}.couchbase.first",
        "CouchbaseSource2016",
    ),
    Shipped(PluginType.SOURCE, f"{_APACHE}.file.FileStreamSourceConnector", f"{_OURS}.file.source", "FileStreamSource"),
    Shipped(PluginType.SINK, f"{_OURS}.KafkaSinkConnector", f"{_OURS}.kafka_sink", "KafkaSink"),
    Shipped(PluginType.SOURCE, f"{_APACHE}.mirror.MirrorSourceConnector", f"{_OURS}.mirror.source", "MirrorSource"),
    Shipped(PluginType.SINK, f"{_TOOLS}.MockSinkConnector", f"{_OURS}.tools.mock", "MockSink"),
    Shipped(PluginType.SOURCE, f"{_TOOLS}.MockSourceConnector", f"{_OURS}.tools.mock", "MockSource"),
    Shipped(PluginType.SINK, f"{_OURS}.SparkSinkConnector", f"{_OURS}.spark.sink", "SparkSink"),
    Shipped(PluginType.SOURCE, f"{_OURS}.SparkSourceConnector", f"{_OURS}.spark.source", "SparkSource"),
    Shipped(PluginType.SINK, f"{_TOOLS}.VerifiableSinkConnector", f"{_OURS}.tools.verifiable", "VerifiableSink"),
    Shipped(PluginType.SOURCE, f"{_TOOLS}.VerifiableSourceConnector", f"{_OURS}.tools.verifiable", "VerifiableSource"),
    # Converters convert headers too, as in Connect.
    *(
        Shipped(kind, name, *where)
        for kind in (PluginType.CONVERTER, PluginType.HEADER_CONVERTER)
        for name, where in _CONVERTERS.items()
    ),
    *(Shipped(PluginType.CONVERTER, name, *where) for name, where in _CONFLUENT.items()),
    Shipped(
        PluginType.HEADER_CONVERTER,
        f"{_APACHE}.storage.SimpleHeaderConverter",
        "keelman.connect.converters.header_converter",
        "SimpleHeaderConverter",
    ),
    *(
        Shipped(
            PluginType.TRANSFORMATION,
            f"{_APACHE}.transforms.{name}{part}",
            f"keelman.connect.transforms.{module}",
            name,
        )
        for module, names in _TRANSFORMS.items()
        for name in names
        for part in (("",) if name in _WHOLE else ("$Key", "$Value"))
    ),
    *(
        Shipped(
            PluginType.PREDICATE,
            f"{_APACHE}.transforms.predicates.{name}",
            "keelman.connect.transforms.predicates",
            name,
        )
        for name in ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")
    ),
)
FOR_TESTS = frozenset(entry.class_name for entry in ALL if entry.class_name.startswith(f"{_TOOLS}."))
"""Connect lists none of these."""
NAMED_CLASSES = frozenset(
    (
        f"{_APACHE}.mirror.DefaultReplicationPolicy",
        f"{_APACHE}.mirror.IdentityReplicationPolicy",
        f"{_APACHE}.mirror.DefaultTopicFilter",
        f"{_APACHE}.mirror.DefaultConfigPropertyFilter",
        "org.apache.kafka.clients.admin.ForwardingAdmin",
    )
)
"""Java classes that values may name without being plugins."""
NAMED_PACKAGES = tuple(f"com.couchbase.connect.kafka.{package}." for package in ("handler.source", "filter"))
"""Packages of such classes whose connector says itself which of them it serves."""
