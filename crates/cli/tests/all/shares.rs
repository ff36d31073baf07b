//! Shares of the matching rows: two processes on the loopback interface, their folders, and
//! `verify`.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt8Array, UInt64Array};
use volery_tables::{Format, Inputs, Output, Packing, Sink, Table};

use crate::common::pair::{Folder, load, pair};
use crate::common::{self, ProcessResult, run};

fn hundredths(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", number.abs() / 100, number.abs() % 100)
}

/// Rows of both sides: key, then values in hundredths.
fn tables(folder: &Folder, n: [u32; 2]) -> [String; 2] {
    let mut left = "key,price,size\n".to_owned();
    for key in 0..n[0] {
        let number = i64::from(key);
        left += &format!("k{key},{},{}\n", hundredths(number * 7 - 300), hundredths(5 - number));
    }
    let mut right = "key,other,spend\n".to_owned();
    for key in (n[0] / 2..n[0] / 2 + n[1]).rev() {
        right += &format!("k{key},x,{}\n", hundredths(i64::from(key) * 3));
    }
    [folder.write("a.csv", left), folder.write("b.csv", right)]
}

/// Both sides share two columns and one; `more` goes to both.
fn shared(folder: &Folder, n: [u32; 2], more: &str, ends: [&str; 2]) {
    let [a, b] = tables(folder, n);
    let [left, right] = ends.map(|end| folder.path(end));
    let line = |input: &str, columns: &str, out: &str| {
        format!(
            "--input {input} --key key --result shares={columns} --bound 99999 --decimals 2 --out \
             {out} {more}"
        )
    };
    for side in pair("psi", &line(&a, "price,size", &left), &line(&b, "spend", &right)) {
        assert_eq!(side.status, Some(0), "{side:?}");
        assert!(side.stdout.is_empty(), "{side:?}");
        for said in [
            "secure against a semi-honest peer",
            "gets shares of which keys are common",
            "keep the two apart",
        ] {
            assert!(side.stderr.contains(said), "{side:?}");
        }
    }
}

fn verify(folder: &Folder, ends: [&str; 2]) -> ProcessResult {
    run(&["verify", &folder.path(ends[0]), &folder.path(ends[1])])
}

#[test]
fn shares_fit_together() {
    for (n, more, order) in [
        ([40, 30], "", "bins"),
        ([0, 7], "--row-order", "rows"),
        ([33, 34], "--row-order --protocol circuit-low", "rows"),
    ] {
        let folder = Folder::new();
        shared(&folder, n, more, ["s", "r"]);
        // Sorted by name, without leftovers.
        assert_eq!(folder.names(), ["a.csv", "b.csv", "r", "s"]);
        let json = ["s", "r"].map(|end| folder.json(&format!("{end}/shares.json")));
        assert_eq!(json[0]["session"], json[1]["session"]);
        for json in &json {
            assert_eq!(json["order"], order);
            assert_eq!(json["sender_keys"], n[0]);
            assert_eq!(json["receiver_keys"], n[1]);
            let columns = json["columns"].as_array().unwrap();
            let arrays: Vec<_> = columns.iter().map(|column| &column["array"]).collect();
            assert_eq!(arrays, ["sender_1", "sender_2", "receiver_1"]);
            assert_eq!(columns[1]["decimals"], 2);
            assert_eq!(columns[2]["bound"], 9_999_900);
        }
        assert_eq!(json[0]["columns"][1]["name"], "size");
        assert!(json[0]["columns"][2]["name"].is_null());
        assert!(json[1]["columns"][1]["name"].is_null());
        assert_eq!(json[1]["columns"][2]["name"], "spend");
        for (end, files) in [("s", 5), ("r", 6)] {
            let path = folder.path(end);
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(path.as_ref()), 0o700);
            let names = common::names(path.as_ref());
            assert_eq!(names.len(), files, "{names:?}");
            for name in names {
                assert_eq!(mode(&Path::new(&path).join(name)), 0o600);
            }
        }
        assert_sums(&folder, n);
        let verified = verify(&folder, ["s", "r"]);
        assert_eq!(verified.status, Some(0), "{verified:?}");
        let common = n[1].min(n[0] - n[0] / 2);
        assert!(verified.stdout.contains(&format!("{common} common keys")), "{verified:?}");
    }
}

/// Adds the shares up and compares them with the tables.
fn assert_sums(folder: &Folder, n: [u32; 2]) {
    let array = |end: &str, name: &str| -> Vec<i64> {
        let path = folder.path(&format!("{end}/{name}.npy"));
        let (_, words) = common::read_npy(path.as_ref());
        words.into_iter().map(u64::cast_signed).collect()
    };
    let rows = array("r", "row");
    let bits = ["s", "r"].map(|end| array(end, "match"));
    let sums = ["sender_1", "sender_2", "receiver_1"].map(|name| {
        let [left, right] = ["s", "r"].map(|end| array(end, name));
        assert_eq!(left.len(), rows.len());
        left.iter().zip(right).map(|(left, right)| left.wrapping_add(right)).collect::<Vec<_>>()
    });
    let mut seen = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        let key = (*row >= 0).then(|| i64::from(n[0] / 2 + n[1]) - 1 - row);
        let common = key.filter(|key| *key < n[0].into());
        assert_eq!(bits[0][at] ^ bits[1][at], i64::from(common.is_some()));
        let expected = common.map_or([0; 3], |key| [key * 7 - 300, 5 - key, key * 3]);
        assert_eq!(sums.each_ref().map(|column| column[at]), expected, "place {at}");
        if let Some(key) = key {
            assert!(seen.insert(key, at).is_none());
        }
    }
}

#[test]
fn parquet_in_place_of_folders() {
    let folder = Folder::new();
    shared(&folder, [20, 20], "--row-order", ["s.parquet", "r.parquet"]);
    let [(left, of_left), (right, of_right)] =
        ["s.parquet", "r.parquet"].map(|name| load(&folder.path(name)));
    assert_eq!((left.len(), right.len()), (4, 5));
    assert_eq!((of_left.len(), of_right.len()), (20, 20));
    let number = |text: &String| text.parse::<u64>().unwrap();
    for (row, (left, right)) in of_left.iter().zip(&of_right).enumerate() {
        // The receiver has the keys 29 to 10, the sender those up to 19.
        let key = 29 - row as i64;
        assert_eq!(right[4], row.to_string());
        assert_eq!(number(&left[0]) ^ number(&right[0]), u64::from(key < 20));
        let sum = number(&left[1]).wrapping_add(number(&right[1])) as i64;
        assert_eq!(sum, if key < 20 { key * 7 - 300 } else { 0 });
    }
    let mode = std::fs::metadata(folder.path("s.parquet")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // They have session and bounds, and fit together.
    let verified = verify(&folder, ["s.parquet", "r.parquet"]);
    assert_eq!(verified.status, Some(0), "{verified:?}");
    assert!(verified.stdout.contains("10 common keys"), "{verified:?}");
    shared(&folder, [20, 20], "--row-order", ["s2.parquet", "r"]);
    let verified = verify(&folder, ["s2.parquet", "r"]);
    assert_eq!(verified.status, Some(0), "{verified:?}");
    let refused = |ends: [&str; 2], fragment: &str| {
        verify(&folder, ends).assert_refused(1, &[fragment]);
    };
    refused(["s.parquet", "r"], "differ in session");
    refused(["r.parquet", "s.parquet"], "these are the shares of the receiver");
    refused(["s.parquet", "a.csv"], "a.csv");
    refused(["s.parquet", "."], "does not");
    // So many rows of the sender, again from the first one after the last.
    let bits = |rows: usize| {
        let rows = of_left.iter().cycle().take(rows);
        let bits: UInt8Array = rows.map(|row| Some(number(&row[0]) as u8)).collect();
        Arc::new(bits) as ArrayRef
    };
    let words = |column: usize, rows: usize| {
        let rows = of_left.iter().cycle().take(rows);
        let words: UInt64Array = rows.map(|row| Some(number(&row[column]))).collect();
        Arc::new(words) as ArrayRef
    };
    let path = folder.path("other.parquet");
    let note =
        Table::open(&Inputs { paths: vec![folder.path("s.parquet").into()], ..Inputs::default() });
    let note = note.unwrap().note("volery.shares").unwrap().to_owned();
    let write = |columns: [ArrayRef; 4], note: Option<&str>| {
        let names = ["match", "sender_1", "sender_2", "receiver_1"];
        let batch = RecordBatch::try_from_iter(names.into_iter().zip(columns)).unwrap();
        let output = Output { format: Format::Parquet, packing: Packing::None, like: None };
        let file = std::fs::File::create(&path).unwrap();
        let mut sink = Sink::new(file, output, &batch.schema()).unwrap();
        sink.write(&batch).unwrap();
        if let Some(note) = note {
            sink.note("volery.shares", note);
        }
        sink.finish().unwrap();
    };
    let all = |rows| [bits(rows), words(1, rows), words(2, rows), words(3, rows)];
    let other = ["other.parquet", "r.parquet"];
    write(all(20), Some(&note));
    assert_eq!(verify(&folder, other).status, Some(0));
    write(all(20), None);
    refused(other, "its metadata has no volery.shares");
    write(all(19), Some(&note));
    refused(other, "has fewer places than its metadata");
    write(all(40), Some(&note));
    refused(other, "places or more, its metadata 20");
    let [first, second, third, fourth] = all(20);
    write([first, third, second, fourth], Some(&note));
    refused(other, "the shares do not fit together at place");
    let [_, second, third, fourth] = all(20);
    let two = Arc::new(UInt8Array::from(vec![2; 20]));
    write([two, second, third, fourth], Some(&note));
    refused(other, "neither 0 nor 1");
    let [_, second, third, fourth] = all(20);
    write([Arc::clone(&second), second, third, fourth], Some(&note));
    refused(other, "has no column match of type UInt8");
    let short = note.replace("\"places\": 20", "\"places\": 19");
    write(all(20), Some(&short));
    refused(other, "differ in places");
}

/// Each thing that can be wrong with two folders is named, with its place.
#[test]
fn what_does_not_fit_is_named() {
    let folder = Folder::new();
    shared(&folder, [10, 10], "", ["s", "r"]);
    // A folder of an earlier run is replaced, with --force.
    shared(&folder, [40, 30], "--row-order --force", ["s", "r"]);
    shared(&folder, [40, 30], "--row-order", ["s2", "r2"]);
    let refused = |ends: [&str; 2], fragment: &str| {
        verify(&folder, ends).assert_refused(1, &[fragment]);
    };
    refused(["r", "s"], "these are the shares of the receiver");
    refused(["s", "r2"], "differ in session");
    let name = |end: &str, file: &str| folder.path(&format!("{end}/{file}"));
    let change = |end: &str, file: &str, at: usize, byte: u8, fragment: &str| {
        let path = name(end, file);
        let whole = std::fs::read(&path).unwrap();
        let mut changed = whole.clone();
        changed[128 + at] ^= byte;
        std::fs::write(&path, changed).unwrap();
        verify(&folder, ["s", "r"]).assert_refused(1, &[fragment]);
        std::fs::write(&path, whole).unwrap();
    };
    // Rows 0 to 9 of the receiver have keys that the sender lacks.
    change("s", "match.npy", 12, 1, "at place 12: sender_1 is");
    change("r", "match.npy", 3, 2, "neither 0 nor 1");
    change("s", "sender_2.npy", 8 * 4, 1, "at place 4: sender_2 is");
    change("r", "receiver_1.npy", 8 * 15 + 7, 0x40, "at place 15: receiver_1 is");
    change("r", "row.npy", 8 * 7, 7 ^ 6, "at place 7: its row, 6, has another place already");
    change("r", "row.npy", 8 * 29, 29 ^ 2, "at place 29: its row, 2, has another place already");
    change("r", "row.npy", 8 * 5, 64, "at place 6: its row, 6, comes after a later one");
    change("r", "row.npy", 8 * 7 + 7, 0x80, "at place 7: its row is -");
    // Files that are damaged, missing or of another shape.
    for (file, bytes, fragment) in [
        ("s/match.npy", &b"x"[..], "too short"),
        ("r/row.npy", b"\x93NUMPY\x02\x00\x00\x00", "version"),
        ("s/shares.json", b"{}", "not a description of shares"),
    ] {
        let path = folder.path(file);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        refused(["s", "r"], fragment);
        std::fs::write(&path, whole).unwrap();
    }
    let json = folder.read("s/shares.json");
    for (from, to, fragment) in [
        ("\"places\": 30", "\"places\": 31", "differ in places"),
        ("volery shares 1", "volery shares 2", "its format is"),
        ("sender_2", "../sender_2", "its columns are not"),
        ("sender_2", "sender_3", "its columns are not"),
        ("\"decimals\": 2", "\"decimals\": 70000", "decimal places"),
        ("\"bound\": 9999900", "\"bound\": 9999901", "differ in columns"),
    ] {
        assert!(json.contains(from), "{json}");
        folder.write("s/shares.json", json.replacen(from, to, 1));
        refused(["s", "r"], fragment);
    }
    folder.write("s/shares.json", json);
    std::fs::remove_file(name("s", "shares.json")).unwrap();
    refused(["s", "r"], "does not");
}
