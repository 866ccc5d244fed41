package acme;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

/** Cannot be made. */
public class BrokenSink extends SinkConnector {
    private static final int NUMBER = Integer.parseInt("none");

    @Override public void start(Map<String, String> props) { }
    @Override public Class<? extends Task> taskClass() { return null; }
    @Override public List<Map<String, String>> taskConfigs(int most) { return List.of(Map.of("n", "" + NUMBER)); }
    @Override public void stop() { }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public String version() { return "1"; }
}
