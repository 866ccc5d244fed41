package acme;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** A source whose task polls as its script says, and writes down each call with what was visible of its topic then. */
public class CallSourceConnector extends NumberedSource {
    public CallSourceConnector() { super(Integer.MAX_VALUE); }

    @Override public Class<? extends Task> taskClass() { return CallTask.class; }

    /** Its task. */
    public static class CallTask extends SourceTask {
        private static final long LONG_MS = 15_000;
        private static final long SHORT_MS = 300;
        private final Set<Long> heard = new HashSet<>();
        private SourceCallLog log;
        private Map<String, String> props;
        private KafkaConsumer<byte[], byte[]> reader;
        private String[] script;
        private int step;
        private long next;
        private long visible;
        private long expected;
        private long sure;
        private boolean idle;
        private String noted;
        private int number;
        private Map<String, String> part;

        @Override public String version() { return "1"; }

        @Override public void start(Map<String, String> given) {
            props = given;
            number = NumberedSource.number(given, "number", 0);
            part = Map.of("part", "p" + number);
            log = new SourceCallLog(given.get("calls") + (number > 0 ? "-" + number : ""));
            script = given.get("script").split(",");
            Map<String, Object> offset = context.offsetStorageReader().offset(part);
            if (offset != null) { step = ((Number) offset.get("step")).intValue() + 1; sure = expected = next = ((Number) offset.get("n")).longValue() + 1; }
            if (given.containsKey("bootstrap")) {
                reader = new KafkaConsumer<>(Map.of("bootstrap.servers", given.get("bootstrap"), "isolation.level", "read_committed"),
                    new ByteArrayDeserializer(), new ByteArrayDeserializer());
                reader.assign(List.of(new TopicPartition(given.get("topic"), number)));
                reader.seekToBeginning(reader.assignment());
            }
            log.note("start", Thread.currentThread().getName(), "step", step, "next", next);
        }

        @Override public List<SourceRecord> poll() throws InterruptedException {
            if (step >= script.length) return quiet("idle");
            String now = script[step];
            if (now.startsWith("wait") && !Files.exists(Path.of(props.get("calls") + "." + now))) return quiet(now);
            idle = false;
            step++;
            if (now.startsWith("wait")) return null;
            log.note("poll", now, seen(SHORT_MS));
            switch (now) {
                case "empty": return null;
                case "none": return List.of();
                case "retry": throw new RetriableException("not yet");
                case "throw": throw new ConnectException("the source is gone");
                case "block": log.note(await() ? "heard" : "not-heard"); return null;
                case "ack": log.note(await() ? "heard" : "not-heard"); return records("1");
                case "slow": Thread.sleep(500); return records("1");
                default: return records(now);
            }
        }

        private List<SourceRecord> quiet(String where) throws InterruptedException {
            if (!idle) log.note(where);
            if (!idle) noted = "";
            idle = true;
            Thread.sleep(20);
            return null;
        }

        private boolean await() throws InterruptedException {
            long until = System.currentTimeMillis() + LONG_MS;
            synchronized (heard) {
                while (heard.size() < next && System.currentTimeMillis() < until) heard.wait(50);
                return heard.size() >= next;
            }
        }

        /** Digits, and in front of them: c, a to end the transaction with the poll, r, q with its second record, t for a last one
            without a value, d for all, b for a second one that no converter takes; behind an x the length of each. */
        private List<SourceRecord> records(String now) {
            char kind = Character.isDigit(now.charAt(0)) ? '.' : now.charAt(0);
            String[] parts = (kind == '.' ? now : now.substring(1)).split("x");
            int count = Integer.parseInt(parts[0]);
            String text = "x".repeat(parts.length > 1 ? Integer.parseInt(parts[1]) : 1);
            List<SourceRecord> made = new ArrayList<>();
            for (int at = 0; at < count; at++, next++) {
                Object value = kind == 'd' || (kind == 't' && at == count - 1) ? null : kind == 'b' && at == 1 ? (Object) 1 : text;
                made.add(new SourceRecord(part, Map.of("n", next - at + count - 1, "step", step - 1), props.get("topic"),
                    number, Schema.STRING_SCHEMA, "" + next, Schema.OPTIONAL_STRING_SCHEMA, value));
            }
            expected += switch (kind) { case 't', 'b' -> count - 1; case 'd', 'a' -> 0; case 'q' -> count - 2; default -> count; };
            sure = expected - (kind == 'r' || kind == 'q' ? count - 2 : 0);
            var transactions = context.transactionContext();
            if (kind == 'c') transactions.commitTransaction();
            if (kind == 'a') transactions.abortTransaction();
            if (kind == 'r') transactions.commitTransaction(made.get(1));
            if (kind == 'q') transactions.abortTransaction(made.get(1));
            log.note("gives", (next - count) + "-" + (next - 1));
            return made;
        }

        @Override public void commitRecord(SourceRecord one, RecordMetadata at) {
            long number = Long.parseLong(one.key().toString());
            log.note("commitRecord", number, at == null ? "nowhere" : "there", seen(LONG_MS));
            synchronized (heard) { heard.add(number); heard.notifyAll(); }
            if ("commitRecord".equals(props.get("throws"))) throw new ConnectException("not heard");
        }

        /** Noted once of those that come in one thread while it has nothing to give. */
        @Override public void commit() {
            if (!idle || !log.role().equals(noted)) log.note("commit", seen(LONG_MS));
            noted = log.role();
            if ("commit".equals(props.get("throws"))) throw new ConnectException("not committed");
        }

        /** How many records a consumer sees that reads what is committed, once those are there that ever will be, or patience is over,
            which is short where all are there that their transaction has ended with. */
        private String seen(long patience) {
            if (reader == null) return "";
            synchronized (this) {
                long begun = System.currentTimeMillis();
                while (visible < expected && System.currentTimeMillis() - begun < (visible < sure ? patience : SHORT_MS))
                    visible += reader.poll(Duration.ofMillis(20)).count();
                return "sees " + visible;
            }
        }

        @Override public void stop() {
            log.note("stop");
            if (reader != null) reader.close();
            if (props.getOrDefault("throws", "").equals("stop")) throw new ConnectException("not stopped");
        }
    }
}
