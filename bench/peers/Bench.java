import java.io.*;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.*;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.io.*;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.metrics.*;
import org.apache.iceberg.types.*;

/**
 * Commits of Iceberg Java in one warm JVM. Reads one flat JSON object a line and answers with one.
 * Tables exist already. Writers are threads with catalog and table objects of their own. Times are
 * seconds of the monotonic clock, as Python's `time.monotonic` tells them on Linux.
 */
public class Bench {
  static volatile long delayMs = 0;

  // --- Storage and catalog ---

  /**
   * Plain local files. HadoopFileIO without the native library starts a chmod process and writes a
   * .crc for every file that it creates, which would hide the committer's own cost.
   */
  public static class LocalIO implements FileIO {
    static String path(String location) {
      return location.startsWith("file:") ? location.substring(5).replaceFirst("^/+", "/") : location;
    }

    static void nap() {
      if (delayMs > 0) {
        try {
          Thread.sleep(delayMs);
        } catch (InterruptedException e) {
          throw new RuntimeException(e);
        }
      }
    }

    public InputFile newInputFile(String location) {
      InputFile file = org.apache.iceberg.Files.localInput(path(location));
      return new InputFile() {
        public long getLength() {
          return file.getLength();
        }

        public SeekableInputStream newStream() {
          nap();
          return file.newStream();
        }

        public String location() {
          return location;
        }

        public boolean exists() {
          return file.exists();
        }
      };
    }

    public OutputFile newOutputFile(String location) {
      OutputFile file = org.apache.iceberg.Files.localOutput(path(location));
      return new OutputFile() {
        public PositionOutputStream create() {
          nap();
          return file.create();
        }

        public PositionOutputStream createOrOverwrite() {
          nap();
          return file.createOrOverwrite();
        }

        public String location() {
          return location;
        }

        public InputFile toInputFile() {
          return newInputFile(location);
        }
      };
    }

    public void deleteFile(String location) {
      nap();
      new File(path(location)).delete();
    }

    public void initialize(Map<String, String> properties) {}

    public Map<String, String> properties() {
      return Map.of();
    }
  }

  /** How many tries the last commit of this thread took. */
  public static class Attempts implements MetricsReporter {
    static final ThreadLocal<Long> LAST = ThreadLocal.withInitial(() -> 1L);

    public void report(MetricsReport report) {
      if (report instanceof CommitReport) {
        CounterResult attempts = ((CommitReport) report).commitMetrics().attempts();
        if (attempts != null) LAST.set(attempts.value());
      }
    }
  }

  static JdbcCatalog catalog(String name, String file) {
    JdbcCatalog catalog = new JdbcCatalog();
    catalog.setConf(new Configuration());
    catalog.initialize(
        name,
        new HashMap<>(
            Map.of(
                "uri", "jdbc:sqlite:" + file + "?busy_timeout=30000",
                "warehouse", "file:" + new File(file).getParent() + "/warehouse",
                "jdbc.schema-version", "V1",
                "io-impl", LocalIO.class.getName(),
                "metrics-reporter-impl", Attempts.class.getName())));
    return catalog;
  }

  // --- The files: the same as bench/workload.py ---

  static DataFile file(Table table, int i, int filesADay) {
    return file(table, i, filesADay, 10);
  }

  static DataFile file(Table table, int i, int filesADay, int regions) {
    int day = 20454 + i / filesADay;
    String region = "r" + i % regions;
    PartitionData partition = new PartitionData(table.spec().partitionType());
    partition.set(0, region);
    partition.set(1, day);
    Map<Integer, Long> sizes = new HashMap<>(), values = new HashMap<>();
    Map<Integer, Long> nulls = new HashMap<>(), nans = new HashMap<>();
    Map<Integer, ByteBuffer> lower = new HashMap<>(), upper = new HashMap<>();
    long rows = 1000 + i % 97;
    for (Types.NestedField field : table.schema().columns()) {
      int id = field.fieldId();
      Type type = field.type();
      sizes.put(id, 4000L + id * 13 + i % 1000);
      values.put(id, rows);
      nulls.put(id, (long) (id % 3 == 0 ? i % 5 : 0));
      Object low, high;
      switch (type.typeId()) {
        case LONG:
          low = (long) i * 1000;
          high = (long) i * 1000 + rows;
          break;
        case DOUBLE:
          nans.put(id, 0L);
          low = i * 0.5;
          high = i * 0.5 + 100;
          break;
        case STRING:
          low = id == 2 ? region : "key-" + String.format("%08d", i);
          high = id == 2 ? region : low + "-zzz";
          break;
        case TIMESTAMP:
          low = day * 86400000000L;
          high = day * 86400000000L + 86399999999L;
          break;
        case DECIMAL:
          low = new BigDecimal("-1.25");
          high = new BigDecimal("99999.99");
          break;
        default:
          low = high = day;
      }
      lower.put(id, Conversions.toByteBuffer(type, low));
      upper.put(id, Conversions.toByteBuffer(type, high));
    }
    String folder = "region=" + region + "/ts_day=" + java.time.LocalDate.ofEpochDay(day) + "/";
    String name = String.format("%08d", i) + "-0-0d6f8e1c-5b0f-4c0e-9a53-6f1d2b3c4d5e-00001.parquet";
    return DataFiles.builder(table.spec())
        .withPath(table.location() + "/data/" + folder + name)
        .withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(100000 + i)
        .withPartition(partition)
        .withMetrics(new Metrics(rows, sizes, values, nulls, nans, lower, upper))
        .withSplitOffsets(List.of(4L))
        .build();
  }

  static List<DataFile> files(Table table, int start, int count, int filesADay) {
    List<DataFile> made = new ArrayList<>(count);
    for (int i = start; i < start + count; i++) made.add(file(table, i, filesADay));
    return made;
  }

  static void commit(Table table, List<DataFile> files, boolean fast) {
    AppendFiles append = fast ? table.newFastAppend() : table.newAppend();
    for (DataFile file : files) append.appendFile(file);
    append.commit();
  }

  static double nowS() {
    return System.nanoTime() / 1e9;
  }

  static double cpuS() {
    return ((com.sun.management.OperatingSystemMXBean)
                java.lang.management.ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime()
        / 1e9;
  }

  // --- Commands ---

  /** Writers in threads, back to back until the window ends. */
  static String contend(Command c) throws Exception {
    int writers = c.integer("writers"), prepared = c.integer("prepared");
    boolean fast = c.is("fast");
    CyclicBarrier ready = new CyclicBarrier(writers + 1);
    List<String> landed = Collections.synchronizedList(new ArrayList<>());
    ConcurrentHashMap<String, Integer> failed = new ConcurrentHashMap<>();
    AtomicLong attempts = new AtomicLong();
    double[] window = new double[2];
    Thread[] threads = new Thread[writers];
    for (int w = 0; w < writers; w++) {
      int writer = w;
      threads[w] =
          new Thread(
              () -> {
                try (JdbcCatalog catalog = c.catalog()) {
                  Table table = catalog.loadTable(c.table());
                  List<DataFile> files = files(table, writer * prepared, prepared, 100);
                  ready.await();
                  ready.await();
                  for (DataFile file : files) {
                    double called = nowS();
                    if (called > window[1]) break;
                    Attempts.LAST.set(1L);
                    try {
                      commit(table, List.of(file), fast);
                      landed.add(String.format(Locale.ROOT, "[%.6f,%.6f]", called, nowS()));
                      attempts.addAndGet(Attempts.LAST.get());
                    } catch (Exception e) {
                      failed.merge(e.getClass().getSimpleName(), 1, Integer::sum);
                      table.refresh();
                    }
                  }
                } catch (Exception e) {
                  failed.merge("writer ended by " + e.getClass().getSimpleName(), 1, Integer::sum);
                }
              });
      threads[w].start();
    }
    ready.await();
    double cpu = cpuS();
    window[0] = nowS();
    window[1] = window[0] + c.number("window_s");
    ready.await();
    for (Thread thread : threads) thread.join();
    StringJoiner errors = new StringJoiner(",", "{", "}");
    failed.forEach((name, count) -> errors.add("\"" + name + "\":" + count));
    return String.format(
        Locale.ROOT,
        "{\"started_s\":%.6f,\"ended_s\":%.6f,\"requests\":%s,\"failed\":%s,\"attempts\":%d,\"cpu_s\":%.3f}",
        window[0], nowS(), landed, errors, attempts.get(), cpuS() - cpu);
  }

  // --- Operations ---

  /** What one writer does to its own partition, again and again. */
  static class Operator {
    final String kind, region;
    final int writer, writers;
    final Table table;
    final List<DataFile> files = new ArrayList<>();
    final DeleteFile[] vectors = new DeleteFile[OWN_FILES];
    DeleteFile vector;
    int landed = 0;

    static final int OWN_FILES = 4, ONE_DAY = 1 << 30;

    Operator(String kind, int writer, int writers, Table table) {
      this.kind = kind;
      this.writer = writer;
      this.writers = writers;
      this.table = table;
      this.region = "r" + writer;
      for (int i = 0; i < OWN_FILES; i++) files.add(made(i));
    }

    DataFile made(int count) {
      return file(table, writer + count * writers, ONE_DAY, writers);
    }

    int turn() {
      return landed % OWN_FILES;
    }

    FileMetadata.Builder deletes(long rows) {
      return FileMetadata.deleteFileBuilder(table.spec())
          .withPartition(files.get(0).partition())
          .withFileSizeInBytes(200)
          .withRecordCount(rows);
    }

    /** A commit as Spark asks for it: checked against the snapshot that the writer has read. */
    PendingUpdate<?> next() {
      table.refresh();
      long base = table.currentSnapshot().snapshotId();
      org.apache.iceberg.expressions.Expression own =
          org.apache.iceberg.expressions.Expressions.equal("region", region);
      String name = table.location() + "/data/" + UUID.randomUUID();
      switch (kind) {
        case "vectors":
          DataFile file = files.get(turn());
          DeleteFile before = vectors[turn()];
          vector =
              deletes(before == null ? 1 : before.recordCount() + 1)
                  .ofPositionDeletes()
                  .withFormat(FileFormat.PUFFIN)
                  .withPath(name + ".puffin")
                  .withReferencedDataFile(file.location())
                  .withContentOffset(4)
                  .withContentSizeInBytes(40)
                  .build();
          RowDelta delta =
              table
                  .newRowDelta()
                  .addDeletes(vector)
                  .validateFromSnapshot(base)
                  .conflictDetectionFilter(own)
                  .validateDataFilesExist(List.of(file.location()));
          return before == null ? delta : delta.removeDeletes(before);
        case "upserts":
          DeleteFile keys =
              deletes(10).ofEqualityDeletes(1).withFormat(FileFormat.PARQUET).withPath(name + ".parquet").build();
          return table.newRowDelta().addRows(made(OWN_FILES + landed)).addDeletes(keys);
        case "overwrites":
          return table
              .newOverwrite()
              .overwriteByRowFilter(own)
              .addFile(made(OWN_FILES + landed))
              .validateFromSnapshot(base)
              .conflictDetectionFilter(own)
              .validateNoConflictingData()
              .validateNoConflictingDeletes();
        default:
          throw new IllegalArgumentException(kind);
      }
    }

    void landed() {
      vectors[turn()] = vector;
      landed++;
    }
  }

  /** Writers in threads, each with its own partition, back to back until the window ends. */
  static String operate(Command c) throws Exception {
    int writers = c.integer("writers");
    CyclicBarrier ready = new CyclicBarrier(writers + 1);
    List<String> landed = Collections.synchronizedList(new ArrayList<>());
    ConcurrentHashMap<String, Integer> failed = new ConcurrentHashMap<>();
    double[] window = new double[2];
    try (JdbcCatalog catalog = c.catalog()) {
      Table table = catalog.loadTable(c.table());
      List<DataFile> base = new ArrayList<>();
      for (int w = 0; w < writers; w++) base.addAll(new Operator("", w, writers, table).files);
      commit(table, base, true);
    }
    Thread[] threads = new Thread[writers];
    for (int w = 0; w < writers; w++) {
      int writer = w;
      threads[w] =
          new Thread(
              () -> {
                try (JdbcCatalog catalog = c.catalog()) {
                  Operator operator =
                      new Operator(c.text("kind"), writer, writers, catalog.loadTable(c.table()));
                  ready.await();
                  ready.await();
                  for (double called = nowS(); called <= window[1]; called = nowS()) {
                    try {
                      operator.next().commit();
                      operator.landed();
                      landed.add(String.format(Locale.ROOT, "[%.6f,%.6f]", called, nowS()));
                    } catch (Exception e) {
                      failed.merge(e.getClass().getSimpleName(), 1, Integer::sum);
                    }
                  }
                } catch (Exception e) {
                  failed.merge("writer ended by " + e.getClass().getSimpleName(), 1, Integer::sum);
                }
              });
      threads[w].start();
    }
    ready.await();
    double cpu = cpuS();
    window[0] = nowS();
    window[1] = window[0] + c.number("window_s");
    ready.await();
    for (Thread thread : threads) thread.join();
    StringJoiner errors = new StringJoiner(",", "{", "}");
    failed.forEach((name, count) -> errors.add("\"" + name + "\":" + count));
    return String.format(
        Locale.ROOT,
        "{\"started_s\":%.6f,\"ended_s\":%.6f,\"requests\":%s,\"failed\":%s,\"cpu_s\":%.3f}",
        window[0], nowS(), landed, errors, cpuS() - cpu);
  }

  // --- A compaction beside a stream: the same as bench/compacting.py ---

  /** The files of region 0 are the stream's own, those of each other one are a group. */
  static class Regions {
    final Table table;
    final int groups, files;

    Regions(Table table, Command c) {
      this.table = table;
      this.groups = c.integer("groups");
      this.files = c.integer("files");
    }

    DataFile made(int region, int count) {
      int regions = groups + 1;
      return file(table, region + count * regions, Operator.ONE_DAY, regions);
    }

    List<DataFile> first() {
      List<DataFile> made = new ArrayList<>();
      for (int region = 0; region <= groups; region++)
        for (int i = 0; i < (region > 0 ? files : Operator.OWN_FILES); i++) made.add(made(region, i));
      return made;
    }
  }

  /** Row deltas, one each period; every so many on a file of a group. */
  static class Deltas {
    final Regions regions;
    final Table table;
    final int hitEvery;
    final Map<DataFileKey, DeleteFile> vectors = new HashMap<>();
    /** Regions that the compaction has rewritten, as a look at the table tells. */
    final Set<Integer> gone;
    final Map<Integer, Integer> hits = new TreeMap<>();
    int own = 0, count = 0;

    record DataFileKey(int region, int count) {}

    Deltas(Regions regions, int hitEvery, Set<Integer> gone) {
      this.gone = gone;
      this.regions = regions;
      this.table = regions.table;
      this.hitEvery = hitEvery;
    }

    DataFileKey target() {
      int region = 1 + (count + 1) / hitEvery * 37 % regions.groups;
      boolean isOwn = (count + 1) % hitEvery != 0 || gone.contains(region);
      return isOwn ? new DataFileKey(0, count % Operator.OWN_FILES) : new DataFileKey(region, 0);
    }

    void next() {
      DataFileKey target = target();
      try {
        table.refresh();
        DataFile file = regions.made(target.region, target.count);
        DeleteFile before = vectors.get(target);
        DeleteFile vector =
            FileMetadata.deleteFileBuilder(table.spec())
                .withPartition(file.partition())
                .withFileSizeInBytes(200)
                .withRecordCount(before == null ? 1 : before.recordCount() + 1)
                .ofPositionDeletes()
                .withFormat(FileFormat.PUFFIN)
                .withPath(table.location() + "/data/" + UUID.randomUUID() + ".puffin")
                .withReferencedDataFile(file.location())
                .withContentOffset(4)
                .withContentSizeInBytes(40)
                .build();
        RowDelta delta =
            table
                .newRowDelta()
                .addDeletes(vector)
                .validateFromSnapshot(table.currentSnapshot().snapshotId())
                .conflictDetectionFilter(
                    org.apache.iceberg.expressions.Expressions.equal("region", "r" + target.region))
                .validateDataFilesExist(List.of(file.location()))
                .validateDeletedFiles();
        if (before != null) delta.removeDeletes(before);
        delta.commit();
        vectors.put(target, vector);
        if (target.region == 0) own++;
        else hits.merge(target.region - 1, 1, Integer::sum);
      } catch (RuntimeException e) {
        gone.add(target.region);
        throw e;
      } finally {
        count++;
      }
    }
  }

  /** Passes over the groups that are left, by so many commits each, until the window ends. */
  static class Compaction {
    final Set<Integer> rewritten = ConcurrentHashMap.newKeySet();
    final List<Double> commitsMs = Collections.synchronizedList(new ArrayList<>());
    List<Integer> left = new ArrayList<>();
    int lost = 0, retried = 0;
    double tookS = 0;

    void run(Regions regions, Command c, double start, double end) throws Exception {
      for (int group = 0; group < regions.groups; group++) left.add(group);
      int share = regions.groups / c.integer("parts");
      for (int pass = 0; !left.isEmpty() && nowS() < end; pass++) {
        regions.table.refresh();
        Snapshot base = regions.table.currentSnapshot();
        List<Integer> missed = new ArrayList<>();
        if (pass > 0) retried += left.size();
        for (int i = 0; i < left.size(); i += share) {
          List<Integer> part = left.subList(i, Math.min(i + share, left.size()));
          Thread.sleep((long) (c.number("work_s") * 1000 / regions.groups * part.size()));
          double called = nowS();
          try {
            rewrite(regions, part, base, pass);
            for (int group : part) rewritten.add(group + 1);
            tookS = nowS() - start;
            commitsMs.add((nowS() - called) * 1e3);
          } catch (Exception e) {
            missed.addAll(part);
          }
        }
        lost += missed.size();
        left = missed;
      }
    }

    static void rewrite(Regions regions, List<Integer> groups, Snapshot base, int pass) {
      RewriteFiles rewrite =
          regions
              .table
              .newRewrite()
              .validateFromSnapshot(base.snapshotId())
              .dataSequenceNumber(base.sequenceNumber());
      for (int group : groups) {
        for (int i = 0; i < regions.files; i++) rewrite.deleteFile(regions.made(group + 1, i));
        rewrite.addFile(regions.made(group + 1, regions.files + pass));
      }
      rewrite.commit();
    }
  }

  /** A stream that commits a row delta each period, and a compaction beside it. */
  static String compact(Command c) throws Exception {
    List<String> landed = Collections.synchronizedList(new ArrayList<>());
    ConcurrentHashMap<String, Integer> failed = new ConcurrentHashMap<>();
    try (JdbcCatalog mine = c.catalog();
        JdbcCatalog others = c.catalog()) {
      Regions regions = new Regions(mine.loadTable(c.table()), c);
      commit(regions.table, regions.first(), true);
      Compaction compaction = new Compaction();
      Deltas deltas = new Deltas(regions, c.integer("hit_every"), compaction.rewritten);
      Regions compacted = new Regions(others.loadTable(c.table()), c);
      double cpu = cpuS(), start = nowS(), end = start + c.number("window_s");
      Thread beside =
          new Thread(
              () -> {
                try {
                  compaction.run(compacted, c, start, end);
                } catch (Exception e) {
                  failed.merge("compaction ended by " + e.getClass().getSimpleName(), 1, Integer::sum);
                }
              });
      if (c.is("compacts")) beside.start();
      for (double due = start; due < end; due = Math.max(due + c.number("period_s"), nowS())) {
        Thread.sleep((long) Math.max(0, (due - nowS()) * 1e3));
        double called = nowS();
        try {
          deltas.next();
          landed.add(String.format(Locale.ROOT, "[%.6f,%.6f]", called, nowS()));
        } catch (Exception e) {
          failed.merge(e.getClass().getSimpleName(), 1, Integer::sum);
        }
      }
      beside.join();
      StringJoiner errors = new StringJoiner(",", "{", "}");
      failed.forEach((name, count) -> errors.add("\"" + name + "\":" + count));
      StringJoiner hits = new StringJoiner(",", "[", "]");
      deltas.hits.forEach((group, count) -> hits.add("[" + group + "," + count + "]"));
      List<Integer> done = new ArrayList<>();
      for (int group = 0; c.is("compacts") && group < regions.groups; group++)
        if (!compaction.left.contains(group)) done.add(group);
      return String.format(
          Locale.ROOT,
          "{\"started_s\":%.6f,\"ended_s\":%.6f,\"requests\":%s,\"failed\":%s,\"cpu_s\":%.3f,"
              + "\"own\":%d,\"hits\":%s,\"landed\":%s,\"lost\":%d,\"retried\":%d,"
              + "\"took_s\":%.3f,\"commits_ms\":%s}",
          start, nowS(), landed, errors, cpuS() - cpu,
          deltas.own, hits, done, compaction.lost, compaction.retried,
          compaction.tookS, compaction.commitsMs);
    }
  }

  /** One writer, commits of so many files each, one after another until the limit. */
  static String commits(Command c) throws Exception {
    int count = c.integer("count"), files = c.integer("files"), start = c.integer("start");
    boolean fast = c.is("fast");
    List<String> ms = new ArrayList<>();
    List<Long> bytes = new ArrayList<>();
    double end = nowS() + c.number("limit_s");
    try (JdbcCatalog catalog = c.catalog()) {
      Table table = catalog.loadTable(c.table());
      for (int i = 0; i < count && nowS() < end; i++) {
        List<DataFile> made = files(table, start + i * files, files, c.integer("files_a_day"));
        double called = nowS();
        commit(table, made, fast);
        ms.add(String.format(Locale.ROOT, "%.3f", (nowS() - called) * 1e3));
        bytes.add(metadataBytes(table));
      }
    }
    return "{\"ms\":" + ms + ",\"metadata_bytes\":" + bytes + "}";
  }

  static long metadataBytes(Table table) throws IOException {
    String location = ((HasTableOperations) table).operations().current().metadataFileLocation();
    return Files.size(Paths.get(LocalIO.path(location)));
  }

  /** One command: a flat JSON object of texts, numbers and booleans. */
  static class Command {
    private static final Pattern FIELD =
        Pattern.compile("\"(\\w+)\": (?:\"([^\"\\\\]*)\"|([-+.\\deE]+|true|false))");
    private final Map<String, String> fields = new HashMap<>();

    Command(String line) {
      Matcher found = FIELD.matcher(line);
      while (found.find()) {
        fields.put(found.group(1), found.group(2) != null ? found.group(2) : found.group(3));
      }
    }

    String text(String name) {
      return Objects.requireNonNull(fields.get(name), name);
    }

    int integer(String name) {
      return Integer.parseInt(text(name));
    }

    double number(String name) {
      return Double.parseDouble(text(name));
    }

    boolean is(String name) {
      return Boolean.parseBoolean(text(name));
    }

    JdbcCatalog catalog() {
      return Bench.catalog(text("catalog"), text("catalog_file"));
    }

    TableIdentifier table() {
      return TableIdentifier.parse(text("table"));
    }
  }

  static String answer(Command command) {
    try {
      delayMs = command.integer("delay_ms");
      switch (command.text("do")) {
        case "contend":
          return contend(command);
        case "commits":
          return commits(command);
        case "operate":
          return operate(command);
        case "compact":
          return compact(command);
        default:
          throw new IllegalArgumentException(command.text("do"));
      }
    } catch (Exception e) {
      return "{\"error\":\"" + e.toString().replaceAll("[\"\\\\\\n]", " ") + "\"}";
    }
  }

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      answers.println(answer(new Command(line)));
      answers.flush();
    }
  }
}
