package acme;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Gives the lines of a growing file. All records of a poll have one offset, behind the last of them, as a database's
 * transaction has: half of a poll with its offset would be the loss of the other half. */
public class PolledLines extends NumberedSource {
    public PolledLines() { super(1); }

    @Override public Class<? extends Task> taskClass() { return LinesTask.class; }
    @Override public ConfigDef config() {
        return new ConfigDef()
            .define("file", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "The file.")
            .define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "Where its lines go.")
            .define("poll", ConfigDef.Type.INT, 500, ConfigDef.Importance.LOW, "Most lines of a poll.");
    }

    /** Its task. */
    public static class LinesTask extends SourceTask {
        private String file;
        private String topic;
        private int most;
        private long position;

        @Override public String version() { return "1"; }

        @Override public void start(Map<String, String> props) {
            file = props.get("file");
            topic = props.get("topic");
            most = number(props, "poll", 500);
            Map<String, Object> offset = context.offsetStorageReader().offset(Map.of("file", file));
            if (offset != null) position = ((Number) offset.get("position")).longValue();
        }

        @Override public List<SourceRecord> poll() throws InterruptedException {
            List<String> lines = lines();
            if (lines.isEmpty()) {
                Thread.sleep(20);
                return null;
            }
            List<SourceRecord> found = new ArrayList<>();
            for (String line : lines)
                found.add(new SourceRecord(Map.of("file", file), Map.of("position", position), topic, Schema.STRING_SCHEMA, line));
            return found;
        }

        /** The whole lines behind the position, which is behind them then. */
        private List<String> lines() {
            List<String> found = new ArrayList<>();
            try (RandomAccessFile open = new RandomAccessFile(file, "r")) {
                open.seek(position);
                byte[] data = new byte[(int) Math.min(1 << 20, open.length() - position)];
                open.readFully(data);
                int begun = 0;
                for (int at = 0; at < data.length && found.size() < most; at++) {
                    if (data[at] != '\n') continue;
                    found.add(new String(data, begun, at - begun, StandardCharsets.ISO_8859_1));
                    begun = at + 1;
                }
                position += begun;
            } catch (java.io.FileNotFoundException e) {
                return found;
            } catch (IOException e) {
                throw new ConnectException(e);
            }
            return found;
        }

        @Override public void stop() { }
    }
}
