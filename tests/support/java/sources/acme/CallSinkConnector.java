package acme;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.sink.ErrantRecordReporter;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/**
 * Writes down each call of its tasks: the time, the thread, the method, the arguments in short, and what came of it.
 *
 * <p>Its key `script` says what a task does in which call: `put 2: timeout 300, retriable; close 1: fail`. `put` counts
 * what has records, `empty` what has none; `preCommit` counts what has an offset above 0; `*` stands for each
 * call. What it does to its context is written down as well.
 */
public class CallSinkConnector extends SinkConnector {
    private Map<String, String> config;

    @Override public void start(Map<String, String> props) { config = props; }
    @Override public Class<? extends Task> taskClass() { return CallTask.class; }
    @Override public List<Map<String, String>> taskConfigs(int most) {
        List<Map<String, String>> made = new ArrayList<>();
        for (int n = 0; n < most; n++) {
            made.add(new HashMap<>(config));
            if (n > 0) made.get(n).merge("calls", "-" + n, String::concat);
        }
        return made;
    }
    @Override public void stop() { }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public String version() { return "1"; }

    /** Its task. */
    public static class CallTask extends SinkTask {
        private Path calls;
        private Map<String, List<String>> script = new HashMap<>();
        private final Map<String, Integer> counts = new HashMap<>();
        private List<SinkRecord> records = List.of();
        private Map<TopicPartition, OffsetAndMetadata> offsets = Map.of();
        private boolean returnsNull;
        private Thread first;

        @Override public String version() { return "1"; }

        @Override public void start(Map<String, String> props) {
            calls = Path.of(props.get("calls"));
            for (String step : props.getOrDefault("script", "").split(";")) {
                if (step.isBlank()) continue;
                String[] sides = step.split(":");
                script.put(sides[0].strip(), List.of(sides[1].strip().split(" *, *")));
            }
            first = Thread.currentThread();
            called("start", first.getName() + places(context.assignment()));
        }

        @Override public void open(Collection<TopicPartition> partitions) {
            called("open", places(partitions) + " of" + places(context.assignment()));
        }

        @Override public void put(Collection<SinkRecord> given) {
            records = new ArrayList<>(given);
            Map<Integer, long[]> ranges = new TreeMap<>();
            for (SinkRecord one : given) {
                long at = one.kafkaOffset();
                long[] range = ranges.computeIfAbsent(one.kafkaPartition(), none -> new long[] {at, at});
                range[1] = at;
            }
            StringBuilder text = new StringBuilder();
            ranges.forEach((partition, range) -> text.append(" " + partition + "@" + range[0] + "-" + range[1]));
            called(given.isEmpty() ? "empty" : "put", text.toString());
        }

        @Override public Map<TopicPartition, OffsetAndMetadata> preCommit(Map<TopicPartition, OffsetAndMetadata> current) {
            offsets = new HashMap<>(current);
            returnsNull = false;
            called("preCommit", offsets(current));
            super.preCommit(current);
            return returnsNull ? null : offsets;
        }

        @Override public void flush(Map<TopicPartition, OffsetAndMetadata> current) { called("flush", offsets(current)); }

        @Override public void close(Collection<TopicPartition> partitions) {
            called("close", places(partitions) + " of" + places(context.assignment()));
        }

        @Override public void stop() { called("stop", ""); }

        private void called(String method, String arguments) {
            note(method, arguments);
            if (arguments.contains("=0") && !arguments.matches(".*=[1-9].*")) return;
            int count = counts.merge(method, 1, Integer::sum);
            List<String> each = script.getOrDefault(method + " *", List.of());
            for (String does : script.getOrDefault(method + " " + count, each)) act(does.split(" "));
        }

        private void act(String[] does) {
            int n = does.length > 1 ? Integer.parseInt(does[1]) : 0;
            if (!does[0].matches("hold|none|null|strange|ahead|sleep")) note("  " + String.join(" ", does), "");
            switch (does[0]) {
                case "timeout" -> context.timeout(n);
                case "request" -> context.requestCommit();
                case "pause" -> steer(() -> context.pause(place(n)));
                case "resume" -> steer(() -> context.resume(place(n)));
                case "offset" -> steer(() -> context.offset(place(n), Long.parseLong(does[2])));
                case "offsets" -> steer(() -> context.offset(Map.of(place(n), Long.parseLong(does[2]))));
                case "report" -> report(n);
                case "hold" -> shift(-n);
                case "ahead" -> shift(n);
                case "none" -> offsets = Map.of();
                case "null" -> returnsNull = true;
                case "strange" -> offsets.put(new TopicPartition("strange", 0), new OffsetAndMetadata(1));
                case "sleep" -> rest(n);
                case "retriable" -> throw new RetriableException("not now");
                case "fail" -> throw new ConnectException("as told");
                case "error" -> throw new IllegalStateException("as told");
                default -> throw new IllegalArgumentException(does[0]);
            }
        }

        private TopicPartition place(int partition) {
            return new TopicPartition(context.configs().get("topics"), partition);
        }

        private void steer(Runnable work) {
            try {
                work.run();
            } catch (RuntimeException error) {
                note("  thrown", " " + error.getClass().getSimpleName());
            }
        }

        private void report(int n) {
            ErrantRecordReporter reporter = context.errantRecordReporter();
            if (reporter == null) {
                note("  no reporter", "");
                return;
            }
            try {
                reporter.report(records.get(n), new IllegalArgumentException("bad")).get();
                note("  reported", "");
            } catch (Exception error) {
                note("  thrown", " " + error.getClass().getSimpleName());
            }
        }

        private void shift(int by) {
            offsets.replaceAll((where, at) -> new OffsetAndMetadata(Math.max(0, at.offset() + by)));
        }

        private void rest(int ms) {
            try {
                Thread.sleep(ms);
            } catch (InterruptedException error) {
                note("  interrupted", "");
                throw new ConnectException(error);
            }
        }

        private static String places(Collection<TopicPartition> partitions) {
            TreeSet<Integer> numbers = new TreeSet<>();
            for (TopicPartition one : partitions) numbers.add(one.partition());
            return " " + numbers;
        }

        private static String offsets(Map<TopicPartition, OffsetAndMetadata> offsets) {
            TreeMap<Integer, Long> found = new TreeMap<>();
            offsets.forEach((where, at) -> found.put(where.partition(), at.offset()));
            return " " + found;
        }

        private void note(String what, String arguments) {
            String who = first == Thread.currentThread() ? "" : "  in " + Thread.currentThread().getName();
            String line = System.currentTimeMillis() + " " + what + (arguments.isEmpty() ? "" : " " + arguments.strip()) + who;
            Notes.add(calls, line);
        }
    }
}
