//! Tables of Delta Lake, and the refusal of files that are of such tables, or of Iceberg or Hudi.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field};
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};
use volery_tables::{Error, Format, Inputs, Packing, Table};

use crate::inputs::write_memory;
use crate::parquet::store;
use crate::samples::sample;
use crate::table::{required, strings, table};
use crate::{Folder, by, complaint, integers, read, write};

fn open(path: &Path) -> Result<Table, Error> {
    Table::open(&Inputs { paths: vec![path.to_owned()], ..Inputs::default() })
}

fn as_text(table: &Table) -> String {
    String::from_utf8(write(table, &|_| true, Format::Csv, Packing::None).unwrap()).unwrap()
}

/// A table with a log of these commits.
struct Lake(Folder);

impl Lake {
    fn new(commits: &[Vec<Value>]) -> Self {
        let lake = Self(Folder::new());
        for (version, actions) in commits.iter().enumerate() {
            lake.commit(version as u64, actions);
        }
        lake
    }

    fn commit(&self, version: u64, actions: &[Value]) {
        let lines: String = actions.iter().map(|action| format!("{action}\n")).collect();
        self.0.write(&format!("_delta_log/{version:020}.json"), lines);
    }

    /// Writes a file with the column `id`.
    fn store(&self, name: &str, id: i64) {
        self.0.write(name, "");
        let columns = [required("int64 id", vec![id])];
        store(&self.0, name, &columns, Compression::SNAPPY);
    }

    fn root(&self) -> PathBuf {
        self.0.path("")
    }
}

fn protocol() -> Value {
    json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
}

/// The metadata of a table with these columns, of which `partitions` are partition columns.
fn metadata(columns: &[(&str, &str)], partitions: &[&str]) -> Value {
    let fields = columns
        .iter()
        .map(|(name, kind)| json!({"name": name, "type": kind, "nullable": true, "metadata": {}}));
    let schema = json!({"type": "struct", "fields": fields.collect::<Vec<_>>()});
    json!({"metaData": {
        "id": "0", "format": {"provider": "parquet", "options": {}}, "configuration": {},
        "schemaString": schema.to_string(), "partitionColumns": partitions,
    }})
}

fn ids() -> Value {
    metadata(&[("id", "long")], &[])
}

fn add(path: &str) -> Value {
    json!({"add": {"path": path, "partitionValues": {}, "size": 1, "dataChange": true}})
}

fn remove(path: &str) -> Value {
    json!({"remove": {"path": path, "dataChange": true}})
}

#[test]
fn the_newest_version_is_read_from_checkpoint_and_commits() {
    let read = read(&sample("delta"), &by(&["id"])).unwrap();
    let mut found = read.keys().to_vec();
    let mut expected = integers(["1", "3", "4", "6"]);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(read.columns(), ["id", "name", "zone", "born"]);
    assert_eq!(read.notices(), ["version 4 of the Delta table was read"]);
    let mut lines: Vec<_> = as_text(&read.table).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(
        lines,
        ["1,n1,b/c 100%,", "3,n3,b/c 100%,", "4,n4,,", "6,n6,x,1970-01-01", "id,name,zone,born"]
    );
    // As an output in its own format, which is not like its first file.
    let written = write(&read.table, &|_| true, Format::Parquet, Packing::None).unwrap();
    let folder = Folder::new();
    let copy = open(&folder.write("copy.parquet", written)).unwrap();
    assert_eq!(as_text(&copy), as_text(&read.table));
}

#[test]
fn commits_are_replayed() {
    let lake = Lake::new(&[
        vec![protocol(), ids(), add("a%20b.parquet"), add("/gone.parquet")],
        // In one commit, what is added is there, whatever the order.
        vec![add("c.parquet"), remove("c.parquet"), remove("file:///gone.parquet")],
        vec![remove("a%20b.parquet"), add("d.parquet"), json!({"txn": {}, "unknown": 1})],
        vec![add("a%20b.parquet"), remove("d.parquet")],
    ]);
    for (name, id) in [("a b.parquet", 1), ("c.parquet", 2), ("d.parquet", 3)] {
        lake.store(name, id);
    }
    // What is neither a commit nor a checkpoint does not count.
    lake.0.write("_delta_log/00000000000000000009.crc", "");
    lake.0.write("_delta_log/_last_checkpoint", "{\"version\": 7}");
    lake.0.write("_delta_log/00000000000000000002.checkpoint.0000000001.0000000002.parquet", "");
    lake.0.write("_delta_log/00000000000000000000.00000000000000000003.compacted.json", "");
    lake.0.write("_delta_log/00000000000000000003.checkpoint.copy.json", "{\"secret");
    // A writer that was killed leaves an empty one: the log before it is complete.
    lake.0.write("_delta_log/00000000000000000003.checkpoint.parquet", "");
    let table = open(&lake.root()).unwrap();
    assert_eq!(as_text(&table), "id\n1\n2\n");
    assert_eq!(table.paths(), [lake.root()]);

    let paths = vec![lake.root()];
    let earlier = |version| {
        let paths = paths.clone();
        Table::open(&Inputs { paths, as_of: Some(version), ..Inputs::default() })
    };
    assert_eq!(as_text(&earlier(2).unwrap()), "id\n2\n3\n");
    assert_eq!(earlier(2).unwrap().notices(), ["version 2 of the Delta table was read"]);
    let (message, hint) = complaint(earlier(9));
    assert!(message.contains("without version 9") && hint.contains("--as-of"), "{message} {hint}");
    let as_files = Inputs { paths: paths.clone(), plain_files: true, ..Inputs::default() };
    assert_eq!(as_text(&Table::open(&as_files).unwrap()), "id\n1\n2\n3\n");
    let plain = Inputs { as_of: Some(1), ..as_files };
    assert_eq!(complaint(Table::open(&plain)).1, "leave out --as-of, or --plain-files");

    // A path in the table's own folder may be absolute.
    let absolute = format!("file://{}", lake.0.path("d.parquet").display());
    lake.commit(4, &[add(&absolute)]);
    assert_eq!(as_text(&open(&lake.root()).unwrap()).lines().count(), 4);
    lake.commit(6, &[add("d.parquet")]);
    let (message, _) = complaint(open(&lake.root()));
    assert_eq!(message, "is a Delta table whose log has no commit 5");
    // Of an earlier version a part of the log may have been removed.
    let (message, hint) = complaint(earlier(6));
    assert!(message.contains("without version 6") && hint.contains("another"), "{message} {hint}");
    lake.0.write("_delta_log/00000000000000000005.json", b"\xff\n");
    let (message, _) = complaint(open(&lake.root()));
    assert!(message.contains("00000000000000000005.json is not UTF-8"), "{message}");
}

#[test]
fn columns_and_types_are_those_of_the_schema() {
    let columns = [("day", "date"), ("new", "string"), ("id", "long"), ("ok", "boolean")];
    let columns = [&columns[..], &[("n", "short"), ("at", "timestamp")]].concat();
    let partitions = ["day", "ok", "n", "at"];
    let added =
        |path: &str, values: Value| json!({"add": {"path": path, "partitionValues": values}});
    let second = json!({"day": "", "ok": null, "n": "-7", "at": "2021-09-08 11:11:11"});
    let lake = Lake::new(&[vec![
        protocol(),
        metadata(&columns, &partitions),
        added("1.parquet", json!({"day": "2024-02-29", "ok": "true", "n": "1", "at": null})),
        added("2.parquet", second),
    ]]);
    let before = [required("int64 old", vec![9_i64]), required("int64 id", vec![1_i64])];
    store(&lake.0, "1.parquet", &before, Compression::SNAPPY);
    let after = [required("int64 id", vec![2_i64]), strings("new", ["x"])];
    store(&lake.0, "2.parquet", &after, Compression::SNAPPY);
    let table = open(&lake.root()).unwrap();
    assert_eq!(
        as_text(&table),
        "day,new,id,ok,n,at\n2024-02-29,,1,true,1,\n,x,2,,-7,2021-09-08 11:11:11\n"
    );
    let found = read(&lake.root(), &by(&["n"])).unwrap();
    assert_eq!(found.keys(), integers(["1", "-7"]));

    lake.commit(1, &[metadata(&[("id", "integer")], &[])]);
    let (message, _) = complaint(open(&lake.root()));
    assert_eq!(message, "column \"id\" is of type Int64; in the Delta table it is Int32");
    lake.commit(1, &[metadata(&columns, &["day"]), added("3.parquet", json!({"day": "secret"}))]);
    let (message, _) = complaint(open(&lake.root()));
    let what = "has no value, or a malformed one, of partition column \"day\"";
    assert!(message.ends_with(what), "{message}");
    for values in [json!({}), json!({"day": 5}), json!({"DAY": "2024-02-29"})] {
        lake.commit(1, &[metadata(&columns, &["day"]), added("3.parquet", values)]);
        assert!(complaint(open(&lake.root())).0.ends_with(what));
    }
    let cased = [metadata(&[("ID", "long")], &[])];
    lake.commit(1, &cased);
    let (message, _) = complaint(open(&lake.root()));
    assert_eq!(message, "column \"ID\" of the Delta table is \"id\" here");
    lake.commit(1, &[metadata(&columns, &["DAY"])]);
    assert!(complaint(open(&lake.root())).0.ends_with("has a malformed schema"));
    lake.commit(1, &[remove("1.parquet"), remove("2.parquet")]);
    assert_eq!(as_text(&open(&lake.root()).unwrap()), "day,new,id,ok,n,at\n");
}

#[test]
fn names_in_nested_columns_are_those_of_the_first_file() {
    let mut schema = metadata(&[("id", "long"), ("l", "LIST")], &[]);
    let list = r#"{"type": "array", "elementType": "long", "containsNull": true}"#;
    let text = schema["metaData"]["schemaString"].as_str().unwrap().replace("\"LIST\"", list);
    schema["metaData"]["schemaString"] = json!(text);
    let lake = Lake::new(&[vec![protocol(), schema, add("1.parquet"), add("2.parquet")]]);
    for (name, value, element) in [("1.parquet", 10, "element"), ("2.parquet", 20, "item")] {
        let mut values = ListBuilder::new(Int64Builder::new()).with_field(Field::new(
            element,
            DataType::Int64,
            true,
        ));
        values.append_value([Some(value), None]);
        let rows = RecordBatch::try_from_iter([("l", Arc::new(values.finish()) as _)]).unwrap();
        let file = Table::from_batches(rows.schema(), vec![rows]).unwrap();
        lake.0.write(name, write_memory(&file, Format::Parquet));
    }
    let table = open(&lake.root()).unwrap();
    let mut scan = table.scan(&[1]).unwrap();
    for value in [10, 20] {
        let rows = scan.next().unwrap().unwrap().rows;
        let list = rows.column(0).as_list::<i32>().value(0);
        assert_eq!(list.as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(value), None]));
    }
}

#[test]
fn a_table_that_needs_more_is_refused_by_the_name() {
    let needs = |protocol: Value, mut metadata: Value, setting: Option<(&str, &str)>| {
        if let Some((name, value)) = setting {
            metadata["metaData"]["configuration"][name] = json!(value);
        }
        let lake = Lake::new(&[vec![protocol, metadata, add("a.parquet")]]);
        lake.store("a.parquet", 1);
        complaint(open(&lake.root())).0
    };
    let mapped = Some(("delta.columnMapping.mode", "name"));
    let at = |version: u64, features: &[&str]| json!({"protocol": {"minReaderVersion": version, "readerFeatures": features}});
    let refused =
        |what: &str| format!("is a Delta table that needs {what}, which is not supported");
    for feature in ["deletionVectors", "typeWidening", "variantType", "catalogManaged", "new"] {
        assert_eq!(needs(at(3, &["timestampNtz", feature]), ids(), None), refused(feature));
    }
    assert_eq!(needs(at(2, &[]), ids(), mapped), refused("columnMapping"));
    assert_eq!(needs(protocol(), ids(), mapped), refused("columnMapping"));
    let binary = metadata(&[("b", "binary")], &["b"]);
    assert_eq!(needs(protocol(), binary, None), refused("a partition column of type binary"));
    assert_eq!(needs(at(3, &["columnMapping"]), ids(), mapped), refused("columnMapping"));
    assert_eq!(needs(at(4, &[]), ids(), None), refused("reader version 4"));
    for kind in ["variant", "decimal(39,2)", "decimal(5,6)", "decimal(0,0)", "decimal(5)"] {
        let columns = metadata(&[("id", kind)], &[]);
        let what = format!("columns of type {kind}");
        assert_eq!(needs(protocol(), columns, None), refused(&what));
    }
    let mut other = ids();
    other["metaData"]["format"]["provider"] = json!("orc");
    assert_eq!(needs(protocol(), other, None), refused("files of format orc"));

    let mut vector = add("a.parquet");
    vector["add"]["deletionVector"] =
        json!({"storageType": "u", "pathOrInlineDv": "x", "offset": 1});
    let lake = Lake::new(&[vec![protocol(), ids(), add("a.parquet")], vec![vector.clone()]]);
    lake.store("a.parquet", 1);
    assert_eq!(complaint(open(&lake.root())).0, refused("deletionVectors"));
    // A file whose vector was removed again has all its rows.
    vector["remove"] = vector["add"].take();
    lake.commit(2, &[vector]);
    assert_eq!(as_text(&open(&lake.root()).unwrap()), "id\n1\n");
    for feature in ["timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "columnMapping"] {
        lake.commit(3, &[at(3, &[feature])]);
        assert_eq!(as_text(&open(&lake.root()).unwrap()), "id\n1\n", "{feature}");
    }
}

#[test]
fn an_incomplete_log_is_refused() {
    let problem = |actions: Vec<Value>| {
        let lake = Lake::new(&[actions]);
        complaint(open(&lake.root())).0.replace("is a Delta table whose log ", "")
    };
    assert_eq!(problem(vec![ids()]), "has no protocol");
    assert_eq!(problem(vec![protocol()]), "has no metadata");
    assert_eq!(problem(vec![protocol(), ids(), json!({"add": {}})]), "has an action without path");
    let gone = problem(vec![protocol(), ids(), add("a.parquet")]);
    assert!(gone.starts_with("names a file that is gone: "), "{gone}");
    for path in ["../a.parquet", "s3://bucket/a.parquet", "/etc/a.parquet", "x/../../a.parquet"] {
        let outside = problem(vec![protocol(), ids(), add(path)]);
        assert_eq!(outside, format!("names a file that is not in the table's folder: {path:?}"));
    }
    let lake = Lake(Folder::new());
    fs::create_dir(lake.0.path("_delta_log")).unwrap();
    assert_eq!(complaint(open(&lake.root())).0, "is a Delta table whose log has no commit");
    lake.0.write(&format!("_delta_log/{:020}.json", 0), "{\"secret");
    let (message, _) = complaint(open(&lake.root()));
    assert!(message.ends_with("00000000.json has a line that is not JSON"), "{message}");
}

#[test]
fn files_of_a_table_are_refused_wherever_they_are_named() {
    let folder = Folder::new();
    folder.write("w/delta/_delta_log/x", "");
    folder.write("w/iceberg/metadata/v1.metadata.json", "");
    folder.write("w/hudi/.hoodie/hoodie.properties", "");
    folder.write("plain/metadata/notes.json", "");
    for name in ["w/delta", "w/iceberg", "w/hudi", "plain"] {
        folder.write(&format!("{name}/data/k=1/a.parquet"), "");
        let columns = [required("int64 id", vec![1_i64])];
        store(&folder, &format!("{name}/data/k=1/a.parquet"), &columns, Compression::SNAPPY);
    }
    assert_eq!(as_text(&open(&folder.path("plain")).unwrap()), "id,k\n1,1\n");
    for (name, lake, hint) in [
        ("w/delta", "a Delta table", "name the table alone: --input "),
        ("w/iceberg", "an Iceberg table", "iceberg_scan('"),
        ("w/hudi", "a Hudi table", "spark.read.format(\"hudi\")"),
    ] {
        let table = fs::canonicalize(folder.path(name)).unwrap();
        let expected = format!(
            "is a file of {lake}, {}: it may have rows that were deleted from it",
            table.display()
        );
        for inside in ["data", "data/k=1/a.parquet", "data/*/a.parquet"] {
            let (message, remedy) = complaint(open(&folder.path(&format!("{name}/{inside}"))));
            assert_eq!(message, expected);
            assert!(remedy.contains(hint) && remedy.contains(name), "{remedy}");
        }
    }
    // Links, to a file of a table and in a table.
    #[cfg(unix)]
    for (link, to) in [
        ("out.parquet", "w/hudi/data/k=1/a.parquet"),
        ("w/delta/in.parquet", "plain/data/k=1/a.parquet"),
    ] {
        std::os::unix::fs::symlink(folder.path(to), folder.path(link)).unwrap();
        let (message, _) = complaint(open(&folder.path(link)));
        assert!(message.starts_with("is a file of a "), "{message}");
    }
    // Only names that Iceberg gives are its own.
    folder.write("plain/metadata/customers.metadata.json", "");
    assert!(open(&folder.path("plain")).is_ok());
    for name in ["v12.metadata.json.gz", "00001-ab.metadata.json", "snap-1.avro"] {
        folder.write(&format!("plain/metadata/{name}"), "");
        assert!(open(&folder.path("plain")).is_err(), "{name}");
        fs::remove_file(folder.path(&format!("plain/metadata/{name}"))).unwrap();
    }
    // A folder above them, and a table beside another file.
    let (message, _) = complaint(open(&folder.path("w")));
    assert!(message.starts_with("is a file of a Delta table"), "{message}");
    let paths = vec![folder.path("plain"), folder.path("w/hudi")];
    let (message, _) = complaint(Table::open(&Inputs { paths, ..Inputs::default() }));
    assert!(message.starts_with("is a file of a Hudi table"), "{message}");

    for (note, lake) in [
        ("iceberg.schema", "an Iceberg table"),
        ("hoodie_min_record_key", "a Hudi table"),
        ("org.apache.hudi.bloomfilter", "a Hudi table"),
    ] {
        let notes = vec![KeyValue::new(note.to_owned(), "x".to_owned())];
        let properties = WriterProperties::builder().set_key_value_metadata(Some(notes));
        let bytes = table(&[required("int64 id", vec![1_i64])], 10, properties.build());
        let (message, _) = complaint(open(&folder.write("copy.parquet", bytes)));
        assert_eq!(
            message,
            format!("was written for {lake}: it may have rows that were deleted from that")
        );
    }
}
