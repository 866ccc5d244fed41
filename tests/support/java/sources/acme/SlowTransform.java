package acme;

import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.transforms.Transformation;

/** Takes some time for each record. */
public class SlowTransform<R extends ConnectRecord<R>> implements Transformation<R> {
    private long micros;

    @Override public R apply(R record) {
        try {
            Thread.sleep(micros / 1000, (int) (micros % 1000) * 1000);
        } catch (InterruptedException e) {
            throw new ConnectException(e);
        }
        return record;
    }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public void configure(Map<String, ?> configs) { micros = Long.parseLong((String) configs.get("micros")); }
    @Override public void close() { }
}
