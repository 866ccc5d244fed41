// Speaks to the managed Connect API as programs in JavaScript do: prints what it is told, as JSON.
import * as sdk from "@aws-sdk/client-kafkaconnect";

const [endpoint, region, accessKeyId, secretAccessKey, properties, builtIn] = process.argv.slice(2);
const client = new sdk.KafkaConnectClient({ endpoint, region, credentials: { accessKeyId, secretAccessKey } });
const propertiesFileContent = Buffer.from(properties).toString("base64");
const name = "from-node";
const said = {};
const made = await client.send(
  new sdk.CreateWorkerConfigurationCommand({ name, propertiesFileContent, tags: { "a b": "c&d" } }),
);
said.age = (Date.now() - made.creationTime.getTime()) / 1000;
const resourceArn = made.workerConfigurationArn;
try {
  await client.send(new sdk.CreateWorkerConfigurationCommand({ name, propertiesFileContent }));
} catch (error) {
  said.conflict = error instanceof sdk.ConflictException;
}
said.tags = (await client.send(new sdk.ListTagsForResourceCommand({ resourceArn }))).tags;
await client.send(new sdk.UntagResourceCommand({ resourceArn, tagKeys: ["a b"] }));
const { connectorArn } = await client.send(
  new sdk.CreateConnectorCommand({
    connectorName: name,
    connectorConfiguration: { "connector.class": "x.Y", "tasks.max": "1" },
    capacity: { autoScaling: { minWorkerCount: 1, maxWorkerCount: 2, mcuCount: 1 } },
    kafkaCluster: { apacheKafkaCluster: { bootstrapServers: "127.0.0.1:1", vpc: { subnets: ["s"] } } },
    kafkaClusterClientAuthentication: { authenticationType: "NONE" },
    kafkaClusterEncryptionInTransit: { encryptionType: "PLAINTEXT" },
    kafkaConnectVersion: "3.7.x",
    plugins: [{ customPlugin: { customPluginArn: builtIn, revision: 1 } }],
    serviceExecutionRoleArn: "arn:aws:iam::123450006789:role/connect",
  }),
);
const told = await client.send(new sdk.DescribeConnectorCommand({ connectorArn }));
said.state = told.connectorState;
said.out = told.capacity.autoScaling.scaleOutPolicy.cpuUtilizationPercentage;
said.born = (Date.now() - told.creationTime.getTime()) / 1000;
try {
  await client.send(new sdk.DescribeConnectorCommand({ connectorArn: `${connectorArn}0` }));
} catch (error) {
  said.none = error.name;
}
said.plugins = [];
for await (const page of sdk.paginateListCustomPlugins({ client, pageSize: 1 }, {})) {
  said.plugins.push(...page.customPlugins.map((one) => one.name));
}
await client.send(new sdk.DeleteConnectorCommand({ connectorArn }));
console.log(JSON.stringify(said));
