module couchbase-follow

go 1.22

require (
	github.com/couchbase/gocbcore/v10 v10.8.1
	github.com/couchbase/gomemcached v0.3.4
)

require (
	github.com/couchbase/goutils v0.1.2 // indirect
	github.com/golang/snappy v1.0.0 // indirect
	github.com/google/flatbuffers v24.3.25+incompatible // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/gorilla/websocket v1.5.3 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	golang.org/x/crypto v0.32.0 // indirect
)
