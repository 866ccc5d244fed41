// Speaks to the managed Connect API as programs in Go do: prints what it is told, as JSON.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kafkaconnect"
	"github.com/aws/aws-sdk-go-v2/service/kafkaconnect/types"
	"github.com/aws/smithy-go"
)

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return fmt.Sprint(err)
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	ctx := context.Background()
	client := kafkaconnect.New(kafkaconnect.Options{
		Region:       os.Args[2],
		BaseEndpoint: aws.String(os.Args[1]),
		Credentials:  credentials.NewStaticCredentialsProvider(os.Args[3], os.Args[4], ""),
	})
	said := map[string]any{}
	content := base64.StdEncoding.EncodeToString([]byte(os.Args[5]))
	made := must(client.CreateWorkerConfiguration(ctx, &kafkaconnect.CreateWorkerConfigurationInput{
		Name: aws.String("from-go"), PropertiesFileContent: &content, Tags: map[string]string{"a b": "c&d"},
	}))
	said["age"] = time.Since(*made.CreationTime).Seconds()
	_, err := client.CreateWorkerConfiguration(ctx, &kafkaconnect.CreateWorkerConfigurationInput{
		Name: aws.String("from-go"), PropertiesFileContent: &content,
	})
	var conflict *types.ConflictException
	said["conflict"] = errors.As(err, &conflict)
	tags := must(client.ListTagsForResource(ctx, &kafkaconnect.ListTagsForResourceInput{ResourceArn: made.WorkerConfigurationArn}))
	said["tags"] = tags.Tags
	must(client.UntagResource(ctx, &kafkaconnect.UntagResourceInput{
		ResourceArn: made.WorkerConfigurationArn, TagKeys: []string{"a b"},
	}))
	plugin := types.Plugin{CustomPlugin: &types.CustomPlugin{CustomPluginArn: aws.String(os.Args[6]), Revision: 1}}
	connector := must(client.CreateConnector(ctx, &kafkaconnect.CreateConnectorInput{
		ConnectorName:          aws.String("from-go"),
		ConnectorConfiguration: map[string]string{"connector.class": "x.Y", "tasks.max": "1"},
		Capacity:               &types.Capacity{AutoScaling: &types.AutoScaling{MinWorkerCount: 1, MaxWorkerCount: 2, McuCount: 1}},
		KafkaCluster: &types.KafkaCluster{ApacheKafkaCluster: &types.ApacheKafkaCluster{
			BootstrapServers: aws.String("127.0.0.1:1"), Vpc: &types.Vpc{Subnets: []string{"s"}},
		}},
		KafkaClusterClientAuthentication: &types.KafkaClusterClientAuthentication{
			AuthenticationType: types.KafkaClusterClientAuthenticationTypeNone,
		},
		KafkaClusterEncryptionInTransit: &types.KafkaClusterEncryptionInTransit{
			EncryptionType: types.KafkaClusterEncryptionInTransitTypePlaintext,
		},
		KafkaConnectVersion: aws.String("3.7.x"), Plugins: []types.Plugin{plugin},
		ServiceExecutionRoleArn: aws.String("arn:aws:iam::123450006789:role/connect"),
	}))
	told := must(client.DescribeConnector(ctx, &kafkaconnect.DescribeConnectorInput{ConnectorArn: connector.ConnectorArn}))
	said["state"], said["out"] = told.ConnectorState, told.Capacity.AutoScaling.ScaleOutPolicy.CpuUtilizationPercentage
	said["born"] = time.Since(*told.CreationTime).Seconds()
	other := *connector.ConnectorArn + "0"
	_, err = client.DescribeConnector(ctx, &kafkaconnect.DescribeConnectorInput{ConnectorArn: &other})
	said["none"] = code(err)
	pages, names := kafkaconnect.NewListCustomPluginsPaginator(client, &kafkaconnect.ListCustomPluginsInput{MaxResults: aws.Int32(1)}), []string{}
	for pages.HasMorePages() {
		for _, one := range must(pages.NextPage(ctx)).CustomPlugins {
			names = append(names, *one.Name)
		}
	}
	said["plugins"] = names
	must(client.DeleteConnector(ctx, &kafkaconnect.DeleteConnectorInput{ConnectorArn: connector.ConnectorArn}))
	json.NewEncoder(os.Stdout).Encode(said)
}
