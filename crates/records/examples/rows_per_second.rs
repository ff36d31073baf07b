//! How fast a CSV file is read, and its matching rows written.
//!
//! `cargo run --release -p volery-records --example rows_per_second [ROWS [BYTES OF PADDING]]`
//! makes a file of that many rows (10,000,000) with a key column of UUID-like text and padding in two further columns
//! (16 bytes), and prints rows a second for reading it, and for writing every second row of it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::Instant;

use volery_records::{Format, Output, Reading, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (rows, padding) = (number(10_000_000)?, number(16)? as usize);

    let folder = tempfile::tempdir()?;
    let path = folder.path().join("rows.csv");
    write_rows(&path, rows, padding)?;
    let mib = path.metadata()?.len() >> 20;
    let mut out = io::stdout().lock();
    writeln!(out, "{rows} rows, {mib} MiB")?;

    let reading = Reading {
        keys: vec!["id".to_owned()],
        ..Reading::default()
    };
    let start = Instant::now();
    let records = read(&path, &reading, &mut |_, _| {})?;
    let rate = rows as f64 / start.elapsed().as_secs_f64();
    writeln!(out, "read:  {:.2} million rows a second", rate / 1e6)?;

    let items: Vec<u32> = (0..records.keys().len() as u32).step_by(2).collect();
    let output = Output {
        file: File::create(folder.path().join("out.csv"))?,
        format: Format::Csv,
        extra: None,
    };
    let start = Instant::now();
    records.write_matches(&items, output, &mut |_, _| {})?;
    let rate = rows as f64 / start.elapsed().as_secs_f64();
    writeln!(out, "write: {:.2} million rows read a second", rate / 1e6)?;
    Ok(())
}

/// Distinct keys in no order: a step of odd length through all 64-bit numbers.
fn write_rows(path: &std::path::Path, rows: u64, padding: usize) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "name,id,note")?;
    let filler = "x".repeat(padding / 2);
    for i in 0..rows {
        let a = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let b = a.rotate_left(31).wrapping_mul(0xd1b5_4a32_d192_ed03);
        writeln!(file, "{filler},{a:016x}-{:016x},{filler}", b >> 4)?;
    }
    file.flush()
}
