import com.couchbase.client.dcp.Client;
import com.couchbase.client.dcp.StreamFrom;
import com.couchbase.client.dcp.StreamTo;
import com.couchbase.client.dcp.config.CompressionMode;
import com.couchbase.client.dcp.highlevel.DatabaseChangeListener;
import com.couchbase.client.dcp.highlevel.Deletion;
import com.couchbase.client.dcp.highlevel.FlowControlMode;
import com.couchbase.client.dcp.highlevel.Mutation;
import com.couchbase.client.dcp.highlevel.StreamFailure;

import java.util.Scanner;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/** For each line of its standard input, a number of documents: reads as many with the official client and prints the
 * nanoseconds from the request of the streams to the last of them. */
public class Count {
  public static void main(String[] args) throws Exception {
    for (Scanner lines = new Scanner(System.in); lines.hasNextLong(); ) {
      System.out.println(count(args, lines.nextLong()));
      System.out.flush();
    }
    System.exit(0);
  }

  static long count(String[] args, long wanted) throws Exception {
    Client client = Client.builder().seedNodes(args[0]).bucket(args[1]).credentials(args[2], args[3])
        .collectionsAware(true).compression(CompressionMode.ENABLED).flowControl(16 << 20).build();
    AtomicLong seen = new AtomicLong(), bytes = new AtomicLong();
    CountDownLatch done = new CountDownLatch(1);
    client.listener(new DatabaseChangeListener() {
      public void onMutation(Mutation one) {
        bytes.addAndGet(one.getContent().length);
        if (seen.incrementAndGet() == wanted) {
          done.countDown();
        }
        one.flowControlAck();
      }
      public void onDeletion(Deletion one) { one.flowControlAck(); }
      public void onFailure(StreamFailure one) { one.getCause().printStackTrace(); System.exit(1); }
    }, FlowControlMode.AUTOMATIC);
    client.connect().block();
    client.initializeState(StreamFrom.BEGINNING, StreamTo.INFINITY).block();
    long begun = System.nanoTime();
    client.startStreaming().block();
    done.await();
    long took = System.nanoTime() - begun;
    client.disconnect().block();
    return took;
  }
}
