
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);

CREATE TABLE public.authority (
    id integer NOT NULL,
    certificate text NOT NULL,
    secret text NOT NULL,
    create_time bigint NOT NULL
);

CREATE SEQUENCE public.authority_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.authority_id_seq OWNED BY public.authority.id;

CREATE TABLE public.broker_cluster (
    name character varying NOT NULL,
    uid character varying NOT NULL,
    create_time bigint NOT NULL,
    update_time bigint NOT NULL,
    generation bigint NOT NULL,
    revision bigint NOT NULL,
    goal character varying NOT NULL,
    spec json NOT NULL,
    note text NOT NULL,
    status json NOT NULL,
    kafka_cluster_id character varying NOT NULL,
    reachable boolean,
    seen json DEFAULT '{}'::json NOT NULL,
    force boolean DEFAULT false NOT NULL
);

CREATE TABLE public.certificate (
    holder character varying NOT NULL,
    key_digest character varying NOT NULL,
    hosts json NOT NULL,
    issue_time bigint NOT NULL,
    end_time bigint NOT NULL
);

CREATE TABLE public.connector_definition (
    name character varying NOT NULL,
    uid character varying NOT NULL,
    create_time bigint NOT NULL,
    update_time bigint NOT NULL,
    revision bigint NOT NULL,
    generation bigint NOT NULL,
    goal character varying NOT NULL,
    spec json NOT NULL,
    status json NOT NULL
);

CREATE TABLE public.counter (
    name character varying NOT NULL,
    value bigint NOT NULL
);

CREATE TABLE public.dedicated_connector (
    name character varying NOT NULL,
    uid character varying NOT NULL,
    create_time bigint NOT NULL,
    update_time bigint NOT NULL,
    revision bigint NOT NULL,
    generation bigint NOT NULL,
    goal character varying NOT NULL,
    spec json NOT NULL,
    status json NOT NULL
);

CREATE TABLE public.document (
    name character varying NOT NULL,
    uid character varying NOT NULL,
    create_time bigint NOT NULL,
    update_time bigint NOT NULL,
    revision bigint NOT NULL,
    spec json NOT NULL
);

CREATE TABLE public.installation (
    id integer NOT NULL,
    uid character varying NOT NULL
);

CREATE TABLE public.join_token (
    name character varying NOT NULL,
    secret_digest character varying NOT NULL,
    role character varying NOT NULL,
    member character varying NOT NULL,
    create_time bigint NOT NULL,
    expire_time bigint NOT NULL,
    use_time bigint NOT NULL,
    used_by character varying NOT NULL,
    used_key character varying NOT NULL
);

CREATE TABLE public.lease (
    name character varying NOT NULL,
    holder character varying NOT NULL,
    epoch bigint NOT NULL,
    beat bigint NOT NULL
);

CREATE TABLE public.node (
    name character varying NOT NULL,
    uid character varying NOT NULL,
    create_time bigint NOT NULL,
    update_time bigint NOT NULL,
    state character varying NOT NULL,
    agent_address character varying NOT NULL,
    cpus integer NOT NULL,
    memory_bytes bigint NOT NULL,
    version character varying NOT NULL,
    incarnation character varying NOT NULL,
    session bigint NOT NULL,
    message text NOT NULL,
    address character varying DEFAULT ''::character varying NOT NULL,
    spec json DEFAULT '{}'::json NOT NULL,
    generation bigint DEFAULT '1'::bigint NOT NULL,
    revision bigint DEFAULT '0'::bigint NOT NULL,
    broker_tls boolean DEFAULT false NOT NULL
);

CREATE TABLE public.operation (
    name character varying NOT NULL,
    uid character varying NOT NULL,
    create_time bigint NOT NULL,
    update_time bigint NOT NULL,
    revision bigint NOT NULL,
    kind character varying NOT NULL,
    state character varying NOT NULL,
    target json NOT NULL,
    content json NOT NULL,
    spec json NOT NULL
);

CREATE TABLE public.outbox (
    revision bigint NOT NULL,
    "time" bigint NOT NULL,
    noun character varying NOT NULL,
    name character varying NOT NULL,
    payload bytea NOT NULL
);

CREATE TABLE public.plan (
    revision bigint NOT NULL,
    "time" bigint NOT NULL,
    changes json NOT NULL
);

CREATE TABLE public.plugin (
    name character varying NOT NULL,
    uid character varying NOT NULL,
    create_time bigint NOT NULL,
    update_time bigint NOT NULL,
    revision bigint NOT NULL,
    file_name text NOT NULL,
    kind character varying NOT NULL,
    size_bytes bigint NOT NULL,
    sha256 character varying NOT NULL,
    md5 character varying NOT NULL,
    storage character varying NOT NULL,
    content json NOT NULL,
    description text NOT NULL,
    labels json NOT NULL,
    spec json DEFAULT '{}'::json NOT NULL
);

CREATE TABLE public.plugin_chunk (
    uid character varying NOT NULL,
    number integer NOT NULL,
    "time" bigint NOT NULL,
    data bytea NOT NULL
);

CREATE TABLE public.plugin_import (
    name character varying NOT NULL,
    uid character varying NOT NULL,
    create_time bigint NOT NULL,
    update_time bigint NOT NULL,
    revision bigint NOT NULL,
    state character varying NOT NULL,
    content json NOT NULL,
    spec json NOT NULL
);

CREATE TABLE public.relay (
    id integer NOT NULL,
    holder character varying NOT NULL,
    epoch bigint NOT NULL,
    beat bigint NOT NULL,
    published bigint NOT NULL
);

CREATE SEQUENCE public.relay_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.relay_id_seq OWNED BY public.relay.id;

CREATE TABLE public.request (
    request_id character varying NOT NULL,
    method character varying NOT NULL,
    "time" bigint NOT NULL,
    answer bytea NOT NULL
);

CREATE TABLE public.sealing (
    id integer NOT NULL,
    proof text NOT NULL,
    handed_on text DEFAULT ''::text NOT NULL,
    change_time bigint DEFAULT '0'::bigint NOT NULL
);

CREATE TABLE public.secret (
    name character varying NOT NULL,
    uid character varying NOT NULL,
    create_time bigint NOT NULL,
    update_time bigint NOT NULL,
    revision bigint NOT NULL,
    spec json NOT NULL
);

CREATE TABLE public.signature (
    signature character varying NOT NULL,
    attempt character varying NOT NULL,
    "time" bigint NOT NULL
);

CREATE TABLE public.topic (
    name character varying NOT NULL,
    uid character varying NOT NULL,
    create_time bigint NOT NULL,
    update_time bigint NOT NULL,
    generation bigint NOT NULL,
    revision bigint NOT NULL,
    goal character varying NOT NULL,
    spec json NOT NULL,
    applied json NOT NULL
);

CREATE TABLE public.worker_cluster (
    name character varying NOT NULL,
    uid character varying NOT NULL,
    create_time bigint NOT NULL,
    update_time bigint NOT NULL,
    generation bigint NOT NULL,
    revision bigint NOT NULL,
    goal character varying NOT NULL,
    spec json NOT NULL,
    note text NOT NULL,
    status json NOT NULL,
    broker_cluster character varying NOT NULL,
    force boolean DEFAULT false NOT NULL,
    process_generation bigint DEFAULT '1'::bigint NOT NULL,
    restart bigint DEFAULT '0'::bigint NOT NULL,
    plugin_history json DEFAULT '{}'::json NOT NULL,
    scaling json DEFAULT '{}'::json NOT NULL
);

CREATE TABLE public.worker_configuration (
    name character varying NOT NULL,
    uid character varying NOT NULL,
    create_time bigint NOT NULL,
    update_time bigint NOT NULL,
    revision bigint NOT NULL,
    spec json NOT NULL
);

CREATE TABLE public.workload (
    name character varying NOT NULL,
    uid character varying NOT NULL,
    node character varying NOT NULL,
    generation bigint NOT NULL,
    goal character varying NOT NULL,
    spec json NOT NULL,
    status json,
    has_run boolean NOT NULL,
    tried_ports json NOT NULL,
    limits json DEFAULT '{}'::json NOT NULL,
    force boolean DEFAULT false NOT NULL,
    trial json DEFAULT '{}'::json NOT NULL
);

ALTER TABLE ONLY public.authority ALTER COLUMN id SET DEFAULT nextval('public.authority_id_seq'::regclass);

ALTER TABLE ONLY public.relay ALTER COLUMN id SET DEFAULT nextval('public.relay_id_seq'::regclass);

INSERT INTO public.alembic_version VALUES ('0024');

INSERT INTO public.authority VALUES (1, '-----BEGIN CERTIFICATE-----
MIIBhDCCASugAwIBAgIUXBfv8uvqT4JWePVbzqufBAQCGpkwCgYIKoZIzj0EAwIw
HzEdMBsGA1UEAwwUa2VlbG1hbiBpbnN0YWxsYXRpb24wHhcNMjYxMTI5MTcxMTUy
WhcNNDYxMTI0MTcxNjUyWjAfMR0wGwYDVQQDDBRrZWVsbWFuIGluc3RhbGxhdGlv
bjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMW90dcR25va79sfi1E82ijOXiyw
ZpNbLs54ApiQjMsYTciAtIFQL1/xWHrqLDvz0I1lrt225XmeUuoWnMeE3sKjRTBD
MBIGA1UdEwEB/wQIMAYBAf8CAQAwDgYDVR0PAQH/BAQDAgEGMB0GA1UdDgQWBBRi
ZMLcgzSgt64Qc5vwLQsD44hNADAKBggqhkjOPQQDAgNHADBEAiAKq0uHQ/MzVAHH
zKVcGJvPeLECQxFa56pVHEq+5SuHowIgdCOsRd7+87ScBTOW8iwjSkyP5OrbJ+i/
tbv+fR31N/Q=
', 'sealed:1:-iqXv50F1mW4Ks6s__GUJ3E33rUbEJZBICPC_L_BuFqY1xqRpP_YQ37sOCAUIzuyJeYGIqfAlNCUM-oNBK7_O-eXLYwFeHy94BzBjq7FWcN64klvDYVgcBclhTQiL6HClNOssz3J-Wc66Dy6Il7JzUNG2zBATHp9T1cI_c-YNXWzdHMT7tfvi8mvBwmo90r3U8NWYLTJyUXibZdoJdavsJMCvjTfq5TzObQfijc42ImkUFDPaPQhQ03lwyaQx1C5maK0GkixW8WQPE6okH2I9WeTyvCLFjvnlfhkKV97aJw8Hi57D3jnDTlqjam3e1u89YFe63FKnVB_uDYXOVfFEO7h4kq_Wdb2lhZP8Q--', 1795972612975327);

INSERT INTO public.broker_cluster VALUES ('far', '4f119126-9426-4013-b4cc-4f96d43ad75d', 1795972612652939, 1795972612652939, 1, 4, 'RUNNING', '{"bootstrap_servers": "far-1:9092,far-2:9092", "client_properties": {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "sealed:1:TBixr-trZ2CT7-mpowV2NE0cK7Bi2TGDGzzvg29WP9EApllrcVVCpth_uC-DxSm3ucPyEtF9fhI4_7Kf-nZz4FO4fptvDjCWAXrcl1jeKbhM3bpKDVXEoDnY2G27uv-mN-4H_VN5aNNExVgGJ63m_oe-l0KoNSNfy1AktIXGv0gEZtU="}, "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}, "credential_profile": "", "credentials": {}}', '', '{"state": "STARTING", "message": "its brokers were not asked yet", "bootstrap_servers": "far-1:9092,far-2:9092", "stuck": false, "down_since": null}', '', NULL, '{"in_sync": "", "problem": "", "refused": false}', false);
INSERT INTO public.broker_cluster VALUES ('own', '8c7fa768-fac1-4dc8-9940-a1ae2457047e', 1795972612652939, 1795972612652939, 1, 5, 'RUNNING', '{"nodes": ["n1"], "properties": {}, "controllers": 0, "port": 9092, "heap_mb": 0, "routes": {}, "metrics_port": 0, "data_folders": [], "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}, "tls": "NONE", "client_properties": {}}', '', '{"state": "STARTING", "message": "", "bootstrap_servers": "", "stuck": false, "down_since": 1795972612652939}', 'iKxnbfKMQ9-O6LhmjLNumw', NULL, '{"in_sync": "", "problem": "", "refused": false}', false);
INSERT INTO public.broker_cluster VALUES ('brokers-76e86fa7f6c34ddb', 'b7a7c6b9-f6b3-4d0f-93a2-1902ecc686c8', 1795972612652939, 1795972612652939, 1, 21, 'RUNNING', '{"bootstrap_servers": "near:9092", "client_properties": {"ssl.keystore.password": "sealed:1:Tv2GuuLU-aCy9RjCl2QSVlFfI1KQJ2Ib5bzwqxNUr22is6x3YKZx-PPHdg=="}, "annotations": {"description": "", "labels": {}, "origin": {"api": "keelman", "scope": "dedicated_connector-brokers", "key": "8c57776c11905449b3fe1c834d387fe282874d46316641c88e120d98796fd10c"}, "extra": null}, "credential_profile": "", "credentials": {}}', '', '{"state": "STARTING", "message": "its brokers were not asked yet", "bootstrap_servers": "near:9092", "stuck": false, "down_since": null}', '', NULL, '{"in_sync": "", "problem": "", "refused": false}', false);

INSERT INTO public.connector_definition VALUES ('copies', '8b8daedb-17fb-4cd3-bef1-fcafd3cd13f6', 1795972612652939, 1795972612652939, 17, 1, 'RUNNING', '{"wanted": {"worker_cluster": "demo", "connector": "copies", "config": {"connector.class": "FileStreamSink", "topics": "t", "db.password": "sealed:1:mHZF2zxV4cZRqK2rCK--EmQE397SryRnMjnvpNYAanrZWGv7t1FLxsblAvN69zg="}, "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}}, "applied": {"generation": 0, "time": null, "goal": "ABSENT", "config": {}, "uid": ""}}', '{"operation": "op-06616d759a7f8b-2f25", "applying": true, "message": ""}');

INSERT INTO public.counter VALUES ('session', 0);
INSERT INTO public.counter VALUES ('revision', 31);

INSERT INTO public.dedicated_connector VALUES ('mirror', '0bf8b0b0-1ef2-4238-afd0-c326b3fb794f', 1795972612652939, 1795972612652939, 25, 1, 'RUNNING', '{"connector": "mirror", "config": {"connector.class": "FileStreamSource", "file": "/f", "topic": "t", "db.password": "sealed:1:uawJJ3jAHmwMeh59fELsNWfUq9M-rAZZqdhwK-ule9zY6AKVcZhEL2HQarIf6Q=="}, "broker_cluster": "", "bootstrap_servers": "near:9092", "client_properties": {"ssl.keystore.password": "sealed:1:ncD9t5x2KA5-g3kDtPjpOlhuUfc8yURJQXe-VBHCr9gH18UglsdWacEF9Q=="}, "capacity": {"count": 1, "worker_limits": {"cpus": 0.0, "memory_bytes": 0}, "autoscale": null}, "plugins": [], "libraries": [], "worker_configuration": null, "properties": {}, "node_selector": {}, "topic_prefix": "keelman_connect_", "topic_suffix": "0bf8b0b0-1ef2-4238-afd0-c326b3fb794f", "engine": "KEELMAN", "log_delivery": null, "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}}', '{"broker_cluster": "brokers-76e86fa7f6c34ddb", "operation": "op-06616d759a7f8b-ac41", "failure": null, "updates": 0, "connector_uid": "", "tasks_max": 0}');

INSERT INTO public.document VALUES ('connector/team/one', '2788d790-0753-48d8-ac23-0060a0e516c6', 1795972612652939, 1795972612652939, 11, '{"content": {"b": {"secret": "sealed:1:twZl4Ox7r6cEgacDvmxyl1OHpmsPbXwYBFqVGY_CNBDhhzkro9sc91bSfzI="}, "a": [1.0, 2.5, null, true]}, "secrets": {"password": "sealed:1:ZzMnc9-lQOPE6Q7tmnLmiJwnFw1SjAzpBde-i_WtSh7Nvs41R_NAfSpzXmA4"}}');
INSERT INTO public.document VALUES ('connector/team/two', 'b16c08f3-da09-4507-8710-67950f0c06a8', 1795972612892637, 1795972612892637, 30, '{"content": {}, "secrets": {}}');

INSERT INTO public.installation VALUES (1, '558a4da4969a427fa99cd26a4b585f11');

INSERT INTO public.lease VALUES ('operations', '', 0, 0);
INSERT INTO public.lease VALUES ('autoscaling', '', 0, 0);
INSERT INTO public.lease VALUES ('leader', '', 0, 0);

INSERT INTO public.node VALUES ('n2', '51443948-3159-47cf-a222-f542270d80d9', 1795972612652939, 1795972612652939, 'ONLINE', '127.0.0.1:7000', 4, 17179869184, '0.1.0', '', 3, '', '', '{"description": "", "labels": {}, "capacity": {"cpus": 0.0, "memory_bytes": 0}, "cordoned": false, "draining": false}', 1, 3, true);
INSERT INTO public.node VALUES ('n1', '584b0036-70f1-48d7-9c38-53bb8d38a8ac', 1795972612652939, 1795972612946083, 'EXPECTED', '', 0, 0, '', '', 0, 'waits', '', '{"description": "", "labels": {"rack": "a"}, "capacity": {"cpus": 0.0, "memory_bytes": 0}, "cordoned": false, "draining": false}', 1, 31, false);

INSERT INTO public.operation VALUES ('op-06616d759a7f8b-2f25', 'b8cd0079-1cb9-46d4-8b36-39eab810e48a', 1795972612652939, 1795972612652939, 16, 'APPLY_CONNECTOR', 'PENDING', '{"noun": "connector_definition", "name": "copies", "generation": 1, "goal": "RUNNING"}', '{"steps": [{"name": "ask-workers", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "write-config", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "set-state", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "await-state", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}], "origin": null, "message": "", "error": null, "end_time": null, "back_time": null, "back_failed": false, "cancel_reason": ""}', '{"worker_cluster": "demo", "connector": "copies", "config": {"connector.class": "FileStreamSink", "topics": "t", "db.password": "sealed:1:mTzFK_DYK96Wa2YZ2PyicuDIYrKzV3d6qXzVudwb3Euu44QOSbBLGAnSZ7-zE0U="}}');
INSERT INTO public.operation VALUES ('op-06616d759a7f8b-4f69', 'a985753d-fd39-492a-b24b-2d9b9cbb6575', 1795972612652939, 1795972612652939, 19, 'APPLY_TOPIC', 'PENDING', '{"noun": "topic", "name": "orders", "generation": 1, "goal": "PRESENT"}', '{"steps": [{"name": "ask-brokers", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "create-topic", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "add-partitions", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "set-config", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "await-topic", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}], "origin": null, "message": "", "error": null, "end_time": null, "back_time": null, "back_failed": false, "cancel_reason": ""}', '{"spec": {"broker_cluster": "far", "topic": "orders", "partitions": 3, "replication_factor": 0, "config": {"retention.ms": "1000"}, "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}}, "known": false, "known_id": ""}');
INSERT INTO public.operation VALUES ('op-06616d759a7f8b-ac41', 'f1f9e658-9003-4e4f-acf6-7b30c2a6559c', 1795972612652939, 1795972612652939, 24, 'CREATE_DEDICATED', 'PENDING', '{"noun": "dedicated_connector", "name": "mirror", "generation": 1, "goal": "RUNNING"}', '{"steps": [{"name": "reach-brokers", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "start-workers", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "ask-workers", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "write-config", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "set-state", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "await-state", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}], "origin": null, "message": "", "error": null, "end_time": null, "back_time": null, "back_failed": false, "cancel_reason": ""}', '{"worker_cluster": "mirror", "connector": "mirror", "config": {"connector.class": "FileStreamSource", "file": "/f", "topic": "t", "db.password": "sealed:1:MLVXpCFTr1PAn0T5vMIzyEA0IrVx5PmMkFv5qsImEaS36qmDT8EHNglJea9xOg=="}, "uid_of_dedicated": "0bf8b0b0-1ef2-4238-afd0-c326b3fb794f"}');
INSERT INTO public.operation VALUES ('op-06616d759a7f8b-68b3', '63ac646e-712a-4429-ba7c-15b4d26f3290', 1795972612652939, 1795972612652939, 27, 'IMPORT_PLUGIN', 'PENDING', '{"noun": "plugin_import", "name": "copied", "generation": 0, "goal": "ACTIVE"}', '{"steps": [{"name": "fetch", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}], "origin": null, "message": "", "error": null, "end_time": null, "back_time": null, "back_failed": false, "cancel_reason": ""}', '{}');

INSERT INTO public.outbox VALUES (1, 1795972612652939, 'node', 'n1', '\x0801120c0884bcb1d80610f89dacb702180122026e312a5c0a026e31122435383462303033362d373066312d343864372d396333382d3533626238643338613861631a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022a020804320b12090a047261636b1201613801420131');
INSERT INTO public.outbox VALUES (2, 1795972612652939, 'node', 'n2', '\x0802120c0884bcb1d80610f89dacb702180122026e322a510a026e32122435313434333934382d333135392d343763662d613232322d6635343232373064383064391a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022a02080432003801420132');
INSERT INTO public.outbox VALUES (3, 1795972612652939, 'node', 'n2', '\x0803120c0884bcb1d80610f89dacb702180222026e322a7b0a026e32122435313434333934382d333135392d343763662d613232322d6635343232373064383064391a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022a2c0801120e3132372e302e302e313a3730303018042080808080402a05302e312e3042093132372e302e302e3132003801420133');
INSERT INTO public.outbox VALUES (4, 1795972612652939, 'broker_cluster', 'far', '\x0804120c0884bcb1d80610f89dacb7021801220366617232f8010a03666172122434663131393132362d393432362d343031332d623463632d3466393664343361643735641a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb70228013201343a6f126d0a156661722d313a393039322c6661722d323a39303932121c0a107361736c2e6a6161732e636f6e66696712085b68696464656e5d12170a0e7361736c2e6d656368616e69736d1205504c41494e121d0a1173656375726974792e70726f746f636f6c12085341534c5f53534c42390801121e6974732062726f6b6572732077657265206e6f742061736b6564207965741a156661722d313a393039322c6661722d323a39303932');
INSERT INTO public.outbox VALUES (5, 1795972612652939, 'broker_cluster', 'own', '\x0805120c0884bcb1d80610f89dacb702180122036f776e32750a036f776e122438633766613736382d666163312d346463382d393934302d6131616532343537303437651a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb70228013201353a0b0a090a026e312084474801421a08012216694b786e62664b4d51392d4f364c686d6a4c4e756d77');
INSERT INTO public.outbox VALUES (6, 1795972612652939, 'worker_cluster', 'demo', '\x0806120c0884bcb1d80610f89dacb7021801220464656d6f3ace010a0464656d6f122433653938323138622d326330382d343362632d386531382d3736666562396637333030301a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb70228013201363a6b0a036661721801221c0a1073736c2e6b65792e70617373776f726412085b68696464656e5d2a056669727374320c0a047465616d1204626c756582012b0a140a0474616773120c2a0a0a080a016112031a01620a130a05746f6b656e120a1a085b68696464656e5d980101421208051a0c6b65656c6d616e2d64656d6f2801');
INSERT INTO public.outbox VALUES (7, 1795972612652939, 'worker_cluster', 'wide', '\x0807120c0884bcb1d80610f89dacb70218012204776964653a8e010a0477696465122462613634316239652d626464372d343638652d626330392d3538646139666536343763661a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb70228013201373a2b0a036f776e980101aa0120080110031900000000000034402100000000000054404202080548035202083c421208051a0c6b65656c6d616e2d776964652801');
INSERT INTO public.outbox VALUES (8, 1795972612652939, 'worker_cluster', 'demo', '\x0808120c0884bcb1d80610f89dacb7021802220464656d6f3ace010a0464656d6f122433653938323138622d326330382d343362632d386531382d3736666562396637333030301a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb70228023201383a6b0a036661721801221c0a1073736c2e6b65792e70617373776f726412085b68696464656e5d2a056669727374320c0a047465616d1204626c756582012b0a140a0474616773120c2a0a0a080a016112031a01620a130a05746f6b656e120a1a085b68696464656e5d980101421208011a0c6b65656c6d616e2d64656d6f2801');
INSERT INTO public.outbox VALUES (9, 1795972612652939, 'workload', 'worker/demo/0', '\x0809120c0884bcb1d80610f89dacb7021801220d776f726b65722f64656d6f2f3042a6010a0d776f726b65722f64656d6f2f301204336630631a026e3220022801326d1a6b0a0464656d6f12093132372e302e302e3118933f22180a0867726f75702e6964120c6b65656c6d616e2d64656d6f221c0a1073736c2e6b65792e70617373776f726412085b68696464656e5d2a0e3132372e302e302e313a373433307a0d0a0168120831302e302e302e313a1808041002184d220608c0d39cd7064a0608c0d39cd7065005');
INSERT INTO public.outbox VALUES (10, 1795972612652939, 'workload', 'spark/n2', '\x080a120c0884bcb1d80610f89dacb70218012208737061726b2f6e3242340a08737061726b2f6e321204336630641a026e3220012802321a12180a093132372e302e302e3110863a1a086c6f63616c5b325d');
INSERT INTO public.outbox VALUES (11, 1795972612652939, 'document', 'connector/team/one', '\x080b120c0884bcb1d80610f89dacb70218012212636f6e6e6563746f722f7465616d2f6f6e656aba010a09636f6e6e6563746f7212047465616d1a036f6e65222432373838643739302d303735332d343864382d616332332d3030363061306535313663362a0c0884bcb1d80610f89dacb702320c0884bcb1d80610f89dacb7023a02313142460a250a01611220321e0a0911000000000000f03f0a091100000000000004400a0208000a0220010a1d0a016212182a160a140a06736563726574120a1a085b68696464656e5d4a140a0870617373776f726412085b68696464656e5d');
INSERT INTO public.outbox VALUES (12, 1795972612652939, 'secret', 'vault', '\x080c120c0884bcb1d80610f89dacb702180122057661756c7482016b0a057661756c74122433313032326532612d366664642d343162352d613663322d3932663966636162366236651a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022a023132320c6f6620746865207661756c74420870617373776f7264420475736572');
INSERT INTO public.outbox VALUES (13, 1795972612652939, 'worker_configuration', 'plain', '\x080d120c0884bcb1d80610f89dacb70218012205706c61696e7a710a05706c61696e122463386161663739612d316338632d346163662d383734622d3336373662363539373932351a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022a0231333207737472696e677352190801120c0884bcb1d80610f89dacb7021a07737472696e6773');
INSERT INTO public.outbox VALUES (14, 1795972612652939, 'worker_configuration', 'plain', '\x080e120c0884bcb1d80610f89dacb70218022205706c61696e7a83010a05706c61696e122463386161663739612d316338632d346163662d383734622d3336373662363539373932351a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022a0231343207737472696e677352190801120c0884bcb1d80610f89dacb7021a07737472696e677352100802120c0884bcb1d80610f89dacb702');
INSERT INTO public.outbox VALUES (15, 1795972612652939, 'connector_definition', 'copies', '\x080f120c0884bcb1d80610f89dacb70218012206636f7069657352af010a06636f70696573122438623864616564622d313766622d346364332d626566312d6663616664336364313366361a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022801320231353a570a0464656d6f1206636f706965731a210a0f636f6e6e6563746f722e636c617373120e46696c6553747265616d53696e6b1a170a0b64622e70617373776f726412085b68696464656e5d1a0b0a06746f7069637312017440014a021801');
INSERT INTO public.outbox VALUES (16, 1795972612652939, 'operation', 'op-06616d759a7f8b-2f25', '\x0810120c0884bcb1d80610f89dacb702180122166f702d30363631366437353961376638622d326632355ad0010a166f702d30363631366437353961376638622d32663235122462386364303037392d316362392d343664342d386233362d3339656162383130653438611a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022a02313630013a290a14636f6e6e6563746f725f646566696e6974696f6e1206636f706965731801220752554e4e494e4748015a0f0a0b61736b2d776f726b65727310015a100a0c77726974652d636f6e66696710015a0d0a097365742d737461746510015a0f0a0b61776169742d73746174651001');
INSERT INTO public.outbox VALUES (17, 1795972612652939, 'connector_definition', 'copies', '\x0811120c0884bcb1d80610f89dacb70218022206636f7069657352c9010a06636f70696573122438623864616564622d313766622d346364332d626566312d6663616664336364313366361a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022801320231373a570a0464656d6f1206636f706965731a210a0f636f6e6e6563746f722e636c617373120e46696c6553747265616d53696e6b1a170a0b64622e70617373776f726412085b68696464656e5d1a0b0a06746f7069637312017440044a1c180122166f702d30363631366437353961376638622d326632352801');
INSERT INTO public.outbox VALUES (18, 1795972612652939, 'topic', 'orders', '\x0812120c0884bcb1d80610f89dacb702180122066f7264657273627d0a066f7264657273122434663636313939392d356466382d343863632d623863332d3762346665383036303037361a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022801320231383a250a0366617212066f726465727318032a140a0c726574656e74696f6e2e6d7312043130303040014a020801');
INSERT INTO public.outbox VALUES (19, 1795972612652939, 'operation', 'op-06616d759a7f8b-4f69', '\x0813120c0884bcb1d80610f89dacb702180122166f702d30363631366437353961376638622d346636395ad6010a166f702d30363631366437353961376638622d34663639122461393835373533642d666433392d343932612d623234622d3264396239636262363537351a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022a02313930023a1a0a05746f70696312066f72646572731801220750524553454e5448015a0f0a0b61736b2d62726f6b65727310015a100a0c6372656174652d746f70696310015a120a0e6164642d706172746974696f6e7310015a0e0a0a7365742d636f6e66696710015a0f0a0b61776169742d746f7069631001');
INSERT INTO public.outbox VALUES (20, 1795972612652939, 'topic', 'orders', '\x0814120c0884bcb1d80610f89dacb702180222066f72646572736295010a066f7264657273122434663636313939392d356466382d343863632d623863332d3762346665383036303037361a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022801320232303a250a0366617212066f726465727318032a140a0c726574656e74696f6e2e6d7312043130303040024a1a080222166f702d30363631366437353961376638622d34663639');
INSERT INTO public.outbox VALUES (21, 1795972612652939, 'broker_cluster', 'brokers-76e86fa7f6c34ddb', '\x0815120c0884bcb1d80610f89dacb7021801221862726f6b6572732d3736653836666137663663333464646232ae020a1862726f6b6572732d37366538366661376636633334646462122462376137633662392d663662332d346430662d393361322d3139303265636336383663381a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022801320232313a9a01122e0a096e6561723a3930393212210a1573736c2e6b657973746f72652e70617373776f726412085b68696464656e5d2a680a076b65656c6d616e121b6465646963617465645f636f6e6e6563746f722d62726f6b6572731a4038633537373736633131393035343439623366653163383334643338376665323832383734643436333136363431633838653132306439383739366664313063422d0801121e6974732062726f6b6572732077657265206e6f742061736b6564207965741a096e6561723a39303932');
INSERT INTO public.outbox VALUES (22, 1795972612652939, 'worker_cluster', 'mirror', '\x0816120c0884bcb1d80610f89dacb702180122066d6972726f723ab4050a066d6972726f72122432626365343730612d633062302d346461362d613532382d3666343536383465663737361a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022801320232323aa6040a1862726f6b6572732d373665383666613766366333346464621801225b0a14636f6e6669672e73746f726167652e746f70696312436b65656c6d616e5f636f6e6e6563745f636f6e666967735f6d6972726f725f30626638623062302d316566322d343233382d616664302d633332366233666237393466223f0a0867726f75702e696412336b65656c6d616e2d6d6972726f722d30626638623062302d316566322d343233382d616664302d63333236623366623739346622410a0d6b65792e636f6e76657274657212306f72672e6170616368652e6b61666b612e636f6e6e6563742e73746f726167652e537472696e67436f6e766572746572225b0a146f66667365742e73746f726167652e746f70696312436b65656c6d616e5f636f6e6e6563745f6f6666736574735f6d6972726f725f30626638623062302d316566322d343233382d616664302d633332366233666237393466225a0a147374617475732e73746f726167652e746f70696312426b65656c6d616e5f636f6e6e6563745f7374617475735f6d6972726f725f30626638623062302d316566322d343233382d616664302d63333236623366623739346622430a0f76616c75652e636f6e76657274657212306f72672e6170616368652e6b61666b612e636f6e6e6563742e73746f726167652e537472696e67436f6e7665727465727a260a076b65656c6d616e12136465646963617465645f636f6e6e6563746f721a066d6972726f72980101423908051a336b65656c6d616e2d6d6972726f722d30626638623062302d316566322d343233382d616664302d6333323662336662373934662801');
INSERT INTO public.outbox VALUES (23, 1795972612652939, 'worker_cluster', 'mirror', '\x0817120c0884bcb1d80610f89dacb702180222066d6972726f723ab4050a066d6972726f72122432626365343730612d633062302d346461362d613532382d3666343536383465663737361a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022802320232333aa6040a1862726f6b6572732d373665383666613766366333346464621801225b0a14636f6e6669672e73746f726167652e746f70696312436b65656c6d616e5f636f6e6e6563745f636f6e666967735f6d6972726f725f30626638623062302d316566322d343233382d616664302d633332366233666237393466223f0a0867726f75702e696412336b65656c6d616e2d6d6972726f722d30626638623062302d316566322d343233382d616664302d63333236623366623739346622410a0d6b65792e636f6e76657274657212306f72672e6170616368652e6b61666b612e636f6e6e6563742e73746f726167652e537472696e67436f6e766572746572225b0a146f66667365742e73746f726167652e746f70696312436b65656c6d616e5f636f6e6e6563745f6f6666736574735f6d6972726f725f30626638623062302d316566322d343233382d616664302d633332366233666237393466225a0a147374617475732e73746f726167652e746f70696312426b65656c6d616e5f636f6e6e6563745f7374617475735f6d6972726f725f30626638623062302d316566322d343233382d616664302d63333236623366623739346622430a0f76616c75652e636f6e76657274657212306f72672e6170616368652e6b61666b612e636f6e6e6563742e73746f726167652e537472696e67436f6e7665727465727a260a076b65656c6d616e12136465646963617465645f636f6e6e6563746f721a066d6972726f72980101423908011a336b65656c6d616e2d6d6972726f722d30626638623062302d316566322d343233382d616664302d6333323662336662373934662801');
INSERT INTO public.outbox VALUES (24, 1795972612652939, 'operation', 'op-06616d759a7f8b-ac41', '\x0818120c0884bcb1d80610f89dacb702180122166f702d30363631366437353961376638622d616334315af5010a166f702d30363631366437353961376638622d61633431122466316639653635382d393030332d346534662d616366362d3762333063326136353539631a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022a02323430033a280a136465646963617465645f636f6e6e6563746f7212066d6972726f721801220752554e4e494e4748015a110a0d72656163682d62726f6b65727310015a110a0d73746172742d776f726b65727310015a0f0a0b61736b2d776f726b65727310015a100a0c77726974652d636f6e66696710015a0d0a097365742d737461746510015a0f0a0b61776169742d73746174651001');
INSERT INTO public.outbox VALUES (25, 1795972612652939, 'dedicated_connector', 'mirror', '\x0819120c0884bcb1d80610f89dacb702180122066d6972726f7272ef020a066d6972726f72122430626638623062302d316566322d343233382d616664302d6333323662336662373934661a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022801320232353ace010a066d6972726f7212230a0f636f6e6e6563746f722e636c617373121046696c6553747265616d536f7572636512170a0b64622e70617373776f726412085b68696464656e5d120a0a0466696c6512022f66120a0a05746f706963120174222e0a096e6561723a3930393212210a1573736c2e6b657973746f72652e70617373776f726412085b68696464656e5d2a02080172106b65656c6d616e5f636f6e6e6563745f88010192012430626638623062302d316566322d343233382d616664302d63333236623366623739346640034a4a22066d6972726f722a1862726f6b6572732d3736653836666137663663333464646232166f702d30363631366437353961376638622d61633431520e4b3633323434365a5356594d5251');
INSERT INTO public.outbox VALUES (26, 1795972612652939, 'plugin', 'acme/1.2', '\x081a120c0884bcb1d80610f89dacb7021801220861636d652f312e324a9d020a0461636d651203312e321a0435613165220c0884bcb1d80610f89dacb7022a0c0884bcb1d80610f89dacb702320232363a0777656174686572420c0a047465616d1204626c75654a0c61636d652d312e322e6a61725002580a6240303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030306a20303030303030303030303030303030303030303030303030303030303030303072200a0d636f6d2e61636d652e53696e6b120473696e6b1a03312e3222046a6176617a126120636c617373206973206d697373696e678a010d0a056f686172611201731a016b9201160a140a0474616773120c2a0a0a080a016112031a0162');
INSERT INTO public.outbox VALUES (27, 1795972612652939, 'operation', 'op-06616d759a7f8b-68b3', '\x081b120c0884bcb1d80610f89dacb702180122166f702d30363631366437353961376638622d363862335a8e010a166f702d30363631366437353961376638622d36386233122436336163363436652d373132612d343432392d626137632d3135623464323666333239301a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022a023237300a3a1f0a0d706c7567696e5f696d706f72741206636f70696564220641435449564548015a090a0566657463681001');
INSERT INTO public.outbox VALUES (28, 1795972612652939, 'plugin_import', 'copied', '\x081c120c0884bcb1d80610f89dacb70218012206636f706965648a017b0a06636f70696564122432303466376465662d613161642d346136332d383536622d6231633933393966653764331a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022a02323852100a07706c7567696e731205612e6a617258018a01166f702d30363631366437353961376638622d36386233');
INSERT INTO public.outbox VALUES (29, 1795972612652939, 'worker_cluster', 'demo', '\x081d120c0884bcb1d80610f89dacb7021802220464656d6f3a8d020a0464656d6f122433653938323138622d326330382d343362632d386531382d3736666562396637333030301a0c0884bcb1d80610f89dacb702220c0884bcb1d80610f89dacb7022802320232393a6b0a036661721801221c0a1073736c2e6b65792e70617373776f726412085b68696464656e5d2a056669727374320c0a047465616d1204626c756582012b0a140a0474616773120c2a0a0a080a016112031a01620a130a05746f6b656e120a1a085b68696464656e5d98010142500801121d74686520537061726b2073657276696365206973207374617274696e671a0c6b65656c6d616e2d64656d6f200128013215687474703a2f2f3132372e302e302e313a38303833520408011801');
INSERT INTO public.outbox VALUES (30, 1795972612892637, 'document', 'connector/team/two', '\x081e120c0884bcb1d80610c89ed2a90318012212636f6e6e6563746f722f7465616d2f74776f6a5c0a09636f6e6e6563746f7212047465616d1a0374776f222462313663303866332d646130392d343530372d383731302d3637393530663063303661382a0c0884bcb1d80610c89ed2a903320c0884bcb1d80610c89ed2a9033a023330');
INSERT INTO public.outbox VALUES (31, 1795972612946083, 'node', 'n1', '\x081f120c0884bcb1d80610b8a990c303180222026e312a640a026e31122435383462303033362d373066312d343864372d396333382d3533626238643338613861631a0c0884bcb1d80610f89dacb702220c0884bcb1d80610b8a990c3032a09080432057761697473320b12090a047261636b120161380142023331');

INSERT INTO public.plan VALUES (28, 1795972612652939, '[{"workload": "worker/demo/0", "action": "PLACE", "node": "n2", "generation": 2, "reason": "no worker is there", "from_node": ""}]');

INSERT INTO public.plugin VALUES ('acme/1.2', '5a1e', 1795972612652939, 1795972612652939, 26, 'acme-1.2.jar', 'JAR', 10, '0000000000000000000000000000000000000000000000000000000000000000', '00000000000000000000000000000000', 'database', '{"classes": [{"class_name": "com.acme.Sink", "type": "sink", "version": "1.2", "language": "java", "path": ""}], "problems": ["a class is missing"]}', 'weather', '{"team": "blue"}', '{"origin": {"api": "ohara", "scope": "s", "key": "k"}, "extra": {"tags": {"a": "b"}}}');

INSERT INTO public.plugin_import VALUES ('copied', '204f7def-a1ad-4a63-856b-b1c9399fe7d3', 1795972612652939, 1795972612652939, 28, 'CREATING', '{"source": {"bucket": "plugins", "key": "a.jar", "version": "", "content": "UNSPECIFIED"}, "code": "", "message": "", "operation": "op-06616d759a7f8b-68b3", "size_bytes": 0, "sha256": "", "md5": ""}', '{"description": "", "labels": {}, "origin": null, "extra": null}');

INSERT INTO public.relay VALUES (1, '', 0, 0, 0);

INSERT INTO public.request VALUES ('first-request', 'PutDocument', 1795972612892637, '\x0a5c0a09636f6e6e6563746f7212047465616d1a0374776f222462313663303866332d646130392d343530372d383731302d3637393530663063303661382a0c0884bcb1d80610c89ed2a903320c0884bcb1d80610c89ed2a9033a023330');

INSERT INTO public.sealing VALUES (1, 'sealed:1:py9Ja6fYLxzZPE7MhGCC7ClA55b1srpyR63vg9WyYyfHKTHy6u-k27VjHCMgjkYQdnzy7scaQMx6_mLd3zoQTvx4nuQZ', '', 0);

INSERT INTO public.secret VALUES ('vault', '31022e2a-6fdd-41b5-a6c2-92f9fcab6b6e', 1795972612652939, 1795972612652939, 12, '{"annotations": {"description": "of the vault", "labels": {}, "origin": null, "extra": null}, "secrets": {"password": "sealed:1:l3-Q5hEaaCfBJQSqN1Ebnv1Iajw3utMz6X7CJ07l89kLlrVFe0EMUyopiA==", "user": "sealed:1:aum4FI5MknnKIh1NO9Xmy2Z3RrPhHjq-x8kAZGic"}}');

INSERT INTO public.topic VALUES ('orders', '4f661999-5df8-48cc-b8c3-7b4fe8060076', 1795972612652939, 1795972612652939, 1, 20, 'PRESENT', '{"broker_cluster": "far", "topic": "orders", "partitions": 3, "replication_factor": 0, "config": {"retention.ms": "1000"}, "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}}', '{"operation": "op-06616d759a7f8b-4f69", "ended": false, "problem": "", "failed": false, "generation": 0, "goal": "ABSENT", "topic_id": ""}');

INSERT INTO public.worker_cluster VALUES ('demo', '3e98218b-2c08-43bc-8e18-76feb9f73000', 1795972612652939, 1795972612652939, 2, 29, 'RUNNING', '{"broker_cluster": "far", "nodes": [], "count": 1, "properties": {"ssl.key.password": "sealed:1:bgC5_gaUf21yKyx2UJZ255S29C8VhH00e0OPsAlpSsoBP8PbFGbmzw=="}, "node_selector": {}, "port": 0, "metrics_port": 0, "admin_port": 0, "reserved_ports": [], "https": false, "shared_offset_topic": false, "limits": {"cpus": 0.0, "memory_bytes": 0}, "annotations": {"description": "first", "labels": {"team": "blue"}, "origin": null, "extra": {"tags": {"a": "b"}, "token": "sealed:1:WyArgKz39lvtAoGrh8X5DWIBBLeOMVpZ-_5qzGz6SfTjWSqDMSyw237q"}}, "plugins": [], "libraries": [], "engine": "KEELMAN", "routes": {}, "log_delivery": null, "autoscale": null}', '', '{"state": "STARTING", "message": "the Spark service is starting", "ready_workers": 1, "rest_urls": ["http://127.0.0.1:8083"], "rollout": {"state": "ROLLING", "updated_workers": 0, "workers": 1, "worker": "", "message": ""}, "stuck": false, "leaving_workers": 0, "down_since": null}', 'far', false, 1, 0, '{"former": null, "went_back": null}', '{"workers": 0, "former_workers": 0, "time": null, "reason": ""}');
INSERT INTO public.worker_cluster VALUES ('wide', 'ba641b9e-bdd7-468e-bc09-58da9fe647cf', 1795972612652939, 1795972612652939, 1, 7, 'STOPPED', '{"broker_cluster": "own", "nodes": [], "count": 0, "properties": {}, "node_selector": {}, "port": 0, "metrics_port": 0, "admin_port": 0, "reserved_ports": [], "https": false, "shared_offset_topic": false, "limits": {"cpus": 0.0, "memory_bytes": 0}, "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}, "plugins": [], "libraries": [], "engine": "KEELMAN", "routes": {}, "log_delivery": null, "autoscale": {"min_workers": 1, "max_workers": 3, "scale_in_cpu_percent": 20.0, "scale_out_cpu_percent": 80.0, "scale_out_lag_records": 0, "tasks_per_worker": 0, "max_tasks": 0, "tasks_up_to_partitions": false, "sample_seconds": 5.0, "samples": 3, "cool_down_seconds": 60.0}}', '', '{"state": "STOPPED", "message": "", "ready_workers": 0, "rest_urls": [], "rollout": null, "stuck": false, "leaving_workers": 0, "down_since": null}', 'own', false, 1, 0, '{"former": null, "went_back": null}', '{"workers": 0, "former_workers": 0, "time": null, "reason": ""}');
INSERT INTO public.worker_cluster VALUES ('mirror', '2bce470a-c0b0-4da6-a528-6f45684ef776', 1795972612652939, 1795972612652939, 2, 23, 'RUNNING', '{"broker_cluster": "brokers-76e86fa7f6c34ddb", "nodes": [], "count": 1, "properties": {"config.storage.topic": "keelman_connect_configs_mirror_0bf8b0b0-1ef2-4238-afd0-c326b3fb794f", "offset.storage.topic": "keelman_connect_offsets_mirror_0bf8b0b0-1ef2-4238-afd0-c326b3fb794f", "status.storage.topic": "keelman_connect_status_mirror_0bf8b0b0-1ef2-4238-afd0-c326b3fb794f", "key.converter": "org.apache.kafka.connect.storage.StringConverter", "value.converter": "org.apache.kafka.connect.storage.StringConverter", "group.id": "keelman-mirror-0bf8b0b0-1ef2-4238-afd0-c326b3fb794f"}, "node_selector": {}, "port": 0, "metrics_port": 0, "admin_port": 0, "reserved_ports": [], "https": false, "shared_offset_topic": false, "limits": {"cpus": 0.0, "memory_bytes": 0}, "annotations": {"description": "", "labels": {}, "origin": {"api": "keelman", "scope": "dedicated_connector", "key": "mirror"}, "extra": null}, "plugins": [], "libraries": [], "engine": "KEELMAN", "routes": {}, "log_delivery": null, "autoscale": null}', '', '{"state": "STARTING", "message": "", "ready_workers": 0, "rest_urls": [], "rollout": null, "stuck": false, "leaving_workers": 0, "down_since": 1795972612652939}', 'brokers-76e86fa7f6c34ddb', false, 1, 0, '{"former": null, "went_back": null}', '{"workers": 0, "former_workers": 0, "time": null, "reason": ""}');

INSERT INTO public.worker_configuration VALUES ('plain', 'c8aaf79a-1c8c-4acf-874b-3676b6597925', 1795972612652939, 1795972612652939, 14, '{"annotations": {"description": "strings", "labels": {}, "origin": null, "extra": null}, "revisions": [{"revision": 1, "create_time": 1795972612652939, "description": "strings"}, {"revision": 2, "create_time": 1795972612652939, "description": ""}], "secrets": {"1": "sealed:1:jcnxoE8OlEWDYbjb9rwZIpcu16-HCrGNJe8alEtPu-fwQKNMVYzyhYVGQzoWxGU1XejqZ_r86wmEry_V6oLDgOe7Ku6-0AJbkfwU8NiZH5KpXEaWbvOehp8GxJPmLhMMwpZK3f53TTha_Qwq5urJrQ0RUaq6jYTUIetyYefBdtoBXVKqzduZx13ORr9CXfKM4WlqryPCBjgSiwzssjKMQjWhPc6u8XvD4IV5PmV5EXzd5NQAIjfOCLmUZUTxrqt7Ly9EB9aizDN0", "2": "sealed:1:3-cGdtleA2m_PbIP2BZaSjuMnRi4xmI5LF_0LjruVK_S_727J_qX2zSdiD0Gg9xC5QsvcAGM18akQw4x0y0ik4ukqwyLjDnNUdCtzy2bwiz5loFsDFVo06DJKMjc7AiCjK-6o2pY8pbnizF0Tb_0oUbbfoPMz2YuxgWZkof9aGOSAGoinUAtcZwty1nqotQVjqGEtN2zvZJxFhFIQzNo-1bMQkVCa8RCgrYcJGWTeIRBB29D2XYFqIo7H3h6oWoI5w=="}}');

INSERT INTO public.workload VALUES ('worker/demo/0', '3f0c', 'n2', 2, 'RUNNING', '{"worker_cluster": "demo", "host": "127.0.0.1", "port": 8083, "properties": {"ssl.key.password": "sealed:1:WuzSIZNxEBiKBXOOYPaAOViSFV0UVAibiuHhax3yGCkKebc-0GU_Nw==", "group.id": "keelman-demo"}, "spark_address": "127.0.0.1:7430", "reports_bootstrap_servers": "", "reports_client_properties": {}, "metrics_port": 0, "reserved_ports": [], "admin_port": 0, "https": false, "restart": 0, "plugins": [], "libraries": [], "kafka_connect": false, "routes": {"h": "10.0.0.1"}, "log_targets": {"name": "", "file_group": "", "bucket": "", "prefix": "", "buckets": "", "region": "", "topic": ""}}', '{"state": "RUNNING", "generation": 2, "pid": 77, "start_time": 1793534400000000, "restarts": 0, "exit_code": null, "message": "", "reason": "", "observe_time": 1793534400000000, "memory_bytes": 5, "limited_by": "", "log_problems": []}', true, '[8084]', '{"cpus": 0.0, "memory_bytes": 0}', false, '{"cluster_generation": 0, "restarts": 0, "is_open": false}');
INSERT INTO public.workload VALUES ('spark/n2', '3f0d', 'n2', 1, 'STOPPED', '{"host": "127.0.0.1", "port": 7430, "master": "local[2]", "reports_bootstrap_servers": "", "reports_client_properties": {}}', NULL, false, '[]', '{"cpus": 0.0, "memory_bytes": 0}', false, '{"cluster_generation": 0, "restarts": 0, "is_open": false}');

SELECT pg_catalog.setval('public.authority_id_seq', 1, false);

SELECT pg_catalog.setval('public.relay_id_seq', 1, false);

ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY public.authority
    ADD CONSTRAINT authority_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.broker_cluster
    ADD CONSTRAINT broker_cluster_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.certificate
    ADD CONSTRAINT certificate_pkey PRIMARY KEY (holder);

ALTER TABLE ONLY public.connector_definition
    ADD CONSTRAINT connector_definition_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.counter
    ADD CONSTRAINT counter_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.dedicated_connector
    ADD CONSTRAINT dedicated_connector_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.document
    ADD CONSTRAINT document_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.installation
    ADD CONSTRAINT installation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.join_token
    ADD CONSTRAINT join_token_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.operation
    ADD CONSTRAINT operation_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (revision);

ALTER TABLE ONLY public.plan
    ADD CONSTRAINT plan_pkey PRIMARY KEY (revision);

ALTER TABLE ONLY public.plugin_chunk
    ADD CONSTRAINT plugin_chunk_pkey PRIMARY KEY (uid, number);

ALTER TABLE ONLY public.plugin_import
    ADD CONSTRAINT plugin_import_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.plugin
    ADD CONSTRAINT plugin_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.relay
    ADD CONSTRAINT relay_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.request
    ADD CONSTRAINT request_pkey PRIMARY KEY (request_id);

ALTER TABLE ONLY public.sealing
    ADD CONSTRAINT sealing_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.secret
    ADD CONSTRAINT secret_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.signature
    ADD CONSTRAINT signature_pkey PRIMARY KEY (signature, attempt);

ALTER TABLE ONLY public.topic
    ADD CONSTRAINT topic_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.worker_cluster
    ADD CONSTRAINT worker_cluster_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.worker_configuration
    ADD CONSTRAINT worker_configuration_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.workload
    ADD CONSTRAINT workload_pkey PRIMARY KEY (name);

CREATE INDEX ix_request_time ON public.request USING btree ("time");

CREATE INDEX ix_signature_time ON public.signature USING btree ("time");

CREATE INDEX ix_worker_cluster_broker_cluster ON public.worker_cluster USING btree (broker_cluster);

CREATE INDEX ix_workload_node ON public.workload USING btree (node);

ALTER TABLE ONLY public.worker_cluster
    ADD CONSTRAINT worker_cluster_broker_cluster_fkey FOREIGN KEY (broker_cluster) REFERENCES public.broker_cluster(name);

ALTER TABLE ONLY public.workload
    ADD CONSTRAINT workload_node_fkey FOREIGN KEY (node) REFERENCES public.node(name);

