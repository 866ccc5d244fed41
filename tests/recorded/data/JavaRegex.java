import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

/** Prints, a line each, what java.util.regex makes of patterns and replacements; see record_java_regex.py. */
public class JavaRegex {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        for (JsonNode one : json.readTree(System.in)) {
            Map<String, Object> said = new LinkedHashMap<>();
            said.put("pattern", one.get("pattern").asText());
            try {
                Pattern pattern = Pattern.compile(one.get("pattern").asText());
                if (one.has("texts")) {
                    List<Object> found = new ArrayList<>();
                    for (JsonNode text : one.get("texts")) {
                        found.add(told(pattern, text.asText()));
                    }
                    said.put("found", found);
                } else {
                    String text = one.get("text").asText(), replacement = one.get("replacement").asText();
                    said.put("text", text);
                    said.put("replacement", replacement);
                    try {
                        said.put("first", pattern.matcher(text).replaceFirst(replacement));
                    } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
                        said.put("error", e.getMessage());
                    }
                }
            } catch (PatternSyntaxException e) {
                said.put("error", e.getDescription());
            }
            System.out.println(json.writeValueAsString(said));
        }
    }

    /** The text, whether it matches as a whole, and the groups of the first part that does. */
    static List<Object> told(Pattern pattern, String text) {
        List<Object> told = new ArrayList<>();
        told.add(text);
        told.add(pattern.matcher(text).matches());
        Matcher matcher = pattern.matcher(text);
        List<String> groups = null;
        if (matcher.find()) {
            groups = new ArrayList<>();
            for (int i = 0; i <= matcher.groupCount(); i++) {
                groups.add(matcher.group(i));
            }
        }
        told.add(groups);
        return told;
    }
}
