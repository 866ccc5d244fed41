// Command gomemcached follows a bucket of one node with the client of Couchbase's own services and prints a line for each
// change; it ends with its standard input. Arguments: node, bucket, user, password, number of vbuckets.
package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/couchbase/gomemcached"
	memcached "github.com/couchbase/gomemcached/client"
)

var kinds = map[gomemcached.CommandCode]string{
	gomemcached.UPR_MUTATION: "mutation", gomemcached.UPR_DELETION: "deletion", gomemcached.UPR_EXPIRATION: "expiration",
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	client, err := memcached.Connect("tcp", os.Args[1])
	fail(err)
	_, err = client.AuthScramSha(os.Args[3], os.Args[4])
	fail(err)
	var features memcached.Features
	features = append(features, memcached.FeatureXattr, memcached.FeatureSnappyCompression, memcached.FeatureDataType, memcached.FeatureCollections)
	_, err = client.EnableFeatures(features)
	fail(err)
	_, err = client.SelectBucket(os.Args[2])
	fail(err)
	feed, err := client.NewUprFeedWithConfig(false)
	fail(err)
	err, _ = feed.UprOpenWithFeatures("follow:memcached", 0, 1<<20, memcached.UprFeatures{IncludeDeletionTime: true, CompressionType: memcached.CompressionTypeSnappy})
	fail(err)
	fail(feed.StartFeed())
	count, err := strconv.Atoi(os.Args[5])
	fail(err)
	for vb := range count {
		fail(feed.UprRequestStream(uint16(vb), uint16(vb), 0, 0, 0, 0xffffffffffffffff, 0, 0))
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	text, opened := base64.StdEncoding.EncodeToString, 0
	for one := range feed.GetUprEventCh() {
		if kind := kinds[one.Opcode]; kind != "" {
			fmt.Printf("%s %d %d %d %d %d %d %s %s\n", kind, one.VBucket, one.Seqno, one.RevSeqno, one.Cas, one.CollectionId,
				one.DataType, text(one.Key), text(one.Value))
		} else if one.Opcode == gomemcached.UPR_STREAMREQ {
			if opened++; opened == count {
				fmt.Println("streaming")
			}
		}
	}
	fail(feed.GetError())
}
