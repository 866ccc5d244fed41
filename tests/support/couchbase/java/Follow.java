import com.couchbase.client.dcp.Client;
import com.couchbase.client.dcp.StreamFrom;
import com.couchbase.client.dcp.StreamTo;
import com.couchbase.client.dcp.config.CompressionMode;
import com.couchbase.client.dcp.highlevel.CollectionCreated;
import com.couchbase.client.dcp.highlevel.CollectionDropped;
import com.couchbase.client.dcp.highlevel.DatabaseChangeListener;
import com.couchbase.client.dcp.highlevel.Deletion;
import com.couchbase.client.dcp.highlevel.DocumentChange;
import com.couchbase.client.dcp.highlevel.FlowControlMode;
import com.couchbase.client.dcp.highlevel.Mutation;
import com.couchbase.client.dcp.highlevel.Rollback;
import com.couchbase.client.dcp.highlevel.ScopeCreated;
import com.couchbase.client.dcp.highlevel.ScopeDropped;
import com.couchbase.client.dcp.highlevel.StreamFailure;
import com.couchbase.client.dcp.message.StreamFlag;

import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Base64;
import java.util.EnumSet;
import java.util.concurrent.TimeUnit;

/** Follows a bucket with the official client and prints a line for each change; ends with its standard input.
 * Arguments: node, bucket, user, password, compression, window in bytes, polling in ms, collections with commas between
 * or an empty text, BEGINNING or NOW, the PEM file of who is trusted or an
 * empty text for no TLS. */
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
    if (!args[7].isEmpty()) {
      builder.collectionNames(Arrays.asList(args[7].split(",")));
    }
    builder.optionalStreamFlags(EnumSet.of(StreamFlag.IGNORE_PURGED_TOMBSTONES)); // as the connector has it
    if (!args[9].isEmpty()) {
      builder.securityConfig(it -> it.enableTls(true).trustCertificate(Paths.get(args[9])));
    }
    Client client = builder.build();
    client.listener(new DatabaseChangeListener() {
      public void onMutation(Mutation one) { change("mutation", one); }
      public void onDeletion(Deletion one) { change("deletion", one); }
      public void onCollectionCreated(CollectionCreated one) { print("collection " + one.getVbucket()); }
      public void onCollectionDropped(CollectionDropped one) { print("dropped " + one.getVbucket()); }
      public void onScopeCreated(ScopeCreated one) { print("scope " + one.getVbucket()); }
      public void onScopeDropped(ScopeDropped one) { print("dropped-scope " + one.getVbucket()); }
      public void onRollback(Rollback one) { print("rollback " + one.getVbucket() + " " + one.getSeqno()); one.resume(); }
      public void onFailure(StreamFailure one) { print("failure " + one.getVbucket() + " " + one.getCause()); }
    }, FlowControlMode.AUTOMATIC);
    client.connect().block();
    client.initializeState(StreamFrom.valueOf(args[8]), StreamTo.INFINITY).block();
    client.startStreaming().block();
    print("streaming");
    while (System.in.read() >= 0) { }
    client.disconnect().block();
    System.exit(0);
  }
}
