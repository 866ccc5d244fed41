// Puts transforms, predicates and converters of Apache Kafka Connect through cases: one JSON object a line in, one out.
// The notation of values and records is described in record_data.py, which runs this.

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamWriteConstraints;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

public class ConnectData {
    static final ObjectMapper JSON = new ObjectMapper(JsonFactory.builder()
            .enable(JsonWriteFeature.ESCAPE_NON_ASCII)
            .streamReadConstraints(StreamReadConstraints.builder().maxNestingDepth(10_000)
                    .maxStringLength(Integer.MAX_VALUE).build())
            .streamWriteConstraints(StreamWriteConstraints.builder().maxNestingDepth(10_000).build())
            .build());
    static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    static final JsonConverter SCHEMAS = new JsonConverter();

    public static void main(String[] arguments) throws Exception {
        SCHEMAS.configure(Map.of("schemas.enable", "true", "converter.type", "value"));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer;
            try {
                answer = answer(JSON.readTree(line));
            } catch (Throwable problem) {
                answer = error(problem, "step");
            }
            out.println(JSON.writeValueAsString(answer));
        }
    }

    static ObjectNode answer(JsonNode one) throws Exception {
        if (one.has("transform")) return transformed(one);
        if (one.has("predicate")) return judged(one);
        if (one.has("header_converter")) return header(one);
        return converted(one);
    }

    static ObjectNode error(Throwable problem, String where) {
        ObjectNode told = NODES.objectNode();
        told.put("class", problem.getClass().getName());
        told.put("message", problem.getMessage());
        told.put("where", where);
        if (problem.getCause() != null && problem.getCause() != problem) {
            told.put("cause", problem.getCause().getClass().getName());
            told.put("cause_message", problem.getCause().getMessage());
        }
        ObjectNode answer = NODES.objectNode();
        answer.set("error", told);
        return answer;
    }

    static Map<String, String> config(JsonNode one) {
        Map<String, String> found = new LinkedHashMap<>();
        one.path("config").fields().forEachRemaining(entry -> found.put(entry.getKey(), entry.getValue().textValue()));
        return found;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static ObjectNode transformed(JsonNode one) throws Exception {
        Transformation step = (Transformation) Class.forName(one.get("transform").textValue())
                .getDeclaredConstructor().newInstance();
        try {
            ((Configurable) step).configure(config(one));
        } catch (Exception problem) {
            return error(problem, "config");
        }
        ConnectRecord<?> made = (ConnectRecord<?>) step.apply((ConnectRecord) record(one.get("record")));
        ObjectNode answer = NODES.objectNode();
        answer.set("record", made == null ? NODES.nullNode() : told(made));
        return answer;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static ObjectNode judged(JsonNode one) throws Exception {
        Predicate step = (Predicate) Class.forName(one.get("predicate").textValue())
                .getDeclaredConstructor().newInstance();
        try {
            ((Configurable) step).configure(config(one));
        } catch (Exception problem) {
            return error(problem, "config");
        }
        ObjectNode answer = NODES.objectNode();
        answer.put("result", step.test((ConnectRecord) record(one.get("record"))));
        return answer;
    }

    static ObjectNode header(JsonNode one) throws Exception {
        HeaderConverter step = (HeaderConverter) Class.forName(one.get("header_converter").textValue())
                .getDeclaredConstructor().newInstance();
        Map<String, String> config = config(one);
        config.put("converter.type", "header");
        step.configure(config);
        ObjectNode answer = NODES.objectNode();
        if (one.has("bytes")) {
            answer.set("data", told(step.toConnectHeader("t", "h", bytes(one.get("bytes")))));
        } else {
            SchemaAndValue data = data(one.get("data"));
            answer.set("bytes", hex(step.fromConnectHeader("t", "h", data.schema(), data.value())));
        }
        return answer;
    }

    static ObjectNode converted(JsonNode one) throws Exception {
        Converter step = (Converter) Class.forName(one.get("converter").textValue()).getDeclaredConstructor().newInstance();
        try {
            step.configure(config(one), one.path("key").booleanValue());
        } catch (Exception problem) {
            return error(problem, "config");
        }
        ObjectNode answer = NODES.objectNode();
        if (one.has("bytes")) {
            answer.set("data", told(step.toConnectData("t", new RecordHeaders(), bytes(one.get("bytes")))));
        } else {
            SchemaAndValue data = data(one.get("data"));
            answer.set("bytes", hex(step.fromConnectData("t", new RecordHeaders(), data.schema(), data.value())));
        }
        return answer;
    }

    // ---- from the notation

    static ConnectRecord<?> record(JsonNode one) {
        SchemaAndValue key = data(one.get("key"));
        SchemaAndValue value = data(one.get("value"));
        String topic = one.path("topic").textValue();
        Integer partition = one.hasNonNull("partition") ? one.get("partition").intValue() : null;
        Long timestamp = one.hasNonNull("timestamp") ? one.get("timestamp").longValue() : null;
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode header : one.path("headers")) headers.add(header.get(0).textValue(), data(header.get(1)));
        if (one.hasNonNull("offset")) {
            return new SinkRecord(topic, partition == null ? 0 : partition, key.schema(), key.value(), value.schema(),
                    value.value(), one.get("offset").longValue(), timestamp, TimestampType.CREATE_TIME, headers);
        }
        return new SourceRecord(Map.of(), Map.of(), topic, partition, key.schema(), key.value(), value.schema(),
                value.value(), timestamp, headers);
    }

    static SchemaAndValue data(JsonNode one) {
        if (one == null || one.isNull()) return new SchemaAndValue(null, null);
        Schema schema = one.hasNonNull("schema") ? SCHEMAS.asConnectSchema(one.get("schema")) : null;
        return new SchemaAndValue(schema, value(schema, one.get("value")));
    }

    static Object value(Schema schema, JsonNode one) {
        if (one == null || one.isNull()) return null;
        Map.Entry<String, JsonNode> entry = one.fields().next();
        JsonNode given = entry.getValue();
        switch (entry.getKey()) {
            case "bool": return given.booleanValue();
            case "int8": return (byte) given.intValue();
            case "int16": return (short) given.intValue();
            case "int32": return given.intValue();
            case "int64": return given.longValue();
            case "float": return Float.valueOf(given.textValue());
            case "double": return Double.valueOf(given.textValue());
            case "string": return given.textValue();
            case "bytes": return bytes(given);
            case "decimal": return new BigDecimal(given.textValue());
            case "date": return new Date(given.longValue());
            case "list": {
                List<Object> made = new ArrayList<>();
                for (JsonNode item : given) made.add(value(schema == null ? null : schema.valueSchema(), item));
                return made;
            }
            case "map": {
                Map<Object, Object> made = new HashMap<>();
                for (JsonNode pair : given) {
                    made.put(value(schema == null ? null : schema.keySchema(), pair.get(0)),
                            value(schema == null ? null : schema.valueSchema(), pair.get(1)));
                }
                return made;
            }
            case "struct": {
                Struct made = new Struct(schema);
                for (JsonNode pair : given) {
                    Field field = schema.field(pair.get(0).textValue());
                    made.put(field, value(field.schema(), pair.get(1)));
                }
                return made;
            }
            default: throw new IllegalArgumentException("no such notation: " + one);
        }
    }

    static byte[] bytes(JsonNode one) {
        return one.isNull() ? null : HexFormat.of().parseHex(one.textValue());
    }

    // ---- into the notation

    static ObjectNode told(ConnectRecord<?> one) {
        ObjectNode answer = NODES.objectNode();
        answer.put("topic", one.topic());
        if (one.kafkaPartition() == null) answer.putNull("partition"); else answer.put("partition", one.kafkaPartition());
        answer.set("key", told(new SchemaAndValue(one.keySchema(), one.key())));
        answer.set("value", told(new SchemaAndValue(one.valueSchema(), one.value())));
        if (one.timestamp() == null) answer.putNull("timestamp"); else answer.put("timestamp", one.timestamp());
        ArrayNode headers = answer.putArray("headers");
        for (Header header : one.headers()) {
            ArrayNode pair = headers.addArray();
            pair.add(header.key());
            pair.add(told(new SchemaAndValue(header.schema(), header.value())));
        }
        if (one instanceof SinkRecord sink) answer.put("offset", sink.kafkaOffset());
        return answer;
    }

    static JsonNode told(SchemaAndValue one) {
        ObjectNode answer = NODES.objectNode();
        answer.set("schema", one.schema() == null ? NODES.nullNode() : SCHEMAS.asJsonSchema(one.schema()));
        answer.set("value", told(one.value()));
        return answer;
    }

    static JsonNode told(Object value) {
        ObjectNode answer = NODES.objectNode();
        if (value == null) return NODES.nullNode();
        if (value instanceof Boolean given) answer.put("bool", given);
        else if (value instanceof Byte given) answer.put("int8", given.intValue());
        else if (value instanceof Short given) answer.put("int16", given.intValue());
        else if (value instanceof Integer given) answer.put("int32", given);
        else if (value instanceof Long given) answer.put("int64", given);
        else if (value instanceof Float given) answer.put("float", given.toString());
        else if (value instanceof Double given) answer.put("double", given.toString());
        else if (value instanceof String given) answer.put("string", given);
        else if (value instanceof BigDecimal given) answer.put("decimal", given.toPlainString());
        else if (value instanceof Date given) answer.put("date", given.getTime());
        else if (value instanceof byte[] given) answer.set("bytes", hex(given));
        else if (value instanceof ByteBuffer given) {
            byte[] copied = new byte[given.remaining()];
            given.duplicate().get(copied);
            answer.set("bytes", hex(copied));
        } else if (value instanceof List<?> given) {
            ArrayNode items = answer.putArray("list");
            for (Object item : given) items.add(told(item));
        } else if (value instanceof Map<?, ?> given) {
            ArrayNode pairs = answer.putArray("map");
            for (Map.Entry<?, ?> entry : given.entrySet()) pairs.addArray().add(told(entry.getKey())).add(told(entry.getValue()));
        } else if (value instanceof Struct given) {
            ArrayNode pairs = answer.putArray("struct");
            for (Field field : given.schema().fields()) pairs.addArray().add(field.name()).add(told(given.getWithoutDefault(field.name())));
        } else throw new IllegalArgumentException("no notation for " + value.getClass());
        return answer;
    }

    static JsonNode hex(byte[] given) {
        return given == null ? NODES.nullNode() : NODES.textNode(HexFormat.of().formatHex(given));
    }
}
