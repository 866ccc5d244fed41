package acme;

import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Records whose value has a word in it. */
public class HasWord<R extends ConnectRecord<R>> implements Predicate<R> {
    private String word;

    @Override public boolean test(R record) { return record.value().toString().contains(word); }
    @Override public ConfigDef config() {
        return new ConfigDef().define("word", ConfigDef.Type.STRING, ConfigDef.NO_DEFAULT_VALUE,
            ConfigDef.Importance.LOW, "The word.");
    }
    @Override public void configure(Map<String, ?> configs) { word = (String) configs.get("word"); }
    @Override public void close() { }
}
