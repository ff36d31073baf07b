//! Shares of the matching rows: two processes on the loopback interface, their folders, and
//! `verify`.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt8Array, UInt64Array};
use volery_tables::{Format, Inputs, Output, Packing, Sink, Table};

use crate::common::pair::{Folder, load, pair};
use crate::common::{self, ProcessResult, run, words};

/// Rows of both sides: key, then values in hundredths.
fn tables(folder: &Folder, n: [u32; 2]) -> [String; 2] {
    let value = |number: i64| {
        format!(
            "{}{}.{:02}",
            if number < 0 { "-" } else { "" },
            number.abs() / 100,
            number.abs() % 100
        )
    };
    let mut left = "key,price,size\n".to_owned();
    for key in 0..n[0] {
        let number = i64::from(key);
        left += &format!("k{key},{},{}\n", value(number * 7 - 300), value(5 - number));
    }
    let mut right = "key,other,spend\n".to_owned();
    for key in (n[0] / 2..n[0] / 2 + n[1]).rev() {
        right += &format!("k{key},x,{}\n", value(i64::from(key) * 3));
    }
    [folder.write("a.csv", left), folder.write("b.csv", right)]
}

/// Both sides, with shares of two columns and one; `more` goes to both.
fn shared(folder: &Folder, n: [u32; 2], more: &str, ends: [&str; 2]) -> [ProcessResult; 2] {
    let [a, b] = tables(folder, n);
    let [left, right] = ends.map(|end| folder.path(end));
    let line = |input: &str, columns: &str, out: &str| {
        format!(
            "--input {input} --key key --result shares={columns} --bound 99999 --decimals 2 --out \
             {out} {more}"
        )
    };
    let [left, right] = [line(&a, "price,size", &left), line(&b, "spend", &right)];
    pair("psi", &words(left.trim()), &words(right.trim()))
}

fn assert_done(both: &[ProcessResult; 2]) {
    for side in both {
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

/// The data of an array, behind its header.
fn array(path: &str, dtype: &str) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let length = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8(bytes[10..length].to_vec()).unwrap();
    assert!(header.contains(&format!("'descr': '{dtype}'")), "{header}");
    bytes[length..].to_vec()
}

fn integers(path: &str, dtype: &str) -> Vec<i64> {
    let bytes = array(path, dtype);
    bytes.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
}

fn verify(folder: &Folder, ends: [&str; 2]) -> ProcessResult {
    run(&["verify", &folder.path(ends[0]), &folder.path(ends[1])])
}

#[test]
fn shares_fit_together() {
    for (n, more, order) in [
        ([40, 30], "", "bins"),
        ([40, 30], "--row-order", "rows"),
        ([1, 1], "", "bins"),
        ([0, 7], "", "bins"),
        ([0, 7], "--row-order", "rows"),
        ([2, 0], "--row-order", "rows"),
        ([33, 34], "--row-order --protocol circuit-low", "rows"),
    ] {
        let folder = Folder::new();
        assert_done(&shared(&folder, n, more, ["s", "r"]));
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
    let place = |end: &str, name: &str| folder.path(&format!("{end}/{name}.npy"));
    let rows = integers(&place("r", "row"), "<i8");
    let bits = ["s", "r"].map(|end| array(&place(end, "match"), "|u1"));
    let sums = ["sender_1", "sender_2", "receiver_1"].map(|name| {
        let [left, right] = ["s", "r"].map(|end| integers(&place(end, name), "<u8"));
        assert_eq!(left.len(), rows.len());
        left.iter().zip(right).map(|(left, right)| left.wrapping_add(right)).collect::<Vec<_>>()
    });
    let mut seen = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        let key = (*row >= 0).then(|| i64::from(n[0] / 2 + n[1]) - 1 - row);
        let common = key.filter(|key| *key < n[0].into());
        assert_eq!(bits[0][at] ^ bits[1][at], u8::from(common.is_some()));
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
    assert_done(&shared(&folder, [20, 20], "--row-order", ["s.parquet", "r.parquet"]));
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
    assert_done(&shared(&folder, [20, 20], "--row-order", ["s2.parquet", "r"]));
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
    assert_done(&shared(&folder, [40, 30], "--row-order", ["s", "r"]));
    assert_done(&shared(&folder, [40, 30], "--row-order", ["s2", "r2"]));
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

#[test]
fn options_that_do_not_fit() {
    let folder = Folder::new();
    let [input, _] = tables(&folder, [3, 3]);
    let out = folder.path("out");
    let start = format!("psi --role sender --listen 127.0.0.1:0 --input {input} --key key");
    for (more, fragment) in [
        ("--result shares", "--out"),
        ("--result shares --out -", "standard output"),
        ("--result shares --out x.csv", "another format"),
        ("--result shares=price --out {}", "--bound"),
        ("--result shares=price,price --bound 5 --out {}", "named twice"),
        ("--result shares --bound 5 --out {}", "no columns"),
        ("--result shares --minimum 5 --out {}", "--minimum"),
        ("--result shares --epsilon 1 --out {}", "--epsilon"),
        ("--result shares --both --out {}", "--both"),
        ("--result shares --to both --out {}", "--to"),
        ("--result shares --security malicious --out {}", "--security"),
        ("--result shares --protocol dh --out {}", "--protocol"),
        ("--result shares --or size --out {}", "--or"),
        ("--result shares --resume w --out {}", "--resume"),
        ("--result count --row-order", "--row-order"),
        ("--row-order", "--row-order"),
    ] {
        let line = format!("{start} {}", more.replace("{}", &out));
        run(&words(&line)).assert_refused(2, &[fragment]);
    }
    // A folder with something else is not replaced.
    std::fs::create_dir(&out).unwrap();
    folder.write("out/notes.txt", "mine");
    for force in ["", " --force"] {
        let line = format!("{start} --result shares --out {out}{force}");
        run(&words(&line)).assert_refused(2, &["--out"]);
    }
    assert_eq!(folder.read("out/notes.txt"), "mine");
    // One of an earlier run is, with --force.
    assert_done(&shared(&folder, [10, 10], "", ["s", "r"]));
    let again = shared(&folder, [10, 10], "--force", ["s", "r"]);
    assert_done(&again);
}

#[test]
fn what_a_run_would_cost() {
    let folder = Folder::new();
    let [input, _] = tables(&folder, [500, 3]);
    let line = format!(
        "psi --role sender --connect 127.0.0.1:1 --input {input} --key key --result \
         shares=price --bound 5 --decimals 2 --row-order --dry-run"
    );
    let bound = run(&words(&line));
    // A value is beyond that bound: its place is named, not the value.
    bound.assert_refused(1, &["row 1", "beyond --bound"]);
    let ended = run(&words(&line.replace("--bound 5 ", "--bound 100 ")));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    for fragment in ["500 distinct keys, 1 column", "bytes: ", "neither side learns which keys"] {
        assert!(ended.stdout.contains(fragment), "{ended:?}");
    }
}

/// A value that does not fit ends the run before it meets the peer, without a file.
#[test]
fn a_broken_run_leaves_nothing() {
    let folder = Folder::new();
    let [a, _] = tables(&folder, [5, 5]);
    let out = folder.path("out");
    let line = format!(
        "psi --role sender --connect 127.0.0.1:1 --wait 0s --input {a} --key key --result shares --out {out}"
    );
    let ended = run(&words(&line));
    assert!(ended.status.is_some_and(|status| status != 0), "{ended:?}");
    assert_eq!(folder.names(), ["a.csv", "b.csv"]);
}
