import com.couchbase.client.dcp.Client;
import com.couchbase.client.dcp.StreamFrom;
import com.couchbase.client.dcp.StreamTo;
import com.couchbase.client.dcp.config.CompressionMode;
import com.couchbase.client.dcp.highlevel.CollectionCreated;
import com.couchbase.client.dcp.highlevel.DatabaseChangeListener;
import com.couchbase.client.dcp.highlevel.Deletion;
import com.couchbase.client.dcp.highlevel.DocumentChange;
import com.couchbase.client.dcp.highlevel.FlowControlMode;
import com.couchbase.client.dcp.highlevel.Mutation;
import com.couchbase.client.dcp.highlevel.Rollback;
import com.couchbase.client.dcp.highlevel.StreamFailure;

import java.util.Base64;
import java.util.concurrent.TimeUnit;

/** Follows a bucket with the official client and prints a line for each change; ends with its standard input. */
public class Follow {
  static void print(String line) {
    synchronized (System.out) {
      System.out.println(line);
      System.out.flush();
    }
  }

  static void change(String kind, DocumentChange one) {
    String content = Base64.getEncoder().encodeToString(one.getContent());
    print(kind + " " + one.getVbucket() + " " + one.getOffset().getSeqno() + " " + one.getOffset().getVbuuid() + " "
        + one.getRevision() + " " + one.getCas() + " " + one.getQualifiedKey() + " " + content);
    one.flowControlAck();
  }

  public static void main(String[] args) throws Exception {
    Client.Builder builder = Client.builder().seedNodes(args[0]).bucket(args[1]).credentials(args[2], args[3])
        .collectionsAware(true).compression(CompressionMode.valueOf(args[4])).flowControl(Integer.parseInt(args[5]));
    if (Integer.parseInt(args[6]) > 0) {
      builder.mitigateRollbacks(Integer.parseInt(args[6]), TimeUnit.MILLISECONDS);
    }
    Client client = builder.build();
    client.listener(new DatabaseChangeListener() {
      public void onMutation(Mutation one) { change("mutation", one); }
      public void onDeletion(Deletion one) { change("deletion", one); }
      public void onCollectionCreated(CollectionCreated one) { print("collection " + one.getVbucket()); }
      public void onRollback(Rollback one) { print("rollback " + one.getVbucket() + " " + one.getSeqno()); one.resume(); }
      public void onFailure(StreamFailure one) { print("failure " + one.getVbucket() + " " + one.getCause()); }
    }, FlowControlMode.AUTOMATIC);
    client.connect().block();
    client.initializeState(StreamFrom.BEGINNING, StreamTo.INFINITY).block();
    client.startStreaming().block();
    print("streaming");
    while (System.in.read() >= 0) { }
    client.disconnect().block();
    System.exit(0);
  }
}
