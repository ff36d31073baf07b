//! Usage errors and invalid files: each ends by its documented rule, names the row if there is one,
//! never shows a key, and leaves nothing on the disk.

mod output;

use std::os::unix::fs::symlink;

use crate::common::pair::{Folder, PLANTED, store};
use crate::common::table::{lists, optional, required};
use crate::common::{ProcessResult, run};
use parquet::data_type::ByteArray;

/// Runs one side that must fail before it connects; `input` is the path of its file.
fn refused(folder: &Folder, role: &str, input: &str, more: &[&str]) -> ProcessResult {
    let before = (folder.names(), std::fs::read(input).ok());
    let call = ["psi", "--role", role, "--listen", "127.0.0.1:0", "--input", input, "-v"];
    let finished = run(&[&call[..], more].concat());
    assert!(!finished.stderr.contains(PLANTED), "{finished:?}");
    assert!(!finished.stderr.contains("listening"), "{finished:?}");
    assert_eq!((folder.names(), std::fs::read(input).ok()), before, "{finished:?}");
    finished
}

/// Runs both roles on a file that neither accepts.
fn assert_bad_file(folder: &Folder, input: &str, more: &[&str], fragment: &str, hint: &str) {
    let out = folder.path("out.csv");
    for (role, own) in [("sender", &[][..]), ("receiver", &["--out", &out])] {
        let finished = refused(folder, role, input, &[more, own].concat());
        finished.assert_refused(1, &[input, fragment]);
        let hints = finished.stderr.lines().filter(|line| line.starts_with("hint: "));
        assert!(hints.collect::<String>().contains(hint), "{hint:?} is not in {finished:?}");
    }
}

#[test]
fn text_files() {
    // The content with `\n` for the end of a line, the options, and parts of the message and of its
    // hint, or `-`. Blank lines are not rows; one rule does not excuse a violation of another.
    let table = r#"
k,v\n{p},1\n | --key email | there is no column "email"; the columns are "k", "v" | -
Key ,v\n{p},1\n | --key key | there is no column "key" | did you mean "Key "?
k;v\n{p};1\n | --key k | there is no column "k" | name it with --delimiter
k,v\n{p},1\n | --key k:number | key "k:number": there is no normaliser 'number' | text, binary, integer
k,v\n{p},1\n | --key k,k | column "k" is named twice in the key | once
k,v,k\n{p},1,2\n | --key v | columns 1 and 3 have the same name, "k" | rename
k,v\na,1\n{p}\n | --key k | row 2 has 1 field, the header has 2 | --delimiter
k,v\n{p},1,\n | --key k | row 1 has 3 fields, the header has 2 | quote fields
k,v\na,1\n\n"{p},1\nb,2\n | --key k | row 2, on line 4, never closes | written twice
k,v\n"{p}"s,1\n | --key k | after a closing quote in row 1, on line 2 | quoted as a whole
EMPTY | --key k | is empty: there is no header | first line
BOM | --key k | is empty: there is no header | first line
k,v\na,1\n,{p}\n | --key k | row 2 has no key: column "k" is empty | --empty-keys skip
k,v\n{p},1\n{p},\n | --key v,k | row 2 has no key: column "v" is empty | --empty-keys
k,v\na,1\n{p},2\n{p},3\nb,4\n | --key k --duplicates error | rows 2 and 3 have the same key | --duplicates dedup
k,v\n{p},1\n{p},2\nb,2\n{p},2\n | --key k,v --duplicates error | rows 2 and 4 have the same key | --duplicates dedup
k,v\n\n{p},\n\n{p},\n | --key k --empty-keys skip --duplicates error | rows 1 and 2 have the same key | -
k,v\n{p},1\n,2\n | --key k --duplicates dedup | row 2 has no key | -
k\n1\n{p}\n | --key k:integer | column "k" of row 2 is not an integer | decimal digits
k\n{p}\n | --key k:date | column "k" of row 1 is not a date | YYYY-MM-DD
k\n2023-02-29\n{p}\n | --key k:date | column "k" of row 1 is not a date | YYYY-MM-DD
k\ntrue\n{p}\n | --key k:boolean | column "k" of row 2 is not | true or false
k\n{p}\n | --key k --delimiter " | byte 34 cannot be a delimiter | one ASCII
"#;
    for row in table.trim().lines() {
        let [content, more, fragment, hint] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let content = match content {
            "EMPTY" => String::new(),
            "BOM" => "\u{feff}".to_owned(),
            content => content.replace("\\n", "\n").replace("{p}", PLANTED),
        };
        let hint = if hint == "-" { "" } else { hint };
        let folder = Folder::new();
        let input = folder.write("data.csv", content);
        let more: Vec<&str> = more.split(' ').collect();
        assert_bad_file(&folder, &input, &more, fragment, hint);
    }
}

#[test]
fn encodings() {
    let folder = Folder::new();
    let wide: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(format!("k\n{PLANTED}\n").encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let wide = folder.write("wide.csv", wide);
    assert_bad_file(&folder, &wide, &["--key", "k"], "byte-order mark", "--encoding utf-16le");
    let more = ["--key", "k", "--encoding", "windows-1252"];
    assert_bad_file(&folder, &wide, &more, "byte-order mark, not windows-1252", "utf-16le");
    let latin =
        folder.write("latin.csv", [format!("k\na\n{PLANTED}").as_bytes(), b"\xeb\n"].concat());
    let more = ["--key", "k", "--encoding", "utf-8"];
    assert_bad_file(&folder, &latin, &more, "row 2 is not valid UTF-8", "--encoding");

    // Bytes that are not text match, but cannot be stored in a text column: found before the run.
    let out = folder.path("out.parquet");
    let before = folder.names();
    let more = ["--key", "k", "--out", &out];
    let receiver = refused(&folder, "receiver", &latin, &more);
    receiver.assert_refused(1, &["latin.csv: column 1 of row 2 is not UTF-8"]);
    assert!(!receiver.stderr.contains(PLANTED), "{receiver:?}");
    assert_eq!(folder.names(), before);
}

#[test]
fn parquet_files() {
    let folder = Folder::new();
    let texts = [Some("a"), Some(PLANTED), None, Some(PLANTED)];
    let texts = texts.map(|text| text.map(ByteArray::from));
    let numbers = required("int32 n", vec![1_i32, 2, 3, 4]);
    let elements: [&[Option<i32>]; 4] = [&[Some(0)], &[Some(1)], &[Some(2)], &[Some(3)]];
    let lists = lists("l", &elements.map(Some));
    let (good, nested) = (folder.path("good.parquet"), folder.path("nested.parquet"));
    let columns = [
        optional("binary k (STRING)", texts),
        numbers.clone(),
        required("double f", vec![0.5_f64; 4]),
    ];
    store(&good, &columns);
    store(&nested, &[numbers, lists]);
    let bytes = std::fs::read(&good).unwrap();
    assert!(bytes.windows(PLANTED.len()).any(|bytes| bytes == PLANTED.as_bytes()), "in clear");

    let table = r#"
--key x | there is no column "x"; the columns are "k", "n", "f" | -
--key f | column "f" is of type double, which cannot be a key | text, binary
--key k | row 3 has no key: column "k" is empty | --empty-keys skip
--key k --empty-keys skip --duplicates error | rows 2 and 4 have the same key | --duplicates dedup
--key n:date | column "n" is integer and cannot be read as date | "n":text reads it as text
--key k:integer | column "k" of row 1 is not an integer | decimal
--key n --delimiter ; | a Parquet file has no delimiter | --delimiter
--key n --encoding utf-8 | a Parquet file has no encoding | --encoding
"#;
    for row in table.trim().lines() {
        let [more, fragment, hint] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let hint = if hint == "-" { "" } else { hint };
        let more: Vec<&str> = more.split(' ').collect();
        assert_bad_file(&folder, &good, &more, fragment, hint);
    }
    let out = folder.path("out.csv");
    refused(&folder, "receiver", &nested, &["--key", "n", "--out", &out])
        .assert_refused(1, &["column \"l\" is of type", "which has no form as text"]);

    let bad = |name: &str, bytes: &[u8], fragment: &str| {
        let path = folder.write(name, bytes);
        assert_bad_file(&folder, &path, &["--key", "n"], fragment, "");
    };
    bad("text.parquet", format!("k,n\n{PLANTED},1\n").as_bytes(), "is not a Parquet file");
    bad("empty.parquet", b"", "is empty");
    for keep in [5, 12, bytes.len() / 2, bytes.len() - 1] {
        bad("cut.parquet", &bytes[..keep], "is cut short");
    }
    let mut damaged = bytes.clone();
    let end = damaged.len() - 40;
    damaged[4..end].fill(0xff);
    bad("damaged.parquet", &damaged, "is damaged");
}

#[test]
fn wrong_calls() {
    let folder = Folder::new();
    let data = folder.write("data.csv", format!("k,v\n{PLANTED},1\n"));
    let other = folder.write("data.xlsx", format!("k,v\n{PLANTED},1\n"));
    std::fs::create_dir(folder.path("folder.csv")).unwrap();
    symlink("/dev/null", folder.path("device.csv")).unwrap();
    let folder_path = folder.path("folder.csv");
    let (device, absent) = (folder.path("device.csv"), folder.path("absent.csv"));
    let out = folder.path("out.csv");
    let lost = folder.path("no/such/out.csv");
    for (input, more, status, fragment) in [
        (&data, "", 2, "--key"),
        (&data, "--key k", 2, "--out: the receiver needs an output file for its matching rows"),
        (&data, "--key k --out OUT --protocol ecdh", 2, "'ecdh'"),
        (
            &data,
            "--key k --out OUT --security malicious --protocol kkrt",
            2,
            "--security: kkrt is secure against semi-honest peers only",
        ),
        (
            &data,
            "--key k --out OUT --security malicious --protocol vole-low",
            2,
            "--security: vole-low is secure against semi-honest peers only",
        ),
        (
            &data,
            "--key k --out OUT --security malicious --both",
            2,
            "the sender would have to trust the receiver's report",
        ),
        (
            &data,
            "--key k --out OUT --protocol vole --security malicious --both",
            2,
            "not available with --both",
        ),
        (
            &data,
            "--key k --out OUT --protocol dh --both",
            2,
            "--both: dh gives the result to the receiver only",
        ),
        (
            &data,
            "--key k --out OUT --protocol vole --link 1Gbit,1ms",
            2,
            "--link: --protocol vole is the same on every link",
        ),
        (&data, "--key k --out OUT --link fast", 2, "--link"),
        (&data, "--key k --out OUT --security none", 2, "--security"),
        (&data, "--key k --out OUT --duplicates join", 2, "choose keep, error or dedup"),
        (&data, "--key k --out OUT --empty-keys keep", 2, "choose error or skip"),
        (&data, "--key k --out OUT --delimiter ab", 2, "a delimiter is one ASCII character"),
        (&data, "--key k --out OUT --encoding klingon", 2, "--encoding"),
        (&data, "--key k --out out", 2, "--out: out: the name does not say what kind of file"),
        (&data, "--key k --out FOLDER", 2, "exists"),
        (&data, "--key k --out FOLDER --force", 2, "exists and is not a file"),
        (&data, "--key k --out LOST", 2, "--out: "),
        (&data, "--key k --out OUT --connect 127.0.0.1:1", 2, "only one of them may be given"),
        (&data, "--key k --out OUT --value v", 2, "--value"),
        (&other, "--key k --out OUT", 1, "the name does not say what kind of file this is"),
        (&folder_path, "--key k --out OUT", 1, "is a folder without .parquet files"),
        (&device, "--key k --out OUT", 1, "is not a regular file"),
        (&absent, "--key k --out OUT", 1, "could not be opened"),
    ] {
        let names = [("OUT", &out), ("FOLDER", &folder_path), ("LOST", &lost)];
        let more: Vec<&str> = more
            .split_whitespace()
            .map(|word| names.iter().find(|(name, _)| *name == word).map_or(word, |(_, path)| path))
            .collect();
        refused(&folder, "receiver", input, &more).assert_refused(status, &[fragment]);
    }
    let more = ["--key", "k", "--out", &out];
    refused(&folder, "sender", &data, &more).assert_refused(2, &["the sender gets no rows"]);
    refused(&folder, "sender", &data, &["--key", "k", "--both"])
        .assert_refused(2, &["with --both the sender needs an output file"]);
}
