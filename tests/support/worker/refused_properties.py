"""Worker properties that a worker refuses at its start, and properties that it accepts."""

from __future__ import annotations

ILLEGAL = [
    ("session.timeout.ms", "soon", "a whole number"),
    ("session.timeout.ms", "6_000", "a whole number"),
    ("keelman.restart.backoff.ms", "0", "Value must be at least 1"),
    ("heartbeat.interval.ms", "6000", "less than session.timeout.ms"),
    ("exactly.once.source.support", "maybe", "one of disabled, preparing, enabled"),
    ("listeners", "ftp://h:1", "http://host:port"),
    ("listeners", "http://h:port", "http://host:port"),
    ("keelman.metrics.listeners", "http://h", "http://host:port"),
    ("bootstrap.servers", "nohost", "host:port"),
    ("bootstrap.servers", "h:99999", "ports from 1 to 65535"),
    ("bootstrap.servers", "a/b:1", "host:port"),
    ("producer.bootstrap.servers", "h:0", "ports from 1 to 65535"),
    ("rest.advertised.host.name", "http://h", "without http:// and without a port"),
    ("rest.advertised.host.name", "h:8083", "without http:// and without a port"),
    ("rest.advertised.host.name", "a host", "a host name or address alone"),
    ("rest.advertised.port", "70000", "from 0 to 65535"),
    ("config.storage.topic", "a b", "a topic name"),
    ("offset.storage.topic", "..", "a topic name"),
    ("key.converter", "NoSuch", "for configuration key.converter: Class NoSuch could not be found"),
    ("value.converter.schemas.enable", "maybe", "either true or false"),
    ("header.converter", "NoSuch", "for configuration header.converter: Class NoSuch could not be found"),
    ("topic.tracking.enable", "ja", "either true or false"),
    ("topic.tracking.allow.reset", "1", "either true or false"),
    ("topic.creation.enable", "nein", "either true or false"),
    ("offset.storage.partitions", "0", "at least 1, or -1 for the brokers' default"),
    ("status.storage.partitions", "-2", "at least -1"),
    ("config.storage.replication.factor", "0", "at least 1, or -1 for the brokers' default"),
    ("status.storage.topic", "offsets", "three different topics"),
    ("keelman.park.after.ms", "-2", "Value must be at least -1"),
    ("keelman.park.after.ms", "1_0", "Not a number of type LONG"),
    ("keelman.commit.interval.ms", "0", "between 1 and 600000"),
    ("keelman.commit.interval.ms", "700000", "between 1 and 600000"),
]
"""Keys with an illegal value, and words of the legal values."""

OAUTH = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
    "sasl.oauthbearer.token.endpoint.url": "https://tokens.example/token",
}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
PROVIDER = "org.apache.kafka.common.config.provider."
ENVIRONMENT = {"config.providers": "env", "config.providers.env.class": PROVIDER + "EnvVarConfigProvider"}
FILES = {"config.providers": "file", "config.providers.file.class": PROVIDER + "FileConfigProvider"}
HTTPS = {"listeners": "https://host:8083"}

REFUSED: dict[str, dict[str, str]] = {
    "several": {"session.timeout.ms": "soon", "listeners": "ftp://h:1", "keelman.cpus": "none", "group.id": ""},
    "memory": {"keelman.memory.bytes": "1000"},
    "labels": {"keelman.labels": "zone"},
    "plugins": {"keelman.plugin.answer.timeout.ms": "0", "keelman.plugin.host.memory.bytes": "-1"},
    "slots": {"keelman.plugin.slot.memory.bytes": "much"},
    "secrets scope": {"keelman.secrets.scope": "prod?/*"},
    "secrets scope in the middle": {"keelman.secrets.scope": "ok,prod/*/db"},
    "secrets policy": {"keelman.secrets.policy": "deny"},
    "override policy": {"connector.client.config.override.policy": "Some"},
    "signature": {"inter.worker.signature.algorithm": "HmacMD5"},
    "algorithms": {"inter.worker.verification.algorithms": "HmacSHA3", "inter.worker.key.size": "8"},
    "another REST extension": {"rest.extension.classes": "com.example.Audit"},
    "origins": {"access.control.allow.origin": "("},
    "headers": {"response.http.headers.config": "remove X-A: b"},
    "a class of providers": {"config.providers": "vault", "config.providers.vault.class": "com.example.Vault"},
    "a pattern of variables": {**ENVIRONMENT, "config.providers.env.param.allowlist.pattern": "("},
    "a path of files": {**FILES, "config.providers.file.param.allowed.paths": "etc/secrets"},
    "a path of a variable": {**ENVIRONMENT, "client.id": "${env:/etc:HOME}"},
    "a reference to no provider": {"session.timeout.ms": "${env:SESSION}"},
    "protocol": {"security.protocol": "TLS"},
    "mechanism": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"},
    "no login": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
    "a login module": {"sasl.jaas.config": "com.example.Login required;"},
    "half a login": {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} required password="x-secret";',
    },
    "tokens of anybody": {**OAUTH, "keelman.oauthbearer.allowed.urls": "https://others.example"},
    "a number of a producer's": {"producer.linger.ms": "soon"},
    "a word of a consumer's": {"consumer.isolation.level": "read_all"},
    "registry": {"value.converter": "io.confluent.connect.avro.AvroConverter"},
    "https without keys": HTTPS,
    "https for metrics without keys": {"keelman.metrics.listeners": "https://host:8085"},
    "https for administrators without keys": {"admin.listeners": "https://host:8084"},
    "client.auth": {**HTTPS, "ssl.keystore.location": "/k.p12", "ssl.client.auth": "maybe"},
    "protocols": {**HTTPS, "ssl.keystore.location": "/k.p12", "ssl.enabled.protocols": "SSLv2"},
    "ciphers": {**HTTPS, "ssl.keystore.location": "/k.p12", "ssl.cipher.suites": "TLS_NONE_WITH_NOTHING"},
    "a kind of store": {**HTTPS, "ssl.keystore.location": "/k.p12", "ssl.keystore.type": "BKS"},
    "server names": {
        **HTTPS, "ssl.keystore.location": "/k.p12", "ssl.endpoint.identification.algorithm": "dns",
    },
    "keys that are none": {**HTTPS, "ssl.keystore.key": "key", "ssl.keystore.certificate.chain": "chain"},
    "keys without certificates": {**HTTPS, "ssl.keystore.key": "key"},
}  # fmt: skip
"""The additions to valid properties."""

TAKEN: dict[str, dict[str, str]] = {
    "nothing": {},
    "blanks": {"session.timeout.ms": " 7000 ", "topic.creation.enable": " False"},
    "unknown keys": {"session.timeout": "soon", "plugin.path": "/not/here"},
    "ignored keys": {"connect.protocol": "eager", "metric.reporters": ""},
    "a file on the worker's host": {"rest.extension.classes": EXTENSION, "keelman.jaas.file": "/not/here"},
    "a keystore on the worker's host": {**HTTPS, "ssl.keystore.location": "/not/here", "ssl.keystore.password": "x"},
    "login by a file": {
        **FILES,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "${file:/not/here:login}",
        "producer.security.protocol": "SASL_SSL",
    },
    "numbers by a variable": {**ENVIRONMENT, "session.timeout.ms": "${env:SESSION}", "heartbeat.interval.ms": "9000"},
    "a group by a variable": {**ENVIRONMENT, "group.id": "${env:GROUP}", "key.converter": "${env:CONVERTER}"},
    "a registry by a variable": {
        **ENVIRONMENT,
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": "${env:REGISTRY}",
    },
    "algorithms by a variable": {
        **ENVIRONMENT,
        "inter.worker.verification.algorithms": "${env:ALGORITHMS}",
        "inter.worker.signature.algorithm": "HmacSHA512",
    },
    "tokens that Java's options may allow": OAUTH,
    "keys by a variable": {**ENVIRONMENT, **HTTPS, "ssl.keystore.key": "${env:KEY}"},
}
"""The same, of which nothing can be refused elsewhere than on the worker's host."""
