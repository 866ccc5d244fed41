package acme;

import java.nio.file.Path;

/** Writes down the calls into one object, each with the part that its thread has: that which it was started in, or another. */
class SourceCallLog {
    private final Path file;
    private final Thread own = Thread.currentThread();

    SourceCallLog(String file) { this.file = Path.of(file); }

    void note(String method, Object... arguments) {
        StringBuilder line = new StringBuilder(method).append(' ').append(role());
        for (Object one : arguments) line.append(' ').append(one);
        Notes.add(file, line.toString());
    }

    String role() {
        return Thread.currentThread() == own ? "own" : "other";
    }
}
