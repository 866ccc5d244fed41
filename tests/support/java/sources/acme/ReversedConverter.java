package acme;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.storage.Converter;

/** Strings from their end to their beginning; a topic of its own stands before them. */
public class ReversedConverter implements Converter {
    @Override public void configure(Map<String, ?> configs, boolean isKey) { }
    @Override public byte[] fromConnectData(String topic, Schema schema, Object value) {
        return value == null ? null : reversed(topic + ":" + value).getBytes(StandardCharsets.UTF_8);
    }
    @Override public SchemaAndValue toConnectData(String topic, byte[] value) {
        if (value == null) return SchemaAndValue.NULL;
        String said = reversed(new String(value, StandardCharsets.UTF_8));
        if (!said.startsWith(topic + ":")) throw new DataException("not of " + topic);
        return new SchemaAndValue(Schema.STRING_SCHEMA, said.substring(topic.length() + 1));
    }
    private static String reversed(String said) { return new StringBuilder(said).reverse().toString(); }
}
