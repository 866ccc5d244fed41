package acme;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.metrics.Measurable;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.transforms.Transformation;

/** Makes values large, says in a header how often it was asked, drops what says "drop", and throws for "boom". */
public class ShoutTransform<R extends ConnectRecord<R>> implements Transformation<R>, Versioned, Monitorable {
    private String end;
    private PluginMetrics metrics;
    private int given;

    @Override public R apply(R record) {
        if (metrics == null) throw new IllegalStateException("it was given no metrics");
        given++;
        String said = (String) record.value();
        if (said.contains("drop")) return null;
        if (said.contains("boom")) throw new DataException("boom");
        var headers = record.headers().duplicate();
        var mark = headers.lastWithName("mark");
        headers.addLong("seen", mark == null ? -1 : ((Number) mark.value()).longValue() + 1);
        return record.newRecord(record.topic(), record.kafkaPartition(), record.keySchema(), record.key(),
            record.valueSchema(), said.toUpperCase(Locale.ROOT) + end, record.timestamp(), headers);
    }
    @Override public ConfigDef config() {
        return new ConfigDef().define("end", ConfigDef.Type.STRING, ConfigDef.NO_DEFAULT_VALUE,
            ConfigDef.Importance.LOW, "What comes behind each value.");
    }
    @Override public void configure(Map<String, ?> configs) { end = (String) configs.get("end"); }
    @Override public void withPluginMetrics(PluginMetrics own) {
        metrics = own;
        own.addMetric(own.metricName("given-total", "Records that it was given.", new LinkedHashMap<>()), (Measurable) (config, now) -> given);
    }
    @Override public void close() { }
    @Override public String version() { return "1.2"; }
}
