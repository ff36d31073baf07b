//! Every rule about invalid text files, with its error message.

use std::fs;

use volery_tables::{EmptyKeys, Encoding, Format, Lint, Problem, Rule};

use crate::{Folder, Reading, by, complaint, matches, read, read_as, texts};

/// The error for reading these bytes with the key column `id`.
fn csv(bytes: impl AsRef<[u8]>) -> (String, String) {
    complaint(read_as("rows.csv", bytes, &by(&["id"])))
}

fn refused(bytes: impl AsRef<[u8]>, reading: &Reading) -> (String, String) {
    complaint(read_as("rows.csv", bytes, reading))
}

#[test]
fn missing_columns() {
    let (message, hint) = csv("ID,name\nsecret,x\n");
    assert_eq!(message, r#"there is no column "id"; the columns are "ID", "name""#);
    assert_eq!(hint, r#"case and spaces count: did you mean "ID"?"#);
    let (_, hint) = csv("id;name\nsecret;x\n");
    assert_eq!(hint, "is the delimiter ';'? set it with --delimiter");
    let (message, _) = refused("id,a\n1,2\n", &by(&["id", "b"]));
    assert_eq!(message, r#"there is no column "b"; the columns are "id", "a""#);
    let (_, hint) = refused("id,e-mail,email\n1,2,3\n", &by(&["emial"]));
    assert_eq!(hint, r#"did you mean "email"?"#);
    let (message, hint) = refused("id\n1\n", &by(&["id:number"]));
    assert!(message.starts_with(r#"key "id:number": "#), "{message}");
    assert!(hint.starts_with("after the colon, give a type"), "{hint}");
    let (message, hint) = refused("a\n1\n", &by(&["id:number"]));
    assert_eq!(message, r#"there is no column "id:number"; the columns are "a""#);
    assert!(hint.starts_with("after the colon, give a type"), "{hint}");
    let value = Reading { value: Some("price".to_owned()), ..by(&["id"]) };
    let (message, _) = refused("id,a\n1,2\n", &value);
    assert_eq!(message, r#"there is no column "price"; the columns are "id", "a""#);
    let wide: Vec<String> = (0..100).map(|i| format!("c{i}\t{}", "x".repeat(i))).collect();
    let (message, _) = csv(wide.join(","));
    assert!(message.contains(r#""c1\tx""#) && message.ends_with(" and 60 more"), "{message}");
    assert!(message.len() < 4000);
}

#[test]
fn wrong_arguments() {
    assert_eq!(refused("id\n1\n", &by(&[])).0, "no key column is named");
    assert_eq!(
        refused("id,a\n1,2\n", &by(&["id", "a", "id:integer"])).0,
        r#"column "id" is named twice in the key"#
    );
    for delimiter in [b'"', b'\n', b'\r', 0, 0x80, 0xff] {
        let reading = Reading { delimiter: Some(delimiter), ..by(&["id"]) };
        assert_eq!(
            refused("id\n1\n", &reading).0,
            format!("byte {delimiter} cannot be a delimiter")
        );
    }
}

#[test]
fn headers_rows_and_quotes() {
    // The last row: the earlier problem is reported, although a piece of the file is inspected as a
    // whole.
    let table = r#"
id,name,x,name\nsecret,,,\n | columns 2 and 4 have the same name, "name"
id,,\n1,2,3\n | row 1 has a value in column 2, which has no name
id,a\n1,2\nsecret\n3,4\n | row 2 has 1 field, the header has 2
id,a\n\n1,2\n\n1,secret,3\n | row 2 has 3 fields, the header has 2
id\n1\nsecret,\n | row 2 has 2 fields, the header has 1
id,a\n1,2\n3,"secret\n4,5\n | a quoted field that starts in row 2, on line 3, is never closed
id,"a\n1,2\n | a quoted field that starts in the header, on line 1, is never closed
id,a\n1,"x\ny"\n2,"secret"z\n | there is text after a closing quote in row 2, on line 4
id,a\n1,2\n,3\n4,"secret | row 2 has no key: column "id" is empty
"#;
    for row in table.trim().lines() {
        let (text, message) = row.split_once(" | ").unwrap();
        assert_eq!(csv(text.replace("\\n", "\n")).0, message);
    }
}

#[test]
fn nothing_in_the_file() {
    for bytes in ["", "\n", "\r\n\r\n", "\u{feff}", "\u{feff}\n"] {
        assert_eq!(csv(bytes).0, "is empty", "{bytes:?}");
    }
    for bytes in ["id", "id\n", "id\r\n", "\u{feff}id\n\n"] {
        let records = read_as("rows.csv", bytes, &by(&["id"])).unwrap();
        assert!(records.keys().is_empty() && records.counts.rows == 0);
    }
}

#[test]
fn encodings() {
    let utf16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let (message, hint) = csv(utf16("\u{feff}id\nsecret\n"));
    assert_eq!(message, "is utf-16le, by its byte-order mark");
    assert_eq!(hint, "--encoding utf-16le");
    for (mark, label, remedy) in [
        (&b"\xfe\xff\0i"[..], "utf-16be", "--encoding utf-16be"),
        (b"\xff\xfe\0\0i\0\0\0", "utf-32le", "convert it to UTF-8"),
        (b"\0\0\xfe\xff\0\0\0i", "utf-32be", "convert it to UTF-8"),
    ] {
        let message = format!("is {label}, by its byte-order mark");
        assert_eq!(csv(mark), (message, remedy.to_owned()));
    }
    // Only a whole mark is one, and only once.
    let (message, _) = csv(b"\xef\xbb\xbf\xef\xbbid\n1\n");
    assert_eq!(message, "the name of column 1 is not UTF-8");

    let declared = |label: &str| Reading { encoding: Some(label.parse().unwrap()), ..by(&["id"]) };
    let records = read_as("rows.csv", utf16("\u{feff}id\nö\n"), &declared("utf-16le")).unwrap();
    assert_eq!(records.keys(), texts(["ö"]));
    assert_eq!(records.notices(), ["a byte-order mark was removed from the front of the file"]);
    let records = read_as("rows.csv", b"id\n\xf6\n", &declared("latin1")).unwrap();
    assert_eq!(records.keys(), texts(["ö"]));
    assert_eq!(
        refused(b"\xef\xbb\xbfid\n1\n", &declared("latin1")).0,
        "is utf-8 by its byte-order mark, not windows-1252"
    );
    let other = refused(b"\xff\xfei\0", &declared("utf-8")).0;
    assert_eq!(other, "is utf-16le by its byte-order mark, not UTF-8");
    let malformed = refused(b"id\n1\nsecret\xff\n", &declared("utf-8"));
    assert_eq!(malformed.0, "row 2 is not valid UTF-8");
    assert_eq!(refused(b"i\xff\n1\n", &declared("utf-8")).0, "the header is not valid UTF-8");
    assert_eq!(csv(b"id,i\xff\n1\n").0, "the name of column 2 is not UTF-8");
    for cut in [&b"i\0d\0\n\0a\0\0\xd8"[..], b"i\0d\0\n\0a\0b"] {
        assert_eq!(refused(cut, &declared("utf-16le")).0, "row 1 is not valid UTF-16LE");
    }

    // Without a declaration, fields are bytes.
    let records = read_as("rows.csv", b"id\n\xff\xfe\0\n\0\n", &by(&["id"])).unwrap();
    assert_eq!(records.keys(), texts([&b"\xff\xfe\0"[..], b"\0"]));
}

#[test]
fn keys_that_are_not_utf_8_are_counted() {
    let latin = b"a,b\nzo\xe9,x\nann,\xff\n";
    let folder = Folder::new();
    let found = read(&folder.write("rows.csv", latin), &by(&["a"])).unwrap();
    assert_eq!(found.counts.rules[0].not_utf8, 1);
    let binary = read_as("rows.csv", latin, &by(&["b:binary"])).unwrap();
    assert_eq!(binary.counts.rules[0].not_utf8, 0);
    let rules = vec![Rule::parse("a,b").unwrap()];
    let reading = volery_tables::Reading { rules, ..Default::default() };
    let lint = Lint::of(&found.table, &reading, &mut |_| {}).unwrap();
    assert_eq!(lint.rules[0].counts.not_utf8, 2);
    let reading = Reading { encoding: Some("latin1".parse::<Encoding>().unwrap()), ..by(&["a"]) };
    assert_eq!(read_as("rows.csv", latin, &reading).unwrap().counts.rules[0].not_utf8, 0);
}

#[test]
fn rows_without_a_key() {
    let text = "id,a\n1,2\n,3\n4,\n\"\",\n";
    let (message, hint) = csv(text);
    assert_eq!(message, r#"row 2 has no key: column "id" is empty"#);
    assert_eq!(hint, "--empty-keys skip leaves such rows out");
    let skip = Reading { empty_keys: EmptyKeys::Skip, ..by(&["id", "a"]) };
    let records = read_as("rows.csv", text, &skip).unwrap();
    assert_eq!(
        (records.counts.rows, records.counts.rules[0].keys, records.counts.rules[0].empty),
        (4, 1, 3)
    );
    // A space is a key, and an empty field of another column is allowed.
    let records = read_as("rows.csv", "id,a\n ,\n", &by(&["id"])).unwrap();
    assert_eq!(records.keys(), texts([" "]));
    // An empty field is reported as a missing key, not as a wrong type.
    let skip = Reading { keys: vec!["id:integer".to_owned()], ..skip };
    let records = read_as("rows.csv", text, &skip).unwrap();
    assert_eq!(records.counts.rules[0].empty, 2);
}

#[test]
fn rows_with_the_same_key() {
    let mut problem = Problem::DuplicateKey { first: 1, first_file: None, second: 3 };
    assert_eq!(problem.to_string(), "rows 1 and 3 have the same key");
    let Problem::DuplicateKey { first_file, .. } = &mut problem else { unreachable!() };
    *first_file = Some("a.csv".into());
    assert_eq!(problem.to_string(), "row 1 of a.csv and row 3 have the same key");
    // Keys are compared by their type, and the first row of each has its payload.
    let text = "id,a\n7,1\nx,2\n007,3\n";
    let skip = Reading { value: Some("a".to_owned()), ..by(&["id:text"]) };
    let records = read_as("rows.csv", text, &skip).unwrap();
    assert_eq!(records.keys(), texts(["7", "x", "007"]));
    let numbers = read_as("rows.csv", "id,a\n7,1\n007,2\n", &by(&["id:integer"])).unwrap();
    assert_eq!((numbers.keys().len(), &numbers.rows[0][..]), (1, &[Some(0); 2][..]));
}

#[test]
fn fields_that_are_not_of_the_type() {
    for (key, field, message, hint) in [
        (
            "id:integer",
            "secret",
            "is not an integer",
            "an integer is decimal digits with or without a sign, and no space",
        ),
        ("id:boolean", "yes", "is not a boolean", "a boolean is true or false"),
        ("id:date", "1.2.2024", "is not a date", "a date is written YYYY-MM-DD"),
    ] {
        let text = format!("id\n\"{field}\"\n");
        let (found, advice) = refused(text, &by(&[key]));
        assert_eq!(found, format!(r#"column "id" of row 1 {message}"#));
        assert_eq!(advice, hint);
    }
}

#[test]
fn missing_files_and_folders_are_refused() {
    let folder = Folder::new();
    let reading = by(&["id"]);
    let (message, _) = complaint(read(&folder.path("none.csv"), &reading));
    assert!(message.starts_with("could not be opened: "), "{message}");
    fs::create_dir(folder.path("folder.csv")).unwrap();
    assert_eq!(
        complaint(read(&folder.path("folder.csv"), &reading)).0,
        "is a folder without .parquet files"
    );
    let (message, hint) = complaint(read(&folder.write("rows.xlsx", "id\n"), &reading));
    assert_eq!(message, "the name does not say what kind of file this is");
    assert!(hint.contains(".csv, .tsv, .txt") && hint.contains(".parquet"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/null", folder.path("device.csv")).unwrap();
        let (message, _) = complaint(read(&folder.path("device.csv"), &reading));
        assert_eq!(message, "is not a regular file");
    }
}

#[test]
fn files_that_change() {
    let folder = Folder::new();
    let path = folder.write("rows.csv", "id,a\n1,2\n3,4\n");
    let records = read(&path, &by(&["id"])).unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let problem = || {
        let error = matches(&records, &[1], Format::Csv).unwrap_err();
        matches!(error.problem(), Problem::Changed)
    };
    // The same length and time, with another header, or one row less.
    for text in ["id,b\n1,2\n3,4\n", "id,a\n1,2\n\n\n\n\n"] {
        fs::write(&path, text).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(modified).unwrap();
        assert!(problem(), "{text:?}");
    }
    fs::write(&path, "id,a\n1,2\n3,4\n5,6\n").unwrap();
    assert!(problem());
    fs::write(&path, "id,a\n1,2\n3,4\n").unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(modified + std::time::Duration::from_secs(1)).unwrap();
    assert!(problem());
    file.set_modified(modified).unwrap();
    assert!(!matches(&records, &[1], Format::Csv).unwrap().is_empty());
    fs::remove_file(&path).unwrap();
    let error = matches(&records, &[1], Format::Csv).unwrap_err();
    assert!(matches!(error.problem(), Problem::Changed));
}

#[test]
fn text_that_cannot_go_into_parquet() {
    let folder = Folder::new();
    let path = folder.write("rows.csv", b"id,a\n0,\n1,2\n3,\xff\n");
    let records = read(&path, &by(&["id"])).unwrap();
    for (format, article) in [(Format::Parquet, "a Parquet"), (Format::Arrow, "an Arrow")] {
        let message =
            format!("column 2 of row 3 is not UTF-8 and cannot be written to {article} file");
        assert_eq!(complaint(matches(&records, &[1, 2], format)).0, message);
        assert!(matches(&records, &[0, 1], format).is_ok());
    }
    assert!(matches(&records, &[0, 1], Format::Csv).is_ok());
}
