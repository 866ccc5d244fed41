package acme;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.storage.HeaderConverter;

/** Headers as strings between brackets. */
public class BracketHeaders implements HeaderConverter {
    @Override public SchemaAndValue toConnectHeader(String topic, String key, byte[] value) {
        String said = new String(value, StandardCharsets.UTF_8);
        return new SchemaAndValue(Schema.STRING_SCHEMA, said.substring(1, said.length() - 1));
    }
    @Override public byte[] fromConnectHeader(String topic, String key, Schema schema, Object value) {
        return ("<" + value + ">").getBytes(StandardCharsets.UTF_8);
    }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public void configure(Map<String, ?> configs) { }
    @Override public void close() { }
}
