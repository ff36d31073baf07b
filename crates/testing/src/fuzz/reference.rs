//! A plain reader of text files, written from the documentation of `volery_tables` without its
//! code.

use std::collections::HashSet;

use volery_tables::{EmptyKeys, LONGEST_PAYLOAD};

pub(super) type Row = Vec<Vec<u8>>;

/// The header and the rows of a file without an encoding; `None` if it is not valid.
pub(super) fn parse(mut bytes: &[u8], delimiter: u8) -> Option<Vec<Row>> {
    let wide: [&[u8]; 3] = [b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"];
    if wide.iter().any(|mark| bytes.starts_with(mark)) {
        return None;
    }
    while let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        bytes = rest;
    }
    let mut rows = Vec::new();
    while let Some((&first, rest)) = bytes.split_first() {
        if matches!(first, b'\r' | b'\n') {
            bytes = rest;
        } else {
            rows.push(row(&mut bytes, delimiter)?);
        }
    }
    let header: &Row = rows.first()?;
    let names: HashSet<_> = header.iter().collect();
    if !header.iter().all(|name| std::str::from_utf8(name).is_ok()) {
        return None;
    }
    let whole = rows.iter().all(|row| row.len() == header.len());
    (whole && names.len() == header.len()).then_some(rows)
}

fn row(bytes: &mut &[u8], delimiter: u8) -> Option<Row> {
    let ends = |byte: u8| matches!(byte, b'\r' | b'\n') || byte == delimiter;
    let mut row = Row::new();
    loop {
        row.push(match bytes.strip_prefix(b"\"") {
            Some(rest) => {
                *bytes = rest;
                quoted(bytes)?
            }
            None => {
                let end = bytes.iter().position(|&byte| ends(byte));
                let (field, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
                *bytes = rest;
                field.to_vec()
            }
        });
        match bytes.first() {
            Some(&byte) if byte == delimiter => *bytes = &bytes[1..],
            Some(&byte) if !ends(byte) => return None,
            _ => return Some(row),
        }
    }
}

/// The rest of a field after its opening quote.
fn quoted(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let mut field = Vec::new();
    loop {
        let end = bytes.iter().position(|&byte| byte == b'"')?;
        field.extend_from_slice(&bytes[..end]);
        *bytes = &bytes[end + 1..];
        match bytes.strip_prefix(b"\"") {
            None => return Some(field),
            Some(rest) => *bytes = rest,
        }
        field.push(b'"');
    }
}

/// The query on a file: key columns and a value column by index.
pub(super) struct Question {
    pub(super) keys: Vec<usize>,
    pub(super) value: Option<usize>,
    pub(super) empty_keys: EmptyKeys,
}

/// The numbers of the rows that are items, counted from 1; `None` if one of the rules makes it an
/// error.
pub(super) fn items(rows: &[Row], question: &Question) -> Option<Vec<usize>> {
    let mut seen = HashSet::new();
    let mut items = Vec::new();
    for (number, row) in rows.iter().enumerate().skip(1) {
        let key: Vec<_> = question.keys.iter().map(|&column| &row[column]).collect();
        if key.iter().any(|field| field.is_empty()) {
            match question.empty_keys {
                EmptyKeys::Error => return None,
                EmptyKeys::Skip => continue,
            }
        }
        if !seen.insert(key) {
            continue;
        }
        // The encoding of a value has fewer bytes than this besides the text.
        let is_value = |field: &[u8]| {
            std::str::from_utf8(field).is_ok() && field.len() + 16 <= LONGEST_PAYLOAD
        };
        if question.value.is_some_and(|column| !is_value(&row[column])) {
            return None;
        }
        items.push(number);
    }
    Some(items)
}
