package acme;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.kafka.connect.errors.ConnectException;

/** Writes down the calls into one object, each with the part that its thread has: that which it was started in, or another. */
class SourceCallLog {
    private final Path file;
    private final Thread own = Thread.currentThread();

    SourceCallLog(String file) { this.file = Path.of(file); }

    void note(String method, Object... arguments) {
        StringBuilder line = new StringBuilder(method).append(' ').append(role());
        for (Object one : arguments) line.append(' ').append(one);
        synchronized (SourceCallLog.class) {
            try {
                Files.writeString(file, line.append('\n'), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (java.io.IOException e) {
                throw new ConnectException(e);
            }
        }
    }

    private String role() {
        return Thread.currentThread() == own ? "own" : "other";
    }
}
