package acme;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;

/** A source whose tasks have its configuration, each with its `number`: as many as may be, or as the class says. */
abstract class NumberedSource extends SourceConnector {
    private final int most;
    private Map<String, String> config;

    NumberedSource(int most) { this.most = most; }

    @Override public void start(Map<String, String> props) { config = props; }
    @Override public List<Map<String, String>> taskConfigs(int wanted) {
        List<Map<String, String>> made = new ArrayList<>();
        for (int n = 0; n < Math.min(most, wanted); n++) {
            made.add(new HashMap<>(config));
            made.get(n).put("number", "" + n);
        }
        return made;
    }
    @Override public void stop() { }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public String version() { return "1"; }
    @Override public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> props) { return ExactlyOnceSupport.SUPPORTED; }
    @Override public ConnectorTransactionBoundaries canDefineTransactionBoundaries(Map<String, String> props) {
        return ConnectorTransactionBoundaries.SUPPORTED;
    }

    static int number(Map<String, String> props, String key, int otherwise) {
        return Integer.parseInt(props.getOrDefault(key, "" + otherwise));
    }
}
