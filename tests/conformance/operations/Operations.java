package org.apache.iceberg;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.ExpressionParser;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.DataFileSet;
import org.apache.iceberg.util.DeleteFileSet;

/**
 * What Iceberg Java answers to a case: a table, and steps that follow one another. Reads a case a
 * line as JSON (case.py describes the form) and prints for each a line with an answer for every
 * step. Tables live in memory, and no data file is ever opened.
 */
public class Operations {
  static final ObjectMapper JSON = new ObjectMapper();
  static final Schema SCHEMA =
      new Schema(
          Types.NestedField.required(1, "id", Types.LongType.get()),
          Types.NestedField.optional(2, "p", Types.StringType.get()));
  static final InMemoryCatalog CATALOG = new InMemoryCatalog();
  static int tables = 0;

  /** How an exception's message begins, and the code of it. */
  static final String[][] CODES = {
    {"Deletes are supported in V2 and above", "version"},
    {"Must use DVs for position deletes", "version"},
    {"Found conflicting files", "added"},
    {"Found conflicting deleted files", "deleted"},
    {"Found new conflicting delete files", "newdel"},
    {"Missing required files", "missing"},
    {"Cannot commit, missing data files", "exist"},
    {"Cannot commit, found new delete for", "filedel"},
    {"Cannot commit, found new position delete", "filepos"},
    {"Found concurrently added DV", "dv"},
    {"Cannot determine history", "history"},
    {"Snapshot ", "ancestor"},
    {"Cannot delete file where some, but not all", "partial"},
    {"Cannot commit file that conflicts with existing partition", "live"},
    {"Cannot append file with rows that do not match filter", "partial"},
    {"Cannot cherry-pick", "incompatible"},
    {"Cannot fast-forward", "ancestor"},
    {"Cannot roll back", "ancestor"},
    {"Cannot rollback", "ancestor"},
    {"Duplicate request to cherry pick", "picked"},
  };

  final JsonNode asked;
  final Table table;
  final Map<String, ContentFile<?>> files = new HashMap<>();
  /** The head of every branch after so many steps. */
  final List<Map<String, Long>> heads = new ArrayList<>();
  /** The snapshot that a step made, by its number from 1. */
  final Map<Integer, Long> made = new HashMap<>();

  Operations(JsonNode asked) {
    this.asked = asked;
    PartitionSpec spec =
        asked.get("spec").asText().equals("p")
            ? PartitionSpec.builderFor(SCHEMA).identity("p").build()
            : PartitionSpec.unpartitioned();
    Map<String, String> properties = new HashMap<>();
    properties.put("format-version", asked.get("version").asText());
    asked.get("properties").fields().forEachRemaining(one -> properties.put(one.getKey(), one.getValue().asText()));
    this.table = CATALOG.createTable(TableIdentifier.of("db", "t" + tables++), SCHEMA, spec, properties);
  }

  public static void main(String[] arguments) throws Exception {
    CATALOG.initialize("oracle", Map.of());
    CATALOG.createNamespace(Namespace.of("db"));
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      System.out.println(JSON.writeValueAsString(new Operations(JSON.readTree(line)).answers()));
    }
  }

  ArrayNode answers() throws Exception {
    ArrayNode answers = JSON.createArrayNode();
    remember();
    int number = 0;
    for (JsonNode step : asked.get("steps")) {
      number++;
      Map<String, Long> before = heads.get(heads.size() - 1);
      long ids = ops().current().snapshots().size();
      ObjectNode answer = answers.addObject();
      try {
        run(step);
        answer.put("code", "ok");
      } catch (Throwable error) {
        answer.put("code", code(error));
      }
      table.refresh();
      List<Snapshot> all = ops().current().snapshots();
      if (answer.get("code").asText().equals("ok") && all.size() > ids) {
        Snapshot added = newest(all);
        made.put(number, added.snapshotId());
        answer.set("snapshot", describe(added));
      }
      remember();
      answer.set("moved", moved(before, heads.get(heads.size() - 1)));
      answer.put("last-sequence-number", ops().current().lastSequenceNumber());
      if (ops().current().formatVersion() >= 3) {
        answer.put("next-row-id", ops().current().nextRowId());
      }
      if (table.currentSnapshot() != null && !isReadable()) {
        answer.put("unreadable", true);
      }
    }
    CATALOG.dropTable(TableIdentifier.of("db", "t" + (tables - 1)), false);
    return answers;
  }

  static Snapshot newest(List<Snapshot> all) {
    Snapshot found = all.get(0);
    for (Snapshot one : all) {
      found = one.sequenceNumber() >= found.sequenceNumber() ? one : found;
    }
    return found;
  }

  boolean isReadable() throws Exception {
    try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
      for (FileScanTask task : tasks) {
        task.deletes().size();
      }
      return true;
    } catch (RuntimeException error) {
      return false;
    }
  }

  TableOperations ops() {
    return ((HasTableOperations) table).operations();
  }

  void remember() {
    Map<String, Long> now = new TreeMap<>();
    table.refs().forEach((name, ref) -> now.put(name, ref.snapshotId()));
    heads.add(now);
  }

  /** The refs that moved: the number of the step whose snapshot each is at, null if it is gone. */
  ObjectNode moved(Map<String, Long> before, Map<String, Long> after) {
    ObjectNode found = JSON.createObjectNode();
    Map<Long, Integer> steps = new HashMap<>();
    made.forEach((step, snapshot) -> steps.put(snapshot, step));
    for (String name : new java.util.TreeSet<>(join(before, after))) {
      Long now = after.get(name);
      if (now == null) {
        found.putNull(name);
      } else if (!now.equals(before.get(name))) {
        found.put(name, steps.get(now));
      }
    }
    return found;
  }

  static List<String> join(Map<String, Long> one, Map<String, Long> other) {
    List<String> names = new ArrayList<>(one.keySet());
    names.addAll(other.keySet());
    return names;
  }

  static String code(Throwable error) {
    String message = String.valueOf(error.getMessage());
    for (String[] one : CODES) {
      if (message.startsWith(one[0])) {
        return one[1];
      }
    }
    return error.getClass().getSimpleName() + ": " + message.split("\n")[0].replaceAll("\\d{6,}", "N");
  }

  // --- Steps ---

  void run(JsonNode step) throws Exception {
    switch (step.get("do").asText()) {
      case "rewrite-manifests" -> rewriteManifests(step);
      case "cherry-pick" -> table.manageSnapshots().cherrypick(snapshot(step)).commit();
      case "set-current" -> table.manageSnapshots().setCurrentSnapshot(snapshot(step)).commit();
      case "roll-back" -> table.manageSnapshots().rollbackTo(snapshot(step)).commit();
      case "create-branch" -> createBranch(step);
      case "create-tag" -> table.manageSnapshots().createTag(text(step, "name"), snapshot(step)).commit();
      case "fast-forward" ->
          table.manageSnapshots().fastForwardBranch(text(step, "name"), text(step, "to")).commit();
      case "remove-branch" -> table.manageSnapshots().removeBranch(text(step, "name")).commit();
      case "change-spec" -> changeSpec(step);
      case "set-properties" -> setProperties(step);
      case "upgrade" ->
          ops().commit(ops().current(), ops().current().upgradeToFormatVersion(step.get("version").asInt()));
      case "expire" ->
          table.expireSnapshots().expireOlderThan(System.currentTimeMillis() + 60_000).retainLast(1)
              .cleanExpiredFiles(false).commit();
      default -> change(step).commit();
    }
  }

  SnapshotUpdate<?> change(JsonNode step) {
    SnapshotUpdate<?> made =
        switch (step.get("do").asText()) {
          case "append" -> append(step);
          case "overwrite" -> overwrite(step);
          case "replace-partitions" -> replacePartitions(step);
          case "delete" -> delete(step);
          case "row-delta" -> rowDelta(step);
          case "rewrite" -> rewrite(step);
          default -> throw new IllegalStateException("not a step: " + step);
        };
    if (has(step, "branch")) {
      made.toBranch(text(step, "branch"));
    }
    if (has(step, "stage")) {
      made.stageOnly();
      made.set("wap.id", text(step, "stage"));
    }
    return made;
  }

  SnapshotUpdate<?> append(JsonNode step) {
    AppendFiles change = has(step, "fast") ? table.newFastAppend() : table.newAppend();
    each(step, "add", one -> change.appendFile(newFile(one)));
    return change;
  }

  SnapshotUpdate<?> overwrite(JsonNode step) {
    OverwriteFiles change = table.newOverwrite();
    if (has(step, "filter")) {
      change.overwriteByRowFilter(filter(step, "filter"));
    }
    each(step, "add", one -> change.addFile(newFile(one)));
    if (has(step, "remove-deletes")) {
      change.deleteFiles(data(step, "remove"), deletes(step, "remove-deletes"));
    } else {
      each(step, "remove", one -> change.deleteFile(dataFile(one)));
    }
    if (has(step, "conflict-filter")) {
      change.conflictDetectionFilter(filter(step, "conflict-filter"));
    }
    Long start = start(step);
    if (start != null) {
      change.validateFromSnapshot(start);
    }
    if (has(step, "within-filter")) {
      change.validateAddedFilesMatchOverwriteFilter();
    }
    if (isSnapshot(step)) {
      change.validateNoConflictingDeletes();
    }
    if (isSerializable(step)) {
      change.validateNoConflictingData();
    }
    return change;
  }

  SnapshotUpdate<?> replacePartitions(JsonNode step) {
    ReplacePartitions change = table.newReplacePartitions();
    each(step, "add", one -> change.addFile(newFile(one)));
    Long start = start(step);
    if (start != null) {
      change.validateFromSnapshot(start);
    }
    if (has(step, "append-only")) {
      change.validateAppendOnly();
    }
    if (isSnapshot(step)) {
      change.validateNoConflictingDeletes();
    }
    if (isSerializable(step)) {
      change.validateNoConflictingData();
    }
    return change;
  }

  SnapshotUpdate<?> delete(JsonNode step) {
    DeleteFiles change = table.newDelete();
    if (has(step, "filter")) {
      change.deleteFromRowFilter(filter(step, "filter"));
    }
    each(step, "remove", one -> change.deleteFile(dataFile(one)));
    if (has(step, "must-exist")) {
      change.validateFilesExist();
    }
    return change;
  }

  SnapshotUpdate<?> rowDelta(JsonNode step) {
    RowDelta change = table.newRowDelta();
    each(step, "add", one -> change.addRows(newFile(one)));
    each(step, "add-deletes", one -> change.addDeletes(newDelete(one)));
    each(step, "remove", one -> change.removeRows(dataFile(one)));
    each(step, "remove-deletes", one -> change.removeDeletes(deleteFile(one)));
    if (has(step, "conflict-filter")) {
      change.conflictDetectionFilter(filter(step, "conflict-filter"));
    }
    Long start = start(step);
    if (start != null) {
      change.validateFromSnapshot(start);
    }
    if (has(step, "exist")) {
      List<CharSequence> paths = new ArrayList<>();
      each(step, "exist", one -> paths.add(dataFile(one).location()));
      change.validateDataFilesExist(paths);
    }
    if (has(step, "update")) {
      change.validateDeletedFiles();
      change.validateNoConflictingDeleteFiles();
    }
    if (isSerializable(step)) {
      change.validateNoConflictingDataFiles();
    }
    return change;
  }

  SnapshotUpdate<?> rewrite(JsonNode step) {
    RewriteFiles change = table.newRewrite();
    each(step, "remove", one -> change.deleteFile(dataFile(one)));
    each(step, "remove-deletes", one -> change.deleteFile(deleteFile(one)));
    each(step, "add", one -> change.addFile(newFile(one)));
    each(
        step,
        "add-deletes",
        one -> {
          if (one.has("number")) {
            change.addFile(newDelete(one), one.get("number").asLong());
          } else {
            change.addFile(newDelete(one));
          }
        });
    Long start = start(step);
    if (start != null) {
      change.validateFromSnapshot(start);
    }
    if (has(step, "number")) {
      change.dataSequenceNumber(step.get("number").asLong());
    }
    return change;
  }

  void rewriteManifests(JsonNode step) throws Exception {
    RewriteManifests change = table.rewriteManifests();
    change.clusterBy(file -> "all");
    change.commit();
  }

  void createBranch(JsonNode step) {
    if (has(step, "at") || has(step, "step")) {
      table.manageSnapshots().createBranch(text(step, "name"), snapshot(step)).commit();
    } else {
      table.manageSnapshots().createBranch(text(step, "name")).commit();
    }
  }

  void changeSpec(JsonNode step) {
    UpdatePartitionSpec change = table.updateSpec();
    each(step, "add", one -> {
      if (one.asText().equals("bucket")) {
        change.addField("id_bucket", Expressions.bucket("id", 4));
      } else {
        change.addField(one.asText());
      }
    });
    each(step, "remove", one -> change.removeField(one.asText()));
    change.commit();
  }

  void setProperties(JsonNode step) {
    UpdateProperties change = table.updateProperties();
    step.get("properties").fields().forEachRemaining(one -> change.set(one.getKey(), one.getValue().asText()));
    change.commit();
  }

  // --- What a step names ---

  interface Each {
    void with(JsonNode one);
  }

  static void each(JsonNode step, String key, Each take) {
    if (step.has(key)) {
      step.get(key).forEach(take::with);
    }
  }

  static boolean has(JsonNode step, String key) {
    return step.hasNonNull(key) && !(step.get(key).isBoolean() && !step.get(key).asBoolean());
  }

  static String text(JsonNode step, String key) {
    return step.get(key).asText();
  }

  static boolean isSnapshot(JsonNode step) {
    return has(step, "level");
  }

  static boolean isSerializable(JsonNode step) {
    return isSnapshot(step) && text(step, "level").equals("serializable");
  }

  static Expression filter(JsonNode step, String key) {
    return ExpressionParser.fromJson(step.get(key).toString());
  }

  /** The head after `from` steps of the step's branch, of main where that had none. */
  Long start(JsonNode step) {
    if (!step.hasNonNull("from")) {
      return null;
    }
    Map<String, Long> then = heads.get(step.get("from").asInt());
    Long found = has(step, "branch") ? then.get(text(step, "branch")) : null;
    return found != null ? found : then.get("main");
  }

  /** The snapshot that the step of this number made. */
  long snapshot(JsonNode step) {
    Long found = made.get(step.get("step").asInt());
    return found == null ? 404L : found;
  }

  DataFileSet data(JsonNode step, String key) {
    DataFileSet found = DataFileSet.create();
    each(step, key, one -> found.add(dataFile(one)));
    return found;
  }

  DeleteFileSet deletes(JsonNode step, String key) {
    DeleteFileSet found = DeleteFileSet.create();
    each(step, key, one -> found.add(deleteFile(one)));
    return found;
  }

  DataFile dataFile(JsonNode name) {
    ContentFile<?> known = files.get(name.asText());
    // A file that the table never had.
    return known != null ? (DataFile) known
        : build(JSON.createObjectNode().put("name", name.asText()).put("at", "").put("spec", 0));
  }

  DeleteFile deleteFile(JsonNode name) {
    return (DeleteFile) files.get(name.asText());
  }

  PartitionSpec spec(JsonNode one) {
    return one.has("spec") ? table.specs().get(one.get("spec").asInt()) : table.spec();
  }

  DataFile newFile(JsonNode one) {
    DataFile made = build(one);
    files.put(text(one, "name"), made);
    return made;
  }

  DataFile build(JsonNode one) {
    PartitionSpec spec = spec(one);
    long records = one.has("records") ? one.get("records").asLong() : 10;
    DataFiles.Builder builder =
        DataFiles.builder(spec).withPath(path(one, "parquet")).withFileSizeInBytes(1_000).withRecordCount(records);
    if (spec.isPartitioned() && !text(one, "at").isEmpty()) {
      builder.withPartitionPath(text(one, "at"));
    }
    if (one.has("ids")) {
      builder.withMetrics(metrics(one.get("ids"), records));
    }
    return builder.build();
  }

  static Metrics metrics(JsonNode ids, long records) {
    var type = Types.LongType.get();
    return new Metrics(
        records,
        null,
        Map.of(1, records),
        Map.of(1, 0L),
        null,
        Map.of(1, Conversions.toByteBuffer(type, ids.get(0).asLong())),
        Map.of(1, Conversions.toByteBuffer(type, ids.get(1).asLong())));
  }

  DeleteFile newDelete(JsonNode one) {
    PartitionSpec spec = spec(one);
    FileMetadata.Builder builder = FileMetadata.deleteFileBuilder(spec)
        .withRecordCount(one.has("positions") ? one.get("positions").size() : 1);
    if (text(one, "kind").equals("dv")) {
      builder.ofPositionDeletes().withFormat(FileFormat.PUFFIN).withPath(path(one, "puffin"))
          .withFileSizeInBytes(1_000).withContentOffset(4).withContentSizeInBytes(one.has("size") ? one.get("size").asLong() : 40);
    } else {
      builder.withPath(path(one, "parquet")).withFileSizeInBytes(500);
      if (text(one, "kind").equals("equality")) {
        builder.ofEqualityDeletes(1);
      } else {
        builder.ofPositionDeletes();
      }
    }
    if (one.has("of")) {
      builder.withReferencedDataFile(dataFile(one.get("of")).location());
    }
    if (spec.isPartitioned() && !text(one, "at").isEmpty()) {
      builder.withPartitionPath(text(one, "at"));
    }
    if (one.has("ids")) {
      builder.withMetrics(metrics(one.get("ids"), 1));
    }
    DeleteFile made = builder.build();
    files.put(text(one, "name"), made);
    return made;
  }

  String path(JsonNode one, String suffix) {
    return table.location() + "/data/" + text(one, "name") + "." + suffix;
  }

  // --- What came of it ---

  ObjectNode describe(Snapshot snapshot) throws Exception {
    ObjectNode found = JSON.createObjectNode();
    found.put("operation", snapshot.operation());
    found.put("sequence-number", snapshot.sequenceNumber());
    if (snapshot.firstRowId() != null) {
      found.put("first-row-id", snapshot.firstRowId());
      found.put("added-rows", snapshot.addedRows());
    }
    ObjectNode summary = found.putObject("summary");
    new TreeMap<>(snapshot.summary()).forEach((key, text) -> {
      if (!key.startsWith("iceberg-") && !key.startsWith("engine-") && !key.equals("source-snapshot-id")) {
        summary.put(key, text);
      }
    });
    ArrayNode manifests = found.putArray("manifests");
    for (ManifestFile one : snapshot.allManifests(table.io())) {
      manifests.add(describe(one, snapshot.snapshotId()));
    }
    return found;
  }

  ObjectNode describe(ManifestFile one, long snapshotId) throws Exception {
    ObjectNode found = JSON.createObjectNode();
    found.put("content", one.content().toString().toLowerCase());
    found.put("spec", one.partitionSpecId());
    found.put("own", one.snapshotId() == snapshotId);
    found.put("sequence-number", one.sequenceNumber());
    found.put("min-sequence-number", one.minSequenceNumber());
    ArrayNode counts = found.putArray("counts");
    counts.add(one.addedFilesCount()).add(one.existingFilesCount()).add(one.deletedFilesCount());
    counts.add(one.addedRowsCount()).add(one.existingRowsCount()).add(one.deletedRowsCount());
    if (one.firstRowId() != null) {
      found.put("first-row-id", one.firstRowId());
    }
    ArrayNode entries = found.putArray("entries");
    for (ManifestEntry<?> entry : entries(one)) {
      ArrayNode told = entries.addArray();
      told.add(entry.status().toString().toLowerCase()).add(name(entry)).add(entry.snapshotId() == snapshotId);
      told.add(entry.dataSequenceNumber()).add(entry.fileSequenceNumber()).add(entry.file().firstRowId());
    }
    return found;
  }

  static String name(ManifestEntry<?> entry) {
    String path = entry.file().location();
    return path.substring(path.lastIndexOf('/') + 1, path.lastIndexOf('.'));
  }

  List<ManifestEntry<?>> entries(ManifestFile one) throws Exception {
    List<ManifestEntry<?>> found = new ArrayList<>();
    if (one.content() == ManifestContent.DATA) {
      ManifestReader<DataFile> reader = ManifestFiles.read(one, table.io(), table.specs());
      try (reader; CloseableIterable<ManifestEntry<DataFile>> entries = reader.entries()) {
        entries.forEach(entry -> found.add(entry.copy()));
      }
    } else {
      ManifestReader<DeleteFile> reader = ManifestFiles.readDeleteManifest(one, table.io(), table.specs());
      try (reader; CloseableIterable<ManifestEntry<DeleteFile>> entries = reader.entries()) {
        entries.forEach(entry -> found.add(entry.copy()));
      }
    }
    return found;
  }
}
