"""The effect of a value of each client property about authentication and trust.

The data of a test of docs/client-properties.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keelman.kafka.security.jaas import OAUTHBEARER, PLAIN

TLS = {"security.protocol": "SSL"}
LOGIN = {"security.protocol": "SASL_PLAINTEXT"}
_PLAIN = f'{PLAIN} required username="me" password="mine";'
_BEARER = f'{OAUTHBEARER} required unsecuredLoginStringClaim_sub="me" clientId="a" clientSecret="b";'
BEARER = {**LOGIN, "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": _BEARER}
_ASKING = {**BEARER, "sasl.oauthbearer.token.endpoint.url": "@url"}
_CLIENT = "sasl.oauthbearer.client.credentials.client"
_CONTEXT = "aiokafka.ssl_context"


@dataclass(frozen=True, slots=True)
class Login:
    """Over `base` the key has this value.

    Then `parts` of both libraries' settings differ; or one of the two is refused with this text; or the token's server
    gets this `form`. A value that begins with @ is of the test.

    `unheeded` are the clients that ignore the key, with a warning.
    """

    base: Mapping[str, str]
    value: str
    parts: tuple[str, ...] = ()
    refused_without: str = ""
    refused_with: str = ""
    form: str = ""
    unheeded: tuple[str, ...] = field(default=())


_CHAIN = {**TLS, "ssl.keystore.certificate.chain": "@chain pem"}
_IDENTITY = ("ssl.key.pem", "ssl.certificate.pem")
LOGINS = {
    "security.protocol": Login({}, "SSL", ("security.protocol", "aiokafka.security_protocol", _CONTEXT)),
    "ssl.truststore.location": Login(
        {**TLS, "ssl.truststore.password": "@password"}, "@trust", ("ssl.ca.pem", _CONTEXT)
    ),
    "ssl.truststore.password": Login(
        {**TLS, "ssl.truststore.location": "@trust"}, "@password", ("ssl.ca.pem",), "ssl.truststore.password"
    ),
    "ssl.truststore.type": Login(
        {**TLS, "ssl.truststore.location": "@trust", "ssl.truststore.password": "@password"},
        "PEM",
        refused_with="ssl.truststore.type",
    ),
    "ssl.truststore.certificates": Login(TLS, "@trust pem", ("ssl.ca.pem", _CONTEXT)),
    "ssl.keystore.location": Login({**TLS, "ssl.keystore.password": "@password"}, "@key", _IDENTITY),
    "ssl.keystore.password": Login(
        {**TLS, "ssl.keystore.location": "@key"}, "@password", _IDENTITY, "ssl.keystore.password"
    ),
    "ssl.keystore.type": Login(
        {**TLS, "ssl.keystore.location": "@key", "ssl.keystore.password": "@password"},
        "PEM",
        refused_with="ssl.keystore.type",
    ),
    "ssl.keystore.key": Login(_CHAIN, "@key pem", _IDENTITY, "ssl.keystore.key is missing"),
    "ssl.keystore.certificate.chain": Login(
        {**TLS, "ssl.keystore.key": "@key pem"}, "@chain pem", _IDENTITY, "ssl.keystore.certificate.chain is missing"
    ),
    "ssl.key.password": Login(
        {**_CHAIN, "ssl.keystore.key": "@locked pem"}, "@password", _IDENTITY, "ssl.key.password"
    ),
    "ssl.endpoint.identification.algorithm": Login(TLS, "", ("ssl.endpoint.identification.algorithm", _CONTEXT)),
    "ssl.enabled.protocols": Login(TLS, "TLSv1.3", (_CONTEXT,), unheeded=("consumer", "admin")),
    "ssl.cipher.suites": Login(TLS, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", ("ssl.cipher.suites", _CONTEXT)),
    "sasl.mechanism": Login(
        {**LOGIN, "sasl.jaas.config": _PLAIN}, "PLAIN", ("sasl.mechanism", "aiokafka.sasl_mechanism"), "GSSAPI"
    ),
    "sasl.jaas.config": Login(
        {**LOGIN, "sasl.mechanism": "PLAIN"},
        _PLAIN,
        ("sasl.username", "sasl.password", "aiokafka.sasl_plain_username", "aiokafka.sasl_plain_password"),
        "sasl.jaas.config is missing",
    ),
    "sasl.oauthbearer.token.endpoint.url": Login(BEARER, "@url", ("token", "principal"), form="a:b"),
    f"{_CLIENT}.id": Login(_ASKING, "mine", ("token",), form="mine:b"),
    f"{_CLIENT}.secret": Login(_ASKING, "mine", ("token",), form="a:mine"),
    "sasl.oauthbearer.scope": Login(_ASKING, "mine", ("token",), form="scope=mine"),
    "sasl.oauthbearer.header.urlencode": Login({**_ASKING, f"{_CLIENT}.id": "a b"}, "true", ("token",), form="a+b:b"),
    "sasl.oauthbearer.sub.claim.name": Login(_ASKING, "n", ("principal",)),
}
TIMES = {
    "sasl.login.connect.timeout.ms": ("700", "connect", 0.7),
    "sasl.login.read.timeout.ms": ("700", "read", 0.7),
    "sasl.login.refresh.window.factor": ("0.7", "_factor", 0.7),
    "sasl.login.retry.backoff.ms": ("700", "_first", 0.7),
    "sasl.login.retry.backoff.max.ms": ("70000", "patience", 70.0),
}
"""For logins with tokens: the value, the part of the login that has it, and in which form."""
