"""The settings of zookeepers."""

from __future__ import annotations

from keelman.gateway.ohara.definitions import common
from keelman.gateway.ohara.wire.setting_def import Necessary, SettingDef, Type, table

DATA_DIR, PEER_PORT, ELECTION_PORT = "dataDir", "peerPort", "electionPort"
PORTS = ("clientPort", "jmxPort", PEER_PORT, ELECTION_PORT)
PERFORMANCE, PUBLIC = "performance", "public"

ZOOKEEPER = table(
    common.GROUP,
    common.NAME,
    common.image_name("zookeeper"),
    common.NODE_NAMES,
    common.ROUTES,
    common.TAGS,
    SettingDef("tickTime", Type.POSITIVE_INT, "milliseconds of a tick", group=PERFORMANCE, default=2000),
    SettingDef("initLimit", Type.POSITIVE_INT, "ticks that a server may take to join", group=PERFORMANCE, default=10),
    SettingDef("syncLimit", Type.POSITIVE_INT, "ticks that a server may be behind", group=PERFORMANCE, default=5),
    SettingDef(
        "zookeeper.connection.timeout.ms", Type.DURATION, "how long a connection may take", group=PERFORMANCE,
        default="10000 milliseconds",
    ),
    SettingDef(DATA_DIR, Type.OBJECT_KEY, "the volume of the servers' data", reference="VOLUME"),
    common.XMS,
    common.XMX,
    SettingDef(
        PEER_PORT, Type.BINDING_PORT, "the port of the servers among themselves", group=PUBLIC,
        necessary=Necessary.RANDOM_DEFAULT,
    ),
    SettingDef(
        ELECTION_PORT, Type.BINDING_PORT, "the port of the servers' elections", group=PUBLIC,
        necessary=Necessary.RANDOM_DEFAULT,
    ),
    common.CLIENT_PORT,
    common.JMX_PORT,
)  # fmt: skip
