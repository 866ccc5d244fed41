"""The members of each request, as data: of the service's model of 2021-09-14, with rules that clients do not check."""

from __future__ import annotations

from keelman.gateway.managed_connect.member_shapes import Block, Entries, Flag, Items, Kind, TextShape, WholeShape

VERSION = "kafkaconnect 2021-09-14, as in botocore 1.44.5"
"""The served model."""
MCU_COUNTS = (1, 2, 4, 8)
MAX_WORKERS = 1000
MAX_RESULTS = 100
POLICY = Block({"cpuUtilizationPercentage": WholeShape(1, 100)}, ("cpuUtilizationPercentage",))
PROVISIONED = Block(
    {"workerCount": WholeShape(1, MAX_WORKERS), "mcuCount": WholeShape(values=MCU_COUNTS)}, ("workerCount", "mcuCount")
)
SCALED_BY: dict[str, Kind] = {
    "minWorkerCount": WholeShape(1, MAX_WORKERS),
    "maxWorkerCount": WholeShape(1, MAX_WORKERS),
    "mcuCount": WholeShape(values=MCU_COUNTS),
    "scaleInPolicy": POLICY,
    "scaleOutPolicy": POLICY,
    "maxAutoscalingTaskCount": WholeShape(1, 100_000),
}
SCALED_NEEDS = ("minWorkerCount", "maxWorkerCount", "mcuCount")
KINDS_OF_CAPACITY = ("provisionedCapacity", "autoScaling")
CAPACITY = Block(
    {"provisionedCapacity": PROVISIONED, "autoScaling": Block(SCALED_BY, SCALED_NEEDS)}, one_of=KINDS_OF_CAPACITY
)
CAPACITY_UPDATE = Block(
    {
        "provisionedCapacity": PROVISIONED,
        "autoScaling": Block(SCALED_BY, (*SCALED_NEEDS, "scaleInPolicy", "scaleOutPolicy")),
    },
    one_of=KINDS_OF_CAPACITY,
)
REVISION = WholeShape(1, (1 << 63) - 1)
ARN = TextShape(1, 2048)
PLUGINS = Items(
    Block(
        {"customPlugin": Block({"customPluginArn": ARN, "revision": REVISION}, ("customPluginArn", "revision"))},
        ("customPlugin",),
    ),
    1, 1,
)  # fmt: skip
WORKER_CONFIGURATION = Block(
    {"workerConfigurationArn": ARN, "revision": REVISION}, ("workerConfigurationArn", "revision")
)
TAGS = Entries(TextShape(1, 128), TextShape(0, 256), 200)
TAG_KEYS = Items(TextShape(1, 128), 0, 200)
DESCRIPTION = TextShape(0, 1024)
NAME = TextShape(1, 128, pattern=r"[^/\x00-\x1f]+", legal="The name must not have '/' or control characters in it.")
CONNECTOR_NAME = TextShape(
    1, 128, pattern=r"[A-Za-z0-9._-]+",
    legal="The name may have letters, digits, '.', '_' and '-' alone: it is part of names of topics.",
)  # fmt: skip
VPC = Block(
    {"subnets": Items(TextShape(1, 256)), "securityGroups": Items(TextShape(1, 256))}, ("subnets",)
)  # fmt: skip
LOG_DELIVERY = Block(
    {
        "workerLogDelivery": Block(
            {
                "cloudWatchLogs": Block({"enabled": Flag(), "logGroup": TextShape(0, 512)}, ("enabled",)),
                "firehose": Block({"enabled": Flag(), "deliveryStream": TextShape(0, 249)}, ("enabled",)),
                "s3": Block(
                    {"enabled": Flag(), "bucket": TextShape(0, 63), "prefix": TextShape(0, 1024)}, ("enabled",)
                ),
            }
        )
    },
    ("workerLogDelivery",),
)
LOG_TARGETS = {"cloudWatchLogs": "logGroup", "firehose": "deliveryStream", "s3": "bucket"}
"""The member that an enabled delivery requires, by delivery."""
CREATE_CONNECTOR = Block(
    {
        "capacity": CAPACITY,
        "connectorConfiguration": Entries(),
        "connectorDescription": DESCRIPTION,
        "connectorName": CONNECTOR_NAME,
        "kafkaCluster": Block(
            {
                "apacheKafkaCluster": Block(
                    {"bootstrapServers": TextShape(1, 4096), "vpc": VPC}, ("bootstrapServers", "vpc")
                )
            },
            ("apacheKafkaCluster",),
        ),
        "kafkaClusterClientAuthentication": Block(
            {"authenticationType": TextShape(values=("NONE", "IAM"))}, ("authenticationType",)
        ),
        "kafkaClusterEncryptionInTransit": Block(
            {"encryptionType": TextShape(values=("PLAINTEXT", "TLS"))}, ("encryptionType",)
        ),
        "kafkaConnectVersion": TextShape(1, 64),
        "logDelivery": LOG_DELIVERY,
        "networkType": TextShape(values=("IPV4", "DUAL")),
        "plugins": PLUGINS,
        "serviceExecutionRoleArn": TextShape(
            1, 2048, pattern=r"arn:(aws|aws-cn|aws-us-gov):iam:.*",
            legal="arn:(aws|aws-cn|aws-us-gov):iam:.* is expected.",
        ),
        "workerConfiguration": WORKER_CONFIGURATION,
        "tags": TAGS,
    },
    (
        "capacity", "connectorConfiguration", "connectorName", "kafkaCluster", "kafkaClusterClientAuthentication",
        "kafkaClusterEncryptionInTransit", "kafkaConnectVersion", "plugins", "serviceExecutionRoleArn",
    ),
)  # fmt: skip
WORKER_SETTINGS = ("capacity", "plugins", "workerConfiguration", "useDefaultWorkerConfiguration")
UPDATE_CONNECTOR = Block(
    {
        "capacity": CAPACITY_UPDATE,
        "connectorConfiguration": Entries(),
        "plugins": PLUGINS,
        "workerConfiguration": WORKER_CONFIGURATION,
        "useDefaultWorkerConfiguration": Flag(),
        "skipHealthValidation": Flag(),
    }
)
CREATE_CUSTOM_PLUGIN = Block(
    {
        "contentType": TextShape(values=("JAR", "ZIP")),
        "description": DESCRIPTION,
        "location": Block(
            {
                "s3Location": Block(
                    {"bucketArn": ARN, "fileKey": TextShape(1, 1024), "objectVersion": TextShape(1, 1024)},
                    ("bucketArn", "fileKey"),
                )
            },
            ("s3Location",),
        ),
        "name": NAME,
        "tags": TAGS,
    },
    ("contentType", "location", "name"),
)
CREATE_WORKER_CONFIGURATION = Block(
    {"description": DESCRIPTION, "name": NAME, "propertiesFileContent": TextShape(0, 1 << 17), "tags": TAGS},
    ("name", "propertiesFileContent"),
)
TAG_RESOURCE = Block({"tags": TAGS}, ("tags",))
