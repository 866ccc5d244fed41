package acme;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.ErrantRecordReporter;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Takes records as its configuration says, and notes in a file what it is called with. */
public class ScriptedSink extends SinkConnector {
    private Map<String, String> config;

    @Override public void start(Map<String, String> props) { config = props; }
    @Override public Class<? extends Task> taskClass() { return ScriptedTask.class; }
    @Override public List<Map<String, String>> taskConfigs(int most) {
        List<Map<String, String>> made = new ArrayList<>();
        for (int n = 0; n < most; n++) made.add(config);
        return made;
    }
    @Override public void stop() { }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public String version() { return "1"; }

    /** Notes what it is asked to alter, and says to that what its configuration does. */
    @Override public boolean alterOffsets(Map<String, String> props, Map<TopicPartition, Long> offsets) {
        Notes.add(Path.of(props.get("log")), "alter " + new TreeSet<>(offsets.entrySet().stream().map(Object::toString).toList()));
        String does = props.getOrDefault("alters", "");
        if (does.equals("fails")) throw new ConnectException("not these offsets");
        if (does.equals("never")) throw new UnsupportedOperationException("not by you");
        return does.equals("yes");
    }

    /** Its task. */
    public static class ScriptedTask extends SinkTask {
        private Path log;
        private Map<String, String> props;
        private final Map<TopicPartition, Long> put = new HashMap<>();
        private final List<SinkRecord> earlier = new ArrayList<>();
        private int retries;
        private int puts;
        private int idles;
        private int taken;
        private boolean failed;

        @Override public String version() { return "1"; }

        @Override public void start(Map<String, String> given) {
            props = new HashMap<>(given);
            log = Path.of(given.get("log"));
            retries = number("retries", 0);
            if (props.containsKey("start.fails")) throw new ConnectException(props.get("start.fails"));
            note("start " + context.configs().get("topics") + " " + Thread.currentThread().getName());
        }

        @Override public void open(Collection<TopicPartition> partitions) {
            note("open " + sorted(partitions) + " of " + sorted(context.assignment()));
            if (props.containsKey("opens.at")) {
                Map<TopicPartition, Long> offsets = new HashMap<>();
                for (TopicPartition one : partitions) offsets.put(one, Long.valueOf(props.get("opens.at")));
                context.offset(offsets);
            }
        }

        @Override public void put(Collection<SinkRecord> records) {
            if (records.isEmpty()) {
                idles++;
                if (idles == number("resumes.after", -1)) {
                    note("resume");
                    context.resume(context.assignment().toArray(new TopicPartition[0]));
                }
                return;
            }
            puts++;
            if (props.containsKey("takes.ms")) {
                try {
                    Thread.sleep(number("takes.ms", 0));
                } catch (InterruptedException e) {
                    throw new ConnectException(e);
                }
            }
            if (retries > 0 || puts == number("retries.at", -1)) {
                retries--;
                note("retry " + records.size());
                context.timeout(number("timeout", 10));
                throw new RetriableException("the sink is away");
            }
            if (puts == number("hangs.at", -1)) {
                note("hangs");
                try {
                    Thread.sleep(number("hangs.ms", 60000));
                } catch (InterruptedException e) {
                    note("interrupted");
                    throw new ConnectException(e);
                }
            }
            while (puts == number("deaf.at", -1)) {
                if (number("noted", 0) == 0) note("deaf");
                props.put("noted", "1");
                try { Thread.sleep(10000); } catch (InterruptedException e) { note("interrupted"); }
            }
            ErrantRecordReporter reporter = context.errantRecordReporter();
            StringBuilder lines = new StringBuilder();
            for (SinkRecord one : records) {
                if (taken == number("fails", -1)) throw new ConnectException("the sink is gone at " + taken);
                taken++;
                if (String.valueOf(one.value()).equals(props.get("bad"))) {
                    report(reporter, one);
                    continue;
                }
                if (String.valueOf(one.value()).equals(props.get("bad.later"))) {
                    earlier.add(one);
                    continue;
                }
                StringBuilder headers = new StringBuilder();
                for (Header each : one.headers()) headers.append(' ').append(each.key()).append('=').append(each.value());
                lines.append("record ").append(one.topic()).append(' ').append(one.kafkaPartition()).append(' ')
                    .append(one.kafkaOffset()).append(' ').append(one.key()).append(' ').append(one.value()).append(' ')
                    .append(one.timestamp()).append(headers).append('\n');
                put.put(new TopicPartition(one.originalTopic(), one.originalKafkaPartition()), one.originalKafkaOffset() + 1);
            }
            note(lines.toString().stripTrailing());
            if (puts == number("pauses.at", -1)) {
                note("pause");
                idles = 0;
                context.pause(context.assignment().toArray(new TopicPartition[0]));
            }
            if (puts == number("rewinds.at", -1)) {
                note("rewind");
                for (TopicPartition one : context.assignment()) context.offset(one, number("rewinds.to", 0));
            }
            if (puts >= number("asks.commits", Integer.MAX_VALUE)) context.requestCommit();
        }

        @Override public Map<TopicPartition, OffsetAndMetadata> preCommit(Map<TopicPartition, OffsetAndMetadata> current) {
            for (SinkRecord one : earlier) report(context.errantRecordReporter(), one);
            earlier.clear();
            long sum = current.values().stream().mapToLong(OffsetAndMetadata::offset).sum();
            if (props.containsKey("commit.fails") && !failed && sum > 0) {
                failed = true;
                note("precommit fails");
                throw new ConnectException("not now");
            }
            Map<TopicPartition, OffsetAndMetadata> safe = new HashMap<>();
            int behind = number("behind", 0);
            for (Map.Entry<TopicPartition, OffsetAndMetadata> one : current.entrySet())
                safe.put(one.getKey(), new OffsetAndMetadata(Math.max(0, one.getValue().offset() - behind)));
            note("precommit " + sum);
            return props.containsKey("opts.out") ? Map.of() : safe;
        }

        @Override public void close(Collection<TopicPartition> partitions) { note("close " + sorted(partitions)); }

        @Override public void stop() { note("stop"); }

        private void report(ErrantRecordReporter reporter, SinkRecord one) {
            if (reporter == null) throw new ConnectException("nobody takes " + one.value());
            try {
                java.util.concurrent.Future<Void> done = reporter.report(one, new IllegalArgumentException("bad: " + one.value()));
                if (!props.containsKey("waits.not")) done.get();
            } catch (InterruptedException | java.util.concurrent.ExecutionException e) {
                throw new ConnectException(e);
            }
        }

        private static String sorted(Collection<TopicPartition> partitions) {
            TreeSet<String> names = new TreeSet<>();
            for (TopicPartition one : partitions) names.add(one.toString());
            return String.join(",", names);
        }

        private int number(String key, int otherwise) {
            return NumberedSource.number(props, key, otherwise);
        }

        private void note(String line) { Notes.add(log, line); }
    }
}
