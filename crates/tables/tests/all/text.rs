//! Valid text files: line ends, quoting, delimiters, and their output.

use std::fs;

use volery_tables::{Format, Inputs, Output, Packing, Problem, Sink, Table};

use crate::{Folder, Reading, by, matches, read, read_as, texts};

#[test]
fn lines_end_in_any_way() {
    for text in [
        "id,a\n1,x\n2,y\n",
        "id,a\r\n1,x\r\n2,y\r\n",
        "id,a\n1,x\n2,y",
        "id,a\r1,x\r2,y",
        "id,a\r\n1,x\n2,y",
    ] {
        let folder = Folder::new();
        let records = read(&folder.write("rows.csv", text), &by(&["id"])).unwrap();
        assert_eq!(records.keys(), texts(["1", "2"]), "{text:?}");
        assert_eq!(matches(&records, &[1], Format::Csv).unwrap(), b"id,a\n2,y\n");
        assert!(records.notices().is_empty());
    }
}

#[test]
fn a_name_that_begins_like_a_mark_is_still_the_name() {
    for name in [&b"\xef\xbb\xbfid"[..], b"\xef\xbb\xbf"] {
        let file = [b"\"", name, b"\",a\n1,x\n"].concat();
        let folder = Folder::new();
        let records = read(&folder.write("rows.csv", &file), &by(&["a"])).unwrap();
        assert!(records.notices().is_empty());
        let written = matches(&records, &[0], Format::Csv).unwrap();
        assert!(written.starts_with(&[b"\"", name, b"\","].concat()), "{written:?}");
        let again = read(&folder.write("again.csv", &written), &by(&["a"])).unwrap();
        assert_eq!(again.keys(), records.keys());
        assert!(again.columns() == records.columns() && again.notices().is_empty());
        assert_eq!(matches(&again, &[0], Format::Csv).unwrap(), written);
    }
}

#[test]
fn delimiters() {
    let folder = Folder::new();
    let semicolons = Reading { delimiter: Some(b';'), ..by(&["id"]) };
    let csv = read(&folder.write("a.csv", "id;a\n1;x,y\n"), &semicolons).unwrap();
    assert_eq!(matches(&csv, &[0], Format::Csv).unwrap(), b"id;a\n1;x,y\n");
    assert_eq!(matches(&csv, &[0], Format::Tsv).unwrap(), b"id\ta\n1\tx,y\n");
    let tsv = read(&folder.write("a.tsv", "id\ta\n1\tx,y\n"), &by(&["id"])).unwrap();
    assert_eq!(matches(&tsv, &[0], Format::Tsv).unwrap(), b"id\ta\n1\tx,y\n");
    assert_eq!(matches(&tsv, &[0], Format::Csv).unwrap(), b"id,a\n1,\"x,y\"\n");
}

#[test]
fn compound_keys_keep_their_columns_apart() {
    let reading = by(&["a", "b"]);
    let one = read_as("rows.csv", "a,b\nab,c\n", &reading).unwrap();
    let other = read_as("rows.csv", "b,a\nbc,a\n", &reading).unwrap();
    assert_ne!(one.keys(), other.keys());
    let same = read_as("rows.csv", "b,x,a\nc,,ab\n", &reading).unwrap();
    assert_eq!(one.keys(), same.keys());
    assert_ne!(one.keys(), read_as("rows.csv", "a,b\nab,c\n", &by(&["b", "a"])).unwrap().keys());
}

#[test]
fn progress_ends_at_the_length_of_the_file() {
    let folder = Folder::new();
    let text: String = (0..50_000).map(|i| format!("{i},some text\n")).collect();
    let path = folder.write("rows.csv", format!("id,a\n{text}"));
    let length = fs::metadata(&path).unwrap().len();
    let paths = vec![path];
    let table = Table::open(&Inputs { paths, ..Inputs::default() }).unwrap();
    let mut scan = table.scan(&[0]).unwrap();
    let told: Vec<_> =
        std::iter::from_fn(|| scan.next().unwrap()).map(|batch| batch.done_bytes).collect();
    assert!(told.len() > 1 && told.is_sorted());
    assert_eq!((told.last(), table.bytes()), (Some(&length), length));
}

#[test]
fn an_output_that_is_full_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let folder = Folder::new();
    let records = read(&folder.write("rows.csv", "id\n1\n2\n"), &by(&["id"])).unwrap();
    for (format, packing) in [
        (Format::Csv, Packing::None),
        (Format::Csv, Packing::Gzip),
        (Format::Csv, Packing::Zstd),
        (Format::Parquet, Packing::None),
        (Format::Arrow, Packing::None),
    ] {
        let output = Output { format, packing, like: Some(&records.table) };
        let all = |_| true;
        let mut scan = records.table.select(&all).unwrap();
        let batch = scan.next().unwrap().unwrap();
        let written = Sink::new(Full, output, records.table.schema()).and_then(|mut sink| {
            sink.write(&batch.rows)?;
            sink.finish()
        });
        match written.map(|_| ()).unwrap_err() {
            Problem::Output(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{format:?} {error:?}")
            }
            other => panic!("{format:?} {other:?}"),
        }
    }
}
