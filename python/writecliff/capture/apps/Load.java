import com.datastax.driver.core.BoundStatement;
import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.HostDistance;
import com.datastax.driver.core.PoolingOptions;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.ResultSetFuture;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.SocketOptions;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The load on Cassandra: all records are inserted once in order of their keys, then random ones are
 * written anew, then half of the operations read a random record and half write one.
 *
 * <p>Arguments: port, records, updates, operations, bytes of a value, and optionally a seed and
 * "again" if the records are there. Prints a line a phase, and one of the latencies of its writes in
 * nanoseconds, from the request to the reply.
 */
public final class Load {
    private static final int IN_FLIGHT = 128;
    private static final int RETRIES = 5;

    private final Session session;
    private final PreparedStatement insert;
    private final PreparedStatement select;
    private final int valueBytes;
    private final Random random;
    private final Semaphore slots = new Semaphore(IN_FLIGHT);
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final AtomicLong retried = new AtomicLong();
    private long[] taken = new long[0];
    private final AtomicInteger writes = new AtomicInteger();

    private Load(Session session, int valueBytes, long seed) {
        this.session = session;
        this.valueBytes = valueBytes;
        random = new Random(seed);
        session.execute(
                "CREATE KEYSPACE IF NOT EXISTS bench WITH replication ="
                        + " {'class': 'SimpleStrategy', 'replication_factor': 1}");
        session.execute(
                "CREATE TABLE IF NOT EXISTS bench.records (key text PRIMARY KEY, value blob) WITH compaction ="
                        + " {'class': 'SizeTieredCompactionStrategy', 'min_threshold': 4}"
                        + " AND compression = {'enabled': false}");
        insert = session.prepare("INSERT INTO bench.records (key, value) VALUES (?, ?)");
        select = session.prepare("SELECT value FROM bench.records WHERE key = ?");
    }

    private void write(int key) throws InterruptedException {
        byte[] value = new byte[valueBytes];
        random.nextBytes(value);
        send(insert.bind(name(key), ByteBuffer.wrap(value)), true);
    }

    private void read(int key) throws InterruptedException {
        send(select.bind(name(key)), false);
    }

    private static String name(int key) {
        return String.format("user%012d", key);
    }

    private void send(BoundStatement statement, boolean isWrite) throws InterruptedException {
        slots.acquire();
        issue(statement, RETRIES, isWrite, System.nanoTime());
    }

    /** A small machine may time out while it compacts; such an operation is tried again. */
    private void issue(BoundStatement statement, int retries, boolean isWrite, long begun) {
        ResultSetFuture future = session.executeAsync(statement);
        future.addListener(
                () -> {
                    try {
                        future.getUninterruptibly();
                    } catch (RuntimeException error) {
                        if (retries > 0) {
                            retried.incrementAndGet();
                            issue(statement, retries - 1, isWrite, begun);
                            return;
                        }
                        failure.compareAndSet(null, error);
                    }
                    if (isWrite) {
                        taken[writes.getAndIncrement()] = System.nanoTime() - begun;
                    }
                    slots.release();
                },
                ForkJoinPool.commonPool());
    }

    private void phase(String what, int operations, Step step) throws Exception {
        taken = new long[operations];
        writes.set(0);
        long start = System.nanoTime();
        for (int i = 0; i < operations && failure.get() == null; i++) {
            step.take(i);
        }
        slots.acquire(IN_FLIGHT);
        slots.release(IN_FLIGHT);
        if (failure.get() != null) {
            throw new IllegalStateException(failure.get());
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        System.out.printf(
                "%s: %d operations in %.1f s, %.0f a second, %d tried again%n",
                what, operations, seconds, operations / seconds, retried.getAndSet(0));
        latencies(what);
    }

    private void latencies(String what) {
        int count = writes.get();
        if (count == 0) {
            return;
        }
        long[] sorted = Arrays.copyOf(taken, count);
        Arrays.sort(sorted);
        double[] shares = {0.5, 0.99, 0.999, 1.0};
        long[] points = new long[shares.length];
        for (int i = 0; i < shares.length; i++) {
            points[i] = sorted[(int) Math.ceil(shares[i] * count) - 1];
        }
        System.out.printf(
                "write latency, %s: mean %.0f p50 %d p99 %d p99_9 %d max %d%n",
                what, Arrays.stream(sorted).average().getAsDouble(),
                points[0], points[1], points[2], points[3]);
    }

    private interface Step {
        void take(int index) throws InterruptedException;
    }

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        int records = Integer.parseInt(args[1]);
        int updates = Integer.parseInt(args[2]);
        int operations = Integer.parseInt(args[3]);
        long seed = args.length > 5 ? Long.parseLong(args[5]) : 1;
        boolean isThere = args.length > 6 && args[6].equals("again");
        PoolingOptions pooling =
                new PoolingOptions().setMaxRequestsPerConnection(HostDistance.LOCAL, 1024);
        SocketOptions socket = new SocketOptions().setReadTimeoutMillis(60_000);
        Cluster.Builder builder =
                Cluster.builder()
                        .addContactPoint("127.0.0.1")
                        .withPort(port)
                        .withPoolingOptions(pooling)
                        .withSocketOptions(socket)
                        .withoutMetrics();
        try (Cluster cluster = builder.build();
                Session session = cluster.connect()) {
            Load load = new Load(session, Integer.parseInt(args[4]), seed);
            if (!isThere) {
                load.phase("insert", records, load::write);
            }
            if (updates > 0) {
                load.phase("update", updates, index -> load.write(load.random.nextInt(records)));
            }
            load.phase(
                    "mixed",
                    operations,
                    index -> {
                        int key = load.random.nextInt(records);
                        if (load.random.nextBoolean()) {
                            load.read(key);
                        } else {
                            load.write(key);
                        }
                    });
        }
        System.exit(0); // the driver's threads would linger for seconds
    }
}
