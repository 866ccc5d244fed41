// Produces five records for each codec with sarama, to the broker that is given; record_batches.py runs this.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
)

func main() {
	codecs := map[string]sarama.CompressionCodec{"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP,
		"snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD}
	for name, codec := range codecs {
		config := sarama.NewConfig()
		config.Version = sarama.V2_1_0_0
		config.Producer.Compression = codec
		config.Producer.Return.Successes = true
		producer, err := sarama.NewSyncProducer([]string{os.Args[1]}, config)
		if err != nil {
			panic(err)
		}
		var all []*sarama.ProducerMessage
		for n := 0; n < 5; n++ {
			one := &sarama.ProducerMessage{Topic: "sarama-" + name, Value: sarama.StringEncoder(fmt.Sprintf("value %d of a text that repeats and repeats and repeats", n)),
				Timestamp: time.UnixMilli(1700000000123 + int64(n))}
			if n > 0 {
				one.Key = sarama.StringEncoder(fmt.Sprintf("k%d", n))
			}
			if n == 2 {
				one.Headers = []sarama.RecordHeader{{Key: []byte("h"), Value: []byte("1")}, {Key: []byte("h"), Value: nil}, {Key: []byte("empty"), Value: []byte{}}}
			}
			if n == 3 {
				one.Value = nil
			}
			all = append(all, one)
		}
		if err := producer.SendMessages(all); err != nil {
			panic(err)
		}
		producer.Close()
	}
}
