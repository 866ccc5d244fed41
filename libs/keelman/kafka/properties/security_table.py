"""The rows of the table of client properties for a client's authentication and its trust in brokers."""

from __future__ import annotations

from keelman.kafka.properties.keys import ClientKey

ALL = "pca"
_KERBEROS = "Kerberos (GSSAPI) is not supported"
_SERVER = "of brokers, which check tokens"
_ASSERTION = "tokens are requested with client id and secret: assertions (JWT bearer) are not supported"
_JSSE = "OpenSSL's is used"
_HANDLERS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
)
_RETRIEVERS = tuple(
    f"org.apache.kafka.common.security.oauthbearer.{name}"
    for name in ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")
)


def _used(name: str, says: str) -> ClientKey:
    return ClientKey(name, ALL, "used", says)


def _ignored(name: str, reason: str) -> ClientKey:
    return ClientKey(name, ALL, "ignored", reason)


def _refused(name: str, reason: str, *accepted: str) -> ClientKey:
    return ClientKey(name, ALL, "refused", reason, accepted=("", *accepted))


SECURITY: tuple[ClientKey, ...] = (
    _used("security.protocol", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
    _ignored("security.providers", _JSSE),
    _used("ssl.truststore.location", "read into PEM, in every format: librdkafka `ssl.ca.pem`, aiokafka `ssl_context`"),
    _used("ssl.truststore.password", "of a JKS or PKCS12 store"),
    _used("ssl.truststore.type", "JKS, PKCS12 or PEM; a store of the other kind of the first two opens too"),
    _used("ssl.truststore.certificates", "PEM"),
    _used("ssl.keystore.location", "as the trust store: `ssl.key.pem` and `ssl.certificate.pem`, `ssl_context`"),
    _used("ssl.keystore.password", "of a JKS or PKCS12 store"),
    _used("ssl.keystore.type", "as the trust store's"),
    _used("ssl.keystore.key", "PEM, PKCS#8"),
    _used("ssl.keystore.certificate.chain", "PEM"),
    _used("ssl.key.password", "of the private key"),
    _used("ssl.endpoint.identification.algorithm", "https, or empty: the name in the certificate does not count"),
    ClientKey(
        "ssl.enabled.protocols",
        ALL,
        "used",
        "TLSv1.2, TLSv1.3: aiokafka `ssl_context`, of producers and workers; librdkafka, of sinks and administrators, "
        "takes both",
        accepted=("", "TLSv1.2,TLSv1.3", "TLSv1.3,TLSv1.2"),
        not_by="ca",
    ),
    _used("ssl.cipher.suites", "of TLS 1.2, in Java's names: `ssl.cipher.suites`, `ssl_context`"),
    _ignored("ssl.protocol", "ssl.enabled.protocols names the versions"),
    _refused("ssl.engine.factory.class", "no Java code runs here"),
    _ignored("ssl.keymanager.algorithm", _JSSE),
    _ignored("ssl.provider", _JSSE),
    _ignored("ssl.secure.random.implementation", _JSSE),
    _ignored("ssl.trustmanager.algorithm", _JSSE),
    _used("sasl.mechanism", "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; GSSAPI, Java's default, is refused"),
    _used(
        "sasl.jaas.config", "of PlainLoginModule, ScramLoginModule and OAuthBearerLoginModule; all others are refused"
    ),
    _refused("sasl.client.callback.handler.class", "no Java code runs here"),
    _refused("sasl.login.callback.handler.class", "only Kafka's own for OAUTHBEARER are known", *_HANDLERS),
    _refused("sasl.login.class", "no Java code runs here"),
    _ignored("sasl.kerberos.kinit.cmd", _KERBEROS),
    _ignored("sasl.kerberos.min.time.before.relogin", _KERBEROS),
    _ignored("sasl.kerberos.service.name", _KERBEROS),
    _ignored("sasl.kerberos.ticket.renew.jitter", _KERBEROS),
    _ignored("sasl.kerberos.ticket.renew.window.factor", _KERBEROS),
    _used("sasl.login.connect.timeout.ms", "to reach the token endpoint"),
    _used("sasl.login.read.timeout.ms", "for the token endpoint's answer"),
    _ignored("sasl.login.refresh.buffer.seconds", "sasl.login.refresh.window.factor decides when"),
    _ignored("sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor decides when"),
    _used("sasl.login.refresh.window.factor", "a token is renewed after this part of its life; 0.8 when unset"),
    _ignored("sasl.login.refresh.window.jitter", "sasl.login.refresh.window.factor decides when"),
    _used(
        "sasl.login.retry.backoff.ms", "the first pause before the token endpoint is called again; it doubles each time"
    ),
    _used(
        "sasl.login.retry.backoff.max.ms",
        "the longest pause before the token endpoint is called again, and the longest wait for a first token",
    ),
    _used(
        "sasl.oauthbearer.token.endpoint.url", "http(s), or a file with a token; see keelman.oauthbearer.allowed.urls"
    ),
    _used("sasl.oauthbearer.client.credentials.client.id", "also clientId in sasl.jaas.config"),
    _used("sasl.oauthbearer.client.credentials.client.secret", "also clientSecret in sasl.jaas.config"),
    _used("sasl.oauthbearer.scope", "also scope in sasl.jaas.config"),
    _used("sasl.oauthbearer.header.urlencode", "whether client id and secret are URL-encoded in the request's header"),
    _used("sasl.oauthbearer.sub.claim.name", "claim of a token that names its principal"),
    _ignored("sasl.oauthbearer.scope.claim.name", _SERVER),
    _refused("sasl.oauthbearer.jwt.retriever.class", "only Kafka's own are known, but for assertions", *_RETRIEVERS),
    _ignored("sasl.oauthbearer.jwt.validator.class", "a token is checked by the brokers"),
    _ignored("sasl.oauthbearer.clock.skew.seconds", _SERVER),
    _ignored("sasl.oauthbearer.expected.audience", _SERVER),
    _ignored("sasl.oauthbearer.expected.issuer", _SERVER),
    _ignored("sasl.oauthbearer.jwks.endpoint.refresh.ms", _SERVER),
    _ignored("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", _SERVER),
    _ignored("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", _SERVER),
    _ignored("sasl.oauthbearer.jwks.endpoint.url", _SERVER),
    _ignored("sasl.oauthbearer.assertion.algorithm", _ASSERTION),
    _ignored("sasl.oauthbearer.assertion.claim.aud", _ASSERTION),
    _ignored("sasl.oauthbearer.assertion.claim.exp.seconds", _ASSERTION),
    _ignored("sasl.oauthbearer.assertion.claim.iss", _ASSERTION),
    _ignored("sasl.oauthbearer.assertion.claim.jti.include", _ASSERTION),
    _ignored("sasl.oauthbearer.assertion.claim.nbf.seconds", _ASSERTION),
    _ignored("sasl.oauthbearer.assertion.claim.sub", _ASSERTION),
    _refused("sasl.oauthbearer.assertion.file", _ASSERTION),
    _refused("sasl.oauthbearer.assertion.private.key.file", _ASSERTION),
    _ignored("sasl.oauthbearer.assertion.private.key.passphrase", _ASSERTION),
    _ignored("sasl.oauthbearer.assertion.template.file", _ASSERTION),
)
