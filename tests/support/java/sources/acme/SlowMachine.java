package acme;

import java.nio.file.Files;
import java.nio.file.Path;

/** An agent of a virtual machine that keeps the machine's start waiting where that is a slot's. */
public class SlowMachine {
    /** Called before the machine is up; its words are those behind the agent's jar: the seconds. */
    public static void premain(String seconds) throws Exception {
        String title = Files.readString(Path.of("/proc/self/cmdline"));
        if (title.startsWith("keelman slot-")) Thread.sleep(Long.parseLong(seconds) * 1000);
    }
}
