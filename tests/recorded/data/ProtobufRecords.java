// Writes messages with protobuf for Java: a line of JSON in, {"files": a set of files, "message": its name, "value": the
// message in JSON}; a line of hex out. record_protobuf_writers.py runs this.

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.util.JsonFormat;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;

public class ProtobufRecords {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonObject given = JsonParser.parseString(line).getAsJsonObject();
            byte[] raw = Base64.getDecoder().decode(given.get("files").getAsString());
            Map<String, FileDescriptor> files = new LinkedHashMap<>();
            for (FileDescriptorProto one : FileDescriptorSet.parseFrom(raw).getFileList()) {
                FileDescriptor[] imports =
                        one.getDependencyList().stream().map(files::get).toArray(FileDescriptor[]::new);
                files.put(one.getName(), FileDescriptor.buildFrom(one, imports));
            }
            DynamicMessage.Builder made = DynamicMessage.newBuilder(found(files, given.get("message").getAsString()));
            JsonFormat.parser().merge(given.get("value").toString(), made);
            System.out.println(HexFormat.of().formatHex(made.build().toByteArray()));
        }
    }

    static Descriptor found(Map<String, FileDescriptor> files, String name) {
        for (FileDescriptor file : files.values()) {
            for (Descriptor one : file.getMessageTypes()) {
                if (one.getFullName().equals(name)) return one;
                Descriptor inner = one.findNestedTypeByName(name.substring(name.lastIndexOf('.') + 1));
                if (inner != null && inner.getFullName().equals(name)) return inner;
            }
        }
        throw new IllegalArgumentException(name);
    }
}
