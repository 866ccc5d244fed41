import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;

import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;

/** Prints, as JSON, which keys a worker's properties have in Connect, and what it says to some; see record_workers.py. */
public class WorkerFacts {
    static final Map<String, String> GOOD = Map.of(
        "bootstrap.servers", "h:1", "group.id", "g", "config.storage.topic", "c", "offset.storage.topic", "o",
        "status.storage.topic", "s", "key.converter", "org.apache.kafka.connect.json.JsonConverter",
        "value.converter", "org.apache.kafka.connect.json.JsonConverter");

    public static void main(String[] args) throws Exception {
        Map<String, Object> facts = new TreeMap<>();
        facts.put("keys", keys());
        List<Object> cases = new ArrayList<>();
        for (String[] pair : new ObjectMapper().readValue(System.in, String[][].class)) {
            cases.add(said(pair[0], pair[1]));
        }
        facts.put("cases", cases);
        System.out.println(new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT).writeValueAsString(facts));
    }

    static Map<String, Object> keys() throws Exception {
        var field = AbstractConfig.class.getDeclaredField("definition");
        field.setAccessible(true);
        Map<String, Object> found = new TreeMap<>();
        for (ConfigDef.ConfigKey key : ((ConfigDef) field.get(new DistributedConfig(GOOD))).configKeys().values()) {
            found.put(key.name, List.of(key.type.name(), String.valueOf(key.validator)));
        }
        return found;
    }

    /** What Connect says to a value: null where it takes it. */
    static Map<String, Object> said(String key, String value) {
        Map<String, String> properties = new LinkedHashMap<>(GOOD);
        properties.put(key, value);
        Map<String, Object> one = new LinkedHashMap<>();
        one.put("key", key);
        one.put("value", value);
        try {
            new DistributedConfig(properties);
            one.put("error", null);
        } catch (ConfigException e) {
            one.put("error", String.valueOf(e.getMessage()));
        }
        return one;
    }
}
