// Puts values through the AvroData of Apicurio Registry's converter for Connect, which is derived from Confluent's: one
// JSON object a line in, one out. record_avro.py describes the cases and runs this, with ConnectData.java beside it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.apicurio.registry.serde.avro.NonRecordContainer;
import io.apicurio.registry.utils.converter.avro.AvroData;
import io.apicurio.registry.utils.converter.avro.AvroDataConfig;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.connect.data.SchemaAndValue;

public class AvroRecords {
    public static void main(String[] arguments) throws Exception {
        ConnectData.SCHEMAS.configure(Map.of("schemas.enable", "true", "converter.type", "value"));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode one = ConnectData.JSON.readTree(line);
            ObjectNode answer;
            try {
                AvroData data = new AvroData(new AvroDataConfig(ConnectData.config(one)));
                answer = one.has("avro") ? read(data, one) : written(data, one);
            } catch (Throwable problem) {
                answer = ConnectData.error(problem, "avro");
            }
            out.println(ConnectData.JSON.writeValueAsString(answer));
        }
    }

    static ObjectNode written(AvroData data, JsonNode one) throws Exception {
        SchemaAndValue given = ConnectData.data(one.get("data"));
        Schema schema = data.fromConnectSchema(given.schema());
        ObjectNode answer = ConnectData.NODES.objectNode();
        answer.put("schema", schema.toString());
        Object made = data.fromConnectData(given.schema(), given.value());
        if (made instanceof NonRecordContainer container) made = container.getValue();
        if (made == null) {
            answer.putNull("bytes");
            return answer;
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(bytes, null);
        new GenericDatumWriter<>(schema).write(made, encoder);
        answer.put("bytes", HexFormat.of().formatHex(bytes.toByteArray()));
        answer.set("back", back(data, schema.toString(), bytes.toByteArray()));
        return answer;
    }

    static ObjectNode read(AvroData data, JsonNode one) throws Exception {
        ObjectNode answer = ConnectData.NODES.objectNode();
        answer.set("back", back(data, one.get("avro").textValue(), ConnectData.bytes(one.get("bytes"))));
        return answer;
    }

    static JsonNode back(AvroData data, String text, byte[] bytes) throws Exception {
        Schema schema = new Schema.Parser().parse(text);
        Object read = new GenericDatumReader<>(schema).read(null, DecoderFactory.get().binaryDecoder(bytes, null));
        return ConnectData.told(data.toConnectData(schema, read));
    }
}
