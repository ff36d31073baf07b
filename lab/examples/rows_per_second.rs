//! Measures reading the keys of a file and writing its matching rows.
//!
//! `cargo run --release --example rows_per_second [ROWS [BYTES OF PADDING]]`
//! writes a file of that many rows (10,000,000) with a key column of UUID-like text and padding in
//! two further columns (16 bytes), and a Parquet file of the same rows, and prints rows a second
//! for reading each, and for writing every second row of it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use volery_tables::{Format, Output, Reading, Records, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (rows, padding) = (number(10_000_000)?, number(16)? as usize);

    let folder = tempfile::tempdir()?;
    let csv = folder.path().join("rows.csv");
    let parquet = folder.path().join("rows.parquet");
    write_rows(&csv, rows, padding)?;
    let records = measure(&csv)?;
    let all: Vec<u32> = (0..records.keys().len() as u32).collect();
    write_to(&records, &all, &parquet)?;
    drop(records);
    measure(&parquet)?;
    Ok(())
}

/// Reads the file, and writes every second row of it to another file of the same format.
fn measure(path: &Path) -> Result<Records, Box<dyn std::error::Error>> {
    let mib = path.metadata()?.len() >> 20;
    let reading = Reading {
        keys: vec!["id".to_owned()],
        ..Reading::default()
    };
    let start = Instant::now();
    let records = read(path, &reading, &mut |_, _| {})?;
    let read = start.elapsed().as_secs_f64();

    let items: Vec<u32> = (0..records.keys().len() as u32).step_by(2).collect();
    let mut other = path.to_owned();
    other.set_file_name(format!(
        "out.{}",
        path.extension().unwrap_or_default().display()
    ));
    let start = Instant::now();
    write_to(&records, &items, &other)?;
    let write = start.elapsed().as_secs_f64();
    let millions = records.counts().rows as f64 / 1e6;
    writeln!(
        io::stdout(),
        "{}: {millions} million rows, {mib} MiB; {:.2} million rows a second read, {:.2} passed over to write half of them",
        path.extension().unwrap_or_default().display(),
        millions / read,
        millions / write
    )?;
    Ok(records)
}

fn write_to(
    records: &Records,
    items: &[u32],
    path: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let output = Output {
        file: File::create(path)?,
        format: Format::of(path)?,
        extra: None,
    };
    records.write_matches(items, output, &mut |_, _| {})?;
    Ok(())
}

/// Writes distinct unsorted keys: an odd step through all 64-bit numbers.
fn write_rows(path: &Path, rows: u64, padding: usize) -> io::Result<()> {
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
