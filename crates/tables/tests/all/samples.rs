//! Files written by another library: `tests/make_samples.py` creates them.

use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use volery_tables::Format;

use crate::table::load;
use crate::{Folder, by, integers, matches, read, texts};

pub(super) fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name)
}

fn as_text(name: &str, items: &[u32]) -> String {
    let records = read(&sample(name), &by(&["id"])).unwrap();
    String::from_utf8(matches(&records, items, Format::Csv).unwrap()).unwrap()
}

#[test]
fn every_type_has_its_text() {
    let text = as_text("types.parquet", &[0, 1, 2]);
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let [names, first, second, third] = [(); 4].map(|()| lines.next().unwrap());
    for (i, (name, texts)) in [
        ("id", ["1", "2"]),
        ("large", ["a", "é"]),
        ("view", ["a string that is longer than a view holds", ""]),
        ("dictionary", ["x", "y"]),
        ("large_binary", ["00ff", ""]),
        ("fixed", ["616263", "010203"]),
        ("int8", ["-128", "127"]),
        ("uint8", ["0", "255"]),
        ("int16", ["-32768", "32767"]),
        ("uint16", ["0", "65535"]),
        ("uint32", ["0", "4294967295"]),
        ("uint64", ["0", "18446744073709551615"]),
        ("boolean", ["true", "false"]),
        ("date", ["1969-12-31", "2024-02-29"]),
        ("half", ["1.5", "-2"]),
        ("float", ["0.1", "1e20"]),
        ("double", ["0.1", "1e-7"]),
        ("decimal", ["-0.05", "1234567.89"]),
        ("wide", ["-1.234", "10000000000000000000000000000000000000000000000.000"]),
        ("seconds", ["2021-03-04T05:06:07", "1969-01-01T00:00:00"]),
        ("millis", ["2021-03-04T05:06:07.891", "1969-01-01T00:00:00"]),
        ("zoned", ["2021-03-04T05:06:07.891Z", "1969-01-01T00:00:00Z"]),
        ("nanos", ["1970-01-01T00:00:00.000000001", "1970-01-01T00:00:01"]),
        ("time_ms", ["01:02:03", "23:59:59.999"]),
        ("time_us", ["01:02:03.000004", "00:00:00"]),
        ("time_ns", ["00:00:00.000000001", "00:00:00"]),
        ("null", ["", ""]),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(names[i], name);
        assert_eq!([first[i], second[i]], texts, "{name}");
        let null = match name {
            "id" => "3",
            "dictionary" => "x",
            _ => "",
        };
        assert_eq!(third[i], null, "{name}");
    }
    assert_eq!(names.len(), 27);
}

#[test]
fn keys_of_every_type() {
    for (name, found, shown) in [
        ("large", "text", Some(["a", "é"])),
        ("dictionary", "text", None),
        ("large_binary", "binary", None),
        ("fixed", "binary", None),
        ("int8", "integer", Some(["-128", "127"])),
        ("uint8", "integer", Some(["0", "255"])),
        ("int16", "integer", Some(["-32768", "32767"])),
        ("uint16", "integer", Some(["0", "65535"])),
        ("uint32", "integer", Some(["0", "4294967295"])),
        ("uint64", "integer", Some(["0", "18446744073709551615"])),
        ("boolean", "boolean", None),
        ("date", "date", None),
        ("decimal", "decimal", None),
        ("millis", "datetime", None),
        ("zoned", "timestamp", None),
    ] {
        let mut reading = by(&[name, "id"]);
        reading.empty_keys = volery_tables::EmptyKeys::Skip;
        let records = read(&sample("types.parquet"), &reading).unwrap();
        assert_eq!(records.key_description, format!("{found},integer"), "{name}");
        if let Some(shown) = shown {
            let mut reading = by(&[name]);
            reading.empty_keys = volery_tables::EmptyKeys::Skip;
            let records = read(&sample("types.parquet"), &reading).unwrap();
            let expected = match found {
                "text" => texts(shown),
                _ => integers(shown),
            };
            assert_eq!(records.keys(), expected, "{name}");
        }
    }
}

#[test]
fn timestamps_of_old() {
    assert_eq!(
        as_text("int96.parquet", &[0, 1, 2]),
        "id,large,millis,nanos\n\
         1,a,2021-03-04T05:06:07.891,1970-01-01T00:00:00\n\
         2,é,1969-01-01T00:00:00,1970-01-01T00:00:01\n\
         3,,,\n"
    );
}

#[test]
fn pages_of_the_second_version() {
    assert_eq!(
        as_text("version2.parquet", &[0, 2]),
        "id,large,fixed,uint64,double,boolean\n1,a,616263,0,0.1,true\n3,,,,,\n"
    );
}

/// The names of the metadata entries of a Parquet file.
fn notes(path: &Path) -> Vec<String> {
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let file = reader.metadata().file_metadata();
    let notes = file.key_value_metadata().into_iter().flatten();
    notes.map(|note| note.key.clone()).collect()
}

#[test]
fn rows_are_copied_whole() {
    let folder = Folder::new();
    for name in ["types", "version2", "nested"] {
        let path = sample(&format!("{name}.parquet"));
        let records = read(&path, &by(&["id"])).unwrap();
        let (declared, rows) = load(&path);
        let items: [&[u32]; 4] = [&[0, 1, 2], &[1], &[0, 2], &[]];
        for items in items {
            let copy = matches(&records, items, Format::Parquet).unwrap();
            let copy = folder.write("copy.parquet", copy);
            assert_eq!(notes(&copy), ["ARROW:schema"]);
            let expected = items.iter().map(|&item| rows[item as usize].clone());
            assert_eq!(load(&copy), (declared.clone(), expected.collect()), "{name}");
        }
    }
}
