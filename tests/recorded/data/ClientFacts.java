import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;

import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigValue;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.connect.connector.policy.ConnectorClientConfigOverridePolicy;
import org.apache.kafka.connect.connector.policy.ConnectorClientConfigRequest;
import org.apache.kafka.connect.health.ConnectorType;

/** Prints, as JSON, what Java's Kafka clients and Connect's override policies say; see record_clients.py. */
public class ClientFacts {
    static final String POLICIES = "org.apache.kafka.connect.connector.policy.";
    static final String[] OVERRIDES = {
        "acks", "bootstrap.servers", "client.id", "nonsense.key", "sasl.jaas.config", "sasl.login.class",
        "sasl.mechanism", "security.protocol", "ssl.truststore.location"};

    public static void main(String[] args) throws Exception {
        Map<String, Object> facts = new TreeMap<>();
        facts.put("keys", keys());
        facts.put("policies", policies());
        facts.put("jaas", jaas(new ObjectMapper().readValue(System.in, String[].class)));
        System.out.println(new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT).writeValueAsString(facts));
    }

    static Map<String, Object> keys() {
        Map<String, Object> found = new TreeMap<>();
        note(found, "producer", ProducerConfig.configDef());
        note(found, "consumer", ConsumerConfig.configDef());
        note(found, "admin", AdminClientConfig.configDef());
        return found;
    }

    @SuppressWarnings("unchecked")
    static void note(Map<String, Object> found, String client, ConfigDef definition) {
        for (ConfigDef.ConfigKey key : definition.configKeys().values()) {
            Map<String, Object> one = (Map<String, Object>) found.computeIfAbsent(key.name, k -> new TreeMap<>());
            one.put("type", key.type.name());
            ((List<String>) one.computeIfAbsent("clients", k -> new ArrayList<String>())).add(client);
        }
    }

    static Map<String, Object> policies() throws Exception {
        Map<String, Object> found = new LinkedHashMap<>();
        for (String name : new String[] {"All", "Allowlist", "Principal", "None"}) {
            var policy = (ConnectorClientConfigOverridePolicy) Class
                .forName(POLICIES + name + "ConnectorClientConfigOverridePolicy").getDeclaredConstructor().newInstance();
            policy.configure(name.equals("Allowlist")
                ? Map.of("connector.client.config.override.allowlist", "acks, client.id") : Map.of());
            Map<String, Object> given = new LinkedHashMap<>();
            for (String key : OVERRIDES) {
                given.put(key, "v");
            }
            given.put("sasl.jaas.config", "com.sun.security.auth.module.JndiLoginModule required;");
            Map<String, Object> said = new TreeMap<>();
            for (ConfigValue value : policy.validate(new ConnectorClientConfigRequest(
                    "c", ConnectorType.SOURCE, null, given, ConnectorClientConfigRequest.ClientType.PRODUCER))) {
                said.put(value.name(), value.errorMessages());
            }
            found.put(name, said);
        }
        return found;
    }

    /** What Java makes of each sasl.jaas.config: its modules with flags and options, or the error. */
    static List<Object> jaas(String[] texts) {
        List<Object> found = new ArrayList<>();
        for (String text : texts) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("text", text);
            try {
                var entry = JaasContext.loadClientContext(Map.of("sasl.jaas.config", new Password(text)))
                    .configurationEntries().get(0);
                one.put("module", entry.getLoginModuleName());
                one.put("flag", entry.getControlFlag().toString());
                one.put("options", new TreeMap<>(entry.getOptions()));
            } catch (Exception e) {
                one.put("error", e.getMessage());
            }
            found.add(one);
        }
        return found;
    }
}
