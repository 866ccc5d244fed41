package acme;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Does in its connector or its task what its configuration says, and should not. */
public class BadSource extends SourceConnector {
    private Map<String, String> config;

    @Override public void start(Map<String, String> props) {
        config = props;
        if ("start".equals(props.get("throws"))) throw new IllegalStateException("no start today");
        if ("error".equals(props.get("throws"))) throw new StackOverflowError("too deep");
    }
    @Override public Class<? extends Task> taskClass() { return BadTask.class; }
    @Override public List<Map<String, String>> taskConfigs(int most) {
        if ("tasks".equals(config.get("throws"))) throw new IllegalStateException("no tasks today");
        return List.of(config);
    }
    @Override public void stop() { }
    @Override public ConfigDef config() {
        return new ConfigDef().define("does", ConfigDef.Type.STRING, "", ConfigDef.Importance.HIGH, "What it does.");
    }
    @Override public String version() { return "1"; }

    @Override public boolean alterOffsets(Map<String, String> config, Map<Map<String, ?>, Map<String, ?>> offsets) {
        for (Map<String, ?> one : offsets.values())
            if (one != null && ((Number) one.get("n")).longValue() < 0) throw new ConnectException("n is below 0");
        return true;
    }

    /** Its task. */
    public static class BadTask extends SourceTask {
        private final List<byte[]> eaten = new ArrayList<>();
        private Map<String, String> props;
        private int polls;

        @Override public String version() { return "1"; }

        @Override public void start(Map<String, String> given) {
            props = given;
            PluginMetrics metrics = context.pluginMetrics();
            LinkedHashMap<String, String> tags = new LinkedHashMap<>(Map.of("its-kind", "bad"));
            metrics.addMetric(metrics.metricName("polls-total", "Polls of the task.", tags), (Gauge<Integer>) (config, now) -> polls);
            metrics.addMetric(metrics.metricName("says", "No number.", tags), (Gauge<String>) (config, now) -> "nothing");
            if ("leaks".equals(props.get("does")))
                for (int n = 0; n < 20; n++) new Thread(BadTask::sleepForEver, "leaked " + n).start();
        }

        @Override public List<SourceRecord> poll() throws InterruptedException {
            polls++;
            switch (props.getOrDefault("does", "")) {
                case "exit": System.exit(3); break;
                case "halt": Runtime.getRuntime().halt(4); break;
                case "missing": return List.of(new SourceRecord(null, null, Missing.TOPIC, Schema.STRING_SCHEMA, "x"));
                case "forks":
                    try { if (polls == 1) new ProcessBuilder("sleep", props.get("seconds")).start(); }
                    catch (IOException e) { throw new ConnectException(e); }
                    break;
                case "deaf": System.out.println("acme is deaf"); sleepForEver(); break;
                case "eats": while (true) eaten.add(new byte[8 << 20]);
                case "floods": for (int n = 0; n < 20_000; n++) System.out.println("flood ".repeat(20)); break;
                case "recurses": return deeper(0);
                case "tells":
                    Thread.sleep(50);
                    long heap = Runtime.getRuntime().maxMemory() >> 20;
                    return List.of(new SourceRecord(Map.of("p", "1"), Map.of("n", (long) polls), props.get("topic"),
                        Schema.STRING_SCHEMA, System.getProperty("acme.mark") + " " + heap));
                default: break;
            }
            Thread.sleep(50);
            return List.of(new SourceRecord(Map.of("p", "1"), Map.of("n", (long) polls), props.get("topic"), Schema.STRING_SCHEMA, "v" + polls));
        }

        @Override public void stop() { }

        private static List<SourceRecord> deeper(int level) { return deeper(level + 1); }

        private static void sleepForEver() {
            while (true) try { Thread.sleep(10_000); } catch (InterruptedException e) { /* deaf */ }
        }
    }
}
