// Writes messages with Go's protobuf: a line of JSON in, {"files": a set of files, "message": its name, "value": the
// message in JSON}; a line of hex out. record_protobuf_writers.py runs this.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var given struct {
			Files   string
			Message string
			Value   json.RawMessage
		}
		check(json.Unmarshal(lines.Bytes(), &given))
		raw, err := base64.StdEncoding.DecodeString(given.Files)
		check(err)
		var set descriptorpb.FileDescriptorSet
		check(proto.Unmarshal(raw, &set))
		files, err := protodesc.NewFiles(&set)
		check(err)
		found, err := files.FindDescriptorByName(protoreflect.FullName(given.Message))
		check(err)
		message := dynamicpb.NewMessage(found.(protoreflect.MessageDescriptor))
		check(protojson.Unmarshal(given.Value, message))
		bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		check(err)
		fmt.Println(hex.EncodeToString(bytes))
	}
}
