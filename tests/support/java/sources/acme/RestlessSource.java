package acme;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceConnector;

/** Watches a folder in a thread of its own: a file `more` in it asks for new tasks, a file `gone` is a failure. */
public class RestlessSource extends SourceConnector {
    private Path folder;
    private volatile boolean ended;

    @Override public void start(Map<String, String> props) {
        folder = Path.of(props.get("folder"));
        if (props.containsKey("refuses")) throw new ConfigException("refuses", props.get("refuses"), "it is refused");
        note("start");
        new Thread(this::watch, "restless").start();
    }

    private void watch() {
        boolean told = false;
        while (!ended) {
            if (!told && Files.exists(folder.resolve("more"))) {
                told = true;
                context().requestTaskReconfiguration();
            }
            if (Files.exists(folder.resolve("gone"))) {
                context().raiseError(new ConnectException("the sea is gone", new IllegalStateException("dry")));
                return;
            }
            try { Thread.sleep(10); } catch (InterruptedException e) { return; }
        }
    }

    private void note(String what) {
        Notes.add(folder.resolve("calls"), what);
    }

    @Override public List<Map<String, String>> taskConfigs(int most) {
        int wanted = Files.exists(folder.resolve("more")) ? 2 : 1;
        List<Map<String, String>> found = new ArrayList<>();
        Map<String, Object> offset = context().offsetStorageReader().offset(Map.of("sea", "north"));
        for (int i = 0; i < wanted; i++) found.add(Map.of("number", "" + i, "offset", "" + offset));
        return found;
    }

    @Override public void stop() { ended = true; note("stop"); }
    @Override public Class<? extends Task> taskClass() { return ScriptedSource.ScriptedTask.class; }
    @Override public ConfigDef config() {
        return new ConfigDef().define("folder", ConfigDef.Type.STRING, ConfigDef.NO_DEFAULT_VALUE,
            new ConfigDef.NonEmptyString(), ConfigDef.Importance.HIGH, "Where it looks.");
    }
    @Override public String version() { return "2.5"; }
}
