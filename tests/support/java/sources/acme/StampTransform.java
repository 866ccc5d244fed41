package acme;

import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.transforms.Transformation;

/** Leaves records as they are; its level is legal from 1 to 9. */
public class StampTransform<R extends ConnectRecord<R>> implements Transformation<R>, Versioned {
    @Override public R apply(R record) { return record; }
    @Override public ConfigDef config() {
        return new ConfigDef().define("level", ConfigDef.Type.INT, 3, ConfigDef.Range.between(1, 9),
            ConfigDef.Importance.LOW, "How much.");
    }
    @Override public void configure(Map<String, ?> configs) { }
    @Override public void close() { }
    @Override public String version() { return "3.1"; }
}
