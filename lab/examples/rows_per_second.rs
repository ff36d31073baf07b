//! Measures reading the keys of a file and writing its matching rows.
//!
//! `cargo run --profile dist --example rows_per_second [ROWS [BYTES OF PADDING]]`
//! writes a file of that many rows (10,000,000) with a key column of UUID-like text and padding in
//! two further columns (16 bytes), and a Parquet file of the same rows, and prints rows a second
//! for reading each, and for writing every second row of it and all rows. `RAYON_NUM_THREADS=1`
//! makes it use one core.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use volery_tables::{Format, Inputs, Output, Reading, Records, Rule, Sink, Table};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (rows, padding) = (number(10_000_000)?, number(16)? as usize);

    let folder = tempfile::tempdir()?;
    let csv = folder.path().join("rows.csv");
    let parquet = folder.path().join("rows.parquet");
    write_rows(&csv, rows, padding)?;
    let table = measure(&csv)?;
    write_to(&table, &|_| true, &parquet)?;
    measure(&parquet)?;
    Ok(())
}

/// Reads the file, and writes every second row of it to another file of the same format.
fn measure(path: &Path) -> Result<Table, Box<dyn std::error::Error>> {
    let mib = path.metadata()?.len() >> 20;
    let reading = Reading {
        rules: vec![Rule::parse("id")?],
        ..Reading::default()
    };
    let inputs = Inputs {
        paths: vec![path.to_owned()],
        ..Inputs::default()
    };
    let start = Instant::now();
    let table = Table::open(&inputs)?;
    let records = Records::read(&table, &reading, &mut |_, _| {})?;
    let read = start.elapsed().as_secs_f64();

    let extension = path.extension().unwrap_or_default().display().to_string();
    let other = path.with_file_name(format!("out.{extension}"));
    let wanted = |row| {
        let item = records.item_of_row(0, row);
        item.is_some_and(|item| item % 2 == 0)
    };
    let start = Instant::now();
    write_to(&table, &wanted, &other)?;
    let half = start.elapsed().as_secs_f64();
    let start = Instant::now();
    write_to(&table, &|_| true, &other)?;
    let all = start.elapsed().as_secs_f64();
    let millions = records.rows() as f64 / 1e6;
    writeln!(
        io::stdout(),
        "{extension}: {millions} million rows, {mib} MiB; {:.2} million rows a second read, {:.2} \
         passed over to write half of them, {:.2} written",
        millions / read,
        millions / half,
        millions / all
    )?;
    Ok(table)
}

fn write_to(
    table: &Table,
    wanted: &dyn Fn(u64) -> bool,
    path: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let (format, packing) = Format::of(path)?;
    let output = Output {
        format,
        packing,
        like: Some(table),
    };
    let mut sink = Sink::new(File::create(path)?, output, table.schema())?;
    let mut scan = table.select(wanted)?;
    while let Some(batch) = scan.next()? {
        sink.write(&batch.rows)
            .map_err(|problem| table.error(&batch, problem))?;
    }
    sink.finish()?;
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
