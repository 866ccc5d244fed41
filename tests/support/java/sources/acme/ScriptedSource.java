package acme;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Gives numbered records as its configuration says, and notes in a file what it is called with. */
public class ScriptedSource extends NumberedSource {
    public ScriptedSource() { super(1); }

    @Override public Class<? extends Task> taskClass() { return ScriptedTask.class; }

    /** Notes what it is asked to alter, and says to that what its configuration does. */
    @Override public boolean alterOffsets(Map<String, String> props, Map<Map<String, ?>, Map<String, ?>> offsets) {
        Notes.add(Path.of(props.get("log")), "alter " + new TreeSet<>(offsets.entrySet().stream().map(Object::toString).toList()));
        String does = props.getOrDefault("alters", "");
        if (does.equals("fails")) throw new ConnectException("not these offsets");
        if (does.equals("never")) throw new UnsupportedOperationException("not by you");
        return does.equals("yes");
    }

    /** Its task. */
    public static class ScriptedTask extends SourceTask {
        private Path log;
        private String[] topics;
        private String thread;
        private int next;
        private int total;
        private int size;
        private int partitions;
        private int retries = 2;
        private final AtomicInteger heard = new AtomicInteger();
        private Map<String, String> props;

        @Override public String version() { return "1"; }

        @Override public void start(Map<String, String> given) {
            props = given;
            thread = Thread.currentThread().getName();
            log = Path.of(given.get("log"));
            topics = given.get("topics").split(",");
            total = number("records", 100);
            size = number("poll", 10);
            partitions = number("parts", 1);
            List<Map<String, String>> keys = new ArrayList<>();
            for (int part = 0; part < partitions; part++) keys.add(Map.of("part", "p" + part));
            for (Map<String, Object> offset : context.offsetStorageReader().offsets(keys).values())
                if (offset != null) next = Math.max(next, ((Number) offset.get("n")).intValue() + 1);
            note("start " + next + " " + thread.startsWith("task-thread-"));
            if (given.containsKey("start.fails")) throw new ConnectException(given.get("start.fails"));
        }

        @Override public List<SourceRecord> poll() throws InterruptedException {
            while (props.containsKey("awaits") && heard.get() < next) Thread.sleep(5);
            if (next == number("fails", -1)) throw new ConnectException("the source is gone at " + next);
            if (next == number("hangs", -1)) {
                note("hangs");
                while (true) try { Thread.sleep(1000); } catch (InterruptedException e) {
                    note("interrupted");
                    if (!props.containsKey("deaf")) throw e;
                }
            }
            if (next == number("exits", -1)) System.exit(3);
            if (next == number("retries", -1) && retries-- > 0) throw new RetriableException("not yet");
            if (next >= total) { Thread.sleep(20); return null; }
            List<SourceRecord> found = new ArrayList<>();
            int end = Math.min(total, next + size);
            for (; next < end; next++) {
                SourceRecord one = record(next);
                found.add(one);
                if (context.transactionContext() == null) continue;
                if (number("commits", 0) > 0 && (next + 1) % number("commits", 0) == 0)
                    context.transactionContext().commitTransaction(one);
                if (next == number("aborts", -1)) context.transactionContext().abortTransaction(one);
            }
            if (context.transactionContext() != null && props.containsKey("commits.polls"))
                context.transactionContext().commitTransaction();
            note("polled " + next);
            return found;
        }

        private SourceRecord record(int at) {
            Map<String, Object> offset = new HashMap<>();
            offset.put("n", (long) (props.containsKey("shares") ? Math.min(total, at - at % size + size) - 1 : at));
            if (props.containsKey("odd.offsets")) {
                offset.put("name", "zoë \"x\"\n\u2028");
                offset.put("double", 1.5e10);
                offset.put("float", 0.1f);
                offset.put("small", (byte) 7);
                offset.put("true", true);
                offset.put("none", null);
                if (at == number("nests", -1)) offset.put("nested", Map.of("a", 1));
                offset.put("bytes", new byte[] {1, 2, (byte) 200});
            }
            Map<String, String> partition = Map.of("part", "p" + at % partitions);
            boolean gone = at == number("forgets", -1);
            Integer target = props.containsKey("targets") ? Integer.valueOf(at % 2) : null;
            Object key = props.containsKey("keyless") ? null : "k" + at;
            Object value = at == number("bad", -1) ? Integer.valueOf(at) : text(at);
            SourceRecord made = new SourceRecord(partition, gone ? null : offset, topics[at % topics.length], target,
                Schema.OPTIONAL_STRING_SCHEMA, key, Schema.STRING_SCHEMA, value, props.containsKey("times") ? Long.valueOf(1000 + at) : null);
            made.headers().addString("from", "h" + at);
            return made;
        }

        private String text(int at) {
            return "v" + at + "x".repeat(number(at == number("large", -1) ? "large.length" : "length", 0));
        }

        @Override public void commitRecord(SourceRecord one, RecordMetadata at) {
            Object n = one.sourceOffset() == null ? "none" : one.sourceOffset().get("n");
            heard.incrementAndGet();
            note("record " + n + " " + (at == null ? "nowhere" : at.topic() + " " + at.partition() + " " + at.offset()));
        }

        @Override public void commit() { note("commit " + Thread.currentThread().getName().equals(thread)); }

        @Override public void stop() { note("stop"); }

        private int number(String key, int otherwise) { return NumberedSource.number(props, key, otherwise); }

        private void note(String line) { Notes.add(log, line); }
    }
}
