// Command gocbcore follows a bucket with Couchbase's Go client and prints a line for each change; it ends with its
// standard input. Arguments: node, bucket, user, password, number of vbuckets.
package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/couchbase/gocbcore/v10"
	"github.com/couchbase/gocbcore/v10/memd"
)

var (
	lock sync.Mutex
	text = base64.StdEncoding.EncodeToString
)

func line(format string, fields ...any) {
	lock.Lock()
	defer lock.Unlock()
	fmt.Printf(format+"\n", fields...)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type stream struct{ ended chan error }

func change(kind string, vb uint16, seqno, rev gocbcore.SeqNo, cas uint64, collection uint32, datatype uint8, key, value []byte) {
	line("%s %d %d %d %d %d %d %s %s", kind, vb, seqno, rev, cas, collection, datatype, text(key), text(value))
}

func (s *stream) Mutation(m gocbcore.DcpMutation) {
	change("mutation", m.VbID, gocbcore.SeqNo(m.SeqNo), gocbcore.SeqNo(m.RevNo), m.Cas, m.CollectionID, m.Datatype, m.Key, m.Value)
}
func (s *stream) Deletion(d gocbcore.DcpDeletion) {
	change("deletion", d.VbID, gocbcore.SeqNo(d.SeqNo), gocbcore.SeqNo(d.RevNo), d.Cas, d.CollectionID, d.Datatype, d.Key, nil)
}
func (s *stream) Expiration(e gocbcore.DcpExpiration) {
	change("expiration", e.VbID, gocbcore.SeqNo(e.SeqNo), gocbcore.SeqNo(e.RevNo), e.Cas, e.CollectionID, 0, e.Key, nil)
}
func (s *stream) CreateCollection(c gocbcore.DcpCollectionCreation) {
	line("collection %d %d %d %s", c.VbID, c.SeqNo, c.CollectionID, c.Key)
}
func (s *stream) CreateScope(c gocbcore.DcpScopeCreation) {
	line("scope %d %d %d %s", c.VbID, c.SeqNo, c.ScopeID, c.Key)
}
func (s *stream) End(end gocbcore.DcpStreamEnd, err error)            { s.ended <- err }
func (s *stream) SnapshotMarker(gocbcore.DcpSnapshotMarker)           {}
func (s *stream) DeleteCollection(c gocbcore.DcpCollectionDeletion) {
	line("dropped %d %d %d", c.VbID, c.SeqNo, c.CollectionID)
}
func (s *stream) FlushCollection(gocbcore.DcpCollectionFlush)         {}
func (s *stream) DeleteScope(c gocbcore.DcpScopeDeletion) {
	line("dropped-scope %d %d %d", c.VbID, c.SeqNo, c.ScopeID)
}
func (s *stream) ModifyCollection(gocbcore.DcpCollectionModification) {}
func (s *stream) OSOSnapshot(gocbcore.DcpOSOSnapshot)                 {}
func (s *stream) SeqNoAdvanced(gocbcore.DcpSeqNoAdvanced)             {}

func main() {
	config := gocbcore.DCPAgentConfig{
		UserAgent: "follow", BucketName: os.Args[2], EnableCCCPPoller: true,
		SeedConfig:        gocbcore.SeedConfig{MemdAddrs: []string{os.Args[1]}},
		SecurityConfig:    gocbcore.SecurityConfig{Auth: gocbcore.PasswordAuthProvider{Username: os.Args[3], Password: os.Args[4]}},
		IoConfig:          gocbcore.IoConfig{UseCollections: true},
		CompressionConfig: gocbcore.CompressionConfig{Enabled: true, DisableDecompression: true},
		KVConfig:          gocbcore.KVConfig{ConnectTimeout: 30 * time.Second},
		DCPConfig:         gocbcore.DCPConfig{UseExpiryOpcode: true, BufferSize: 1 << 20},
	}
	agent, err := gocbcore.CreateDcpAgent(&config, "follow:one", memd.DcpOpenFlagProducer|memd.DcpOpenFlagIncludeDeleteTimes)
	fail(err)
	ready := make(chan error, 1)
	_, err = agent.WaitUntilReady(time.Now().Add(60*time.Second), gocbcore.WaitUntilReadyOptions{}, func(_ *gocbcore.WaitUntilReadyResult, err error) { ready <- err })
	fail(err)
	fail(<-ready)
	count, err := strconv.Atoi(os.Args[5])
	fail(err)
	for vb := range count {
		opened := make(chan error, 1)
		_, err := agent.OpenStream(uint16(vb), memd.DcpStreamAddFlagActiveOnly, 0, 0, 0xffffffffffffffff, 0, 0,
			&stream{make(chan error, 1)},
			gocbcore.OpenStreamOptions{ManifestOptions: &gocbcore.OpenStreamManifestOptions{ManifestUID: 0}},
			func(log []gocbcore.FailoverEntry, err error) { opened <- err })
		fail(err)
		fail(<-opened)
	}
	line("streaming")
	_, _ = io.Copy(io.Discard, os.Stdin)
}
