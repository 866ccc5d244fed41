// Writes record batches with Kafka's own classes, and tells what those read of any: a line of JSON for each set of batches.
// record_batches.py runs this, and describes the lines.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.TimestampType;

public class RecordBatches {
    static final ObjectMapper JSON = new ObjectMapper();
    static final long TIME = 1_700_000_000_123L;

    public static void main(String[] arguments) throws Exception {
        for (CompressionType type : CompressionType.values()) {
            for (byte magic = 0; magic <= 2; magic++) {
                if (magic < 2 && type == CompressionType.ZSTD) continue;
                for (TimestampType time : TimestampType.values()) {
                    if ((magic == 0) != (time == TimestampType.NO_TIMESTAMP_TYPE)) continue;
                    String name = "java-" + type.name + "-v" + magic + (magic == 0 ? "" : "-" + time.name);
                    tell(name, written(type, magic, time, -1, false));
                }
            }
            tell("java-" + type.name + "-transactional", written(type, (byte) 2, TimestampType.CREATE_TIME, 77, true));
        }
        for (ControlRecordType type : new ControlRecordType[] {ControlRecordType.COMMIT, ControlRecordType.ABORT}) {
            EndTransactionMarker marker = new EndTransactionMarker(type, 3);
            tell("java-marker-" + type.name().toLowerCase(),
                    MemoryRecords.withEndTransactionMarker(40, TIME, 5, 77, (short) 2, marker).buffer());
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode one = JSON.readTree(line);
            tell(one.get("name").textValue(), ByteBuffer.wrap(HexFormat.of().parseHex(one.get("bytes").textValue())));
        }
    }

    static ByteBuffer written(CompressionType type, byte magic, TimestampType time, long producer, boolean transactional) {
        long appended = time == TimestampType.LOG_APPEND_TIME ? TIME + 9_000 : RecordBatch.NO_TIMESTAMP;
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(4096), magic,
                Compression.of(type).build(), time, 1_000, appended, producer, (short) (producer < 0 ? -1 : 2),
                producer < 0 ? -1 : 11, transactional, 5);
        for (int n = 0; n < 5; n++) {
            byte[] key = n == 0 ? null : ("k" + n).getBytes(StandardCharsets.UTF_8);
            byte[] value = n == 3 ? null : n == 4 ? new byte[0]
                    : ("value " + n + " of a text that repeats and repeats and repeats").getBytes(StandardCharsets.UTF_8);
            Header[] headers = magic < 2 || n != 2 ? Record.EMPTY_HEADERS : new Header[] {
                new RecordHeader("h", new byte[] {49}), new RecordHeader("h", null), new RecordHeader("é", new byte[0])};
            builder.append(magic == 0 ? RecordBatch.NO_TIMESTAMP : TIME + 5 - n, key, value, headers);
        }
        return builder.build().buffer();
    }

    static void tell(String name, ByteBuffer bytes) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        answer.put("name", name);
        byte[] copied = new byte[bytes.remaining()];
        bytes.duplicate().get(copied);
        answer.put("bytes", HexFormat.of().formatHex(copied));
        ArrayNode batches = answer.putArray("batches");
        for (RecordBatch batch : MemoryRecords.readableRecords(bytes).batches()) {
            batch.ensureValid();
            ObjectNode told = batches.addObject();
            told.put("magic", batch.magic());
            told.put("last_offset", batch.lastOffset());
            told.put("codec", batch.compressionType().id);
            told.put("control", batch.isControlBatch());
            told.put("transactional", batch.isTransactional());
            told.put("producer_id", batch.producerId());
            ArrayNode records = told.putArray("records");
            for (Record record : batch) {
                ObjectNode one = records.addObject();
                one.put("offset", record.offset());
                one.put("timestamp", record.timestamp());
                put(one, "key", record.hasKey() ? record.key() : null);
                put(one, "value", record.hasValue() ? record.value() : null);
                ArrayNode headers = one.putArray("headers");
                for (Header header : record.headers()) {
                    ArrayNode pair = headers.addArray();
                    pair.add(header.key());
                    pair.add(header.value() == null ? null : HexFormat.of().formatHex(header.value()));
                }
            }
        }
        System.out.println(JSON.writeValueAsString(answer));
    }

    static void put(ObjectNode one, String name, ByteBuffer bytes) {
        if (bytes == null) {
            one.putNull(name);
            return;
        }
        byte[] copied = new byte[bytes.remaining()];
        bytes.duplicate().get(copied);
        one.put(name, HexFormat.of().formatHex(copied));
    }
}
