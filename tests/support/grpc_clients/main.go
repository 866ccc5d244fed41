// Speaks to a gateway with TLS and a token, as programs in Go do: prints what it is told, as JSON.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	connect "example.test/client/gen/keelman/api/connect/v1"
	event "example.test/client/gen/keelman/api/event/v1"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func refusal(err error) []string {
	told := status.Convert(err)
	for _, detail := range told.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return []string{told.Code().String(), info.Reason}
		}
	}
	return []string{told.Code().String(), ""}
}

func main() {
	address, authority, token, name := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(must(os.ReadFile(authority))) {
		must(0, errors.New("no certificate in "+authority))
	}
	trusting := credentials.NewTLS(&tls.Config{RootCAs: roots})
	connection := must(grpc.NewClient(address, grpc.WithTransportCredentials(trusting)))
	defer connection.Close()
	clusters, watches := connect.NewBrokerClusterServiceClient(connection), event.NewWatchServiceClient(connection)

	anyone, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	known := metadata.AppendToOutgoingContext(anyone, "authorization", "Bearer "+token)

	_, unknown := clusters.ListBrokerClusters(anyone, &connect.ListBrokerClustersRequest{})
	watch := must(watches.Watch(known, &event.WatchRequest{Nouns: []string{"broker_cluster"}, Name: name}))
	must(watch.Recv()) // the snapshot, which is empty
	external := &connect.ExternalBrokers{BootstrapServers: "127.0.0.1:1"}
	spec := &connect.BrokerClusterSpec{Kind: &connect.BrokerClusterSpec_External{External: external}}
	request := &connect.CreateBrokerClusterRequest{Name: name, Spec: spec}
	made := must(clusters.CreateBrokerCluster(known, request)).BrokerCluster
	_, taken := clusters.CreateBrokerCluster(known, request)
	change := must(watch.Recv())
	for len(change.Events) == 0 {
		change = must(watch.Recv())
	}
	must(0, json.NewEncoder(os.Stdout).Encode(map[string]any{
		"made": made.Name, "age": time.Since(made.CreateTime.AsTime()).Seconds(),
		"unknown": refusal(unknown), "taken": refusal(taken), "seen": change.Events[0].Name,
	}))
}
