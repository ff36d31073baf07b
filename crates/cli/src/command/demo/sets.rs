//! Intersection of the two files of `crates/cli/data`, which are embedded in the program.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};

use tempfile::TempDir;
use volery_channel::Role;
use volery_matching::{
    Columns, Operation, Outcome, PreparedTable, ProtocolChoice, Settings, StorageOptions,
};
use volery_run::driver;
use volery_run::failure::{Failure, Result, Status};
use volery_run::options::pool;
use volery_tables::{Format, Inputs, Packing, Reading, Rule, Table};

use super::super::options::Common;
use super::super::table::table;

/// The files of the sender and of the receiver.
const FILES: [(&str, &[u8]); 2] = [
    ("customers.csv", include_bytes!("../../../data/customers.csv")),
    ("loyalty.csv", include_bytes!("../../../data/loyalty.csv")),
];

/// The column that both files have.
const KEY: &str = "email";

/// The result of the intersection and its cost.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Row {
    protocol: &'static str,
    variant: &'static str,
    sender_file: &'static str,
    receiver_file: &'static str,
    key: &'static str,
    sender_items: u64,
    receiver_items: u64,
    common: usize,
    security: String,
    parameters: String,
    assumption: String,
    false_positive_log2: f64,
    seconds_setup: f64,
    seconds_online: f64,
    seconds_total: f64,
    sender_bytes: u64,
    receiver_bytes: u64,
    checked: usize,
    wrong: usize,
}

/// Runs both parties and compares the result with an intersection in plaintext.
pub(super) fn run(common: &Common) -> Result<Row> {
    let threads = common.threads.map_or_else(driver::threads_per_party, usize::from);
    let pools = [pool(threads)?, pool(threads)?];
    let folder = tempfile::tempdir().map_err(|error| {
        let what = format_args!("cannot use a temporary folder: {error}");
        Failure::new(Status::Other, what).with_hint("set TMPDIR to use another folder")
    })?;
    let settings =
        |role| Settings::new(Operation::Psi, role, ProtocolChoice::Vole, None, false, None);
    let [sender, receiver] = [settings(Role::Sender)?, settings(Role::Receiver)?];
    let (_, theirs) = side(&folder, FILES[0], &sender)?;
    let (table, ours) = side(&folder, FILES[1], &receiver)?;
    let (sender, receiver) = driver::both(
        driver::loopback(common.timeout)?,
        |channel| pools[0].install(|| Ok(theirs.run(channel, &mut ())?)),
        |channel| pools[1].install(|| Ok(ours.run(channel, &mut ())?)),
    )?;
    let mut written = Vec::new();
    let matches = receiver.matches.as_ref().expect("the receiver gets rows");
    let format = (Format::Csv, Packing::None);
    let result = matches.write(&table, &Columns::default(), &mut written, format, &mut ());
    result.map_err(|error| Failure::new(Status::Other, error))?;
    let row = row([&sender, &receiver], &written);
    match row.wrong {
        0 => Ok(row),
        wrong => Err(Failure::new(
            Status::Other,
            format_args!(
                "psi: {wrong} of {} keys differ from the intersection in plaintext",
                row.checked
            ),
        )),
    }
}

/// A table of the demo and its keys.
fn side(
    folder: &TempDir,
    (name, contents): (&str, &[u8]),
    settings: &Settings,
) -> Result<(Table, PreparedTable)> {
    let path = folder.path().join(name);
    fs::write(&path, contents).map_err(|error| Failure::file(&path, error))?;
    let table = Table::open(&Inputs { paths: vec![path], ..Inputs::default() })?;
    let rule = Rule::parse(KEY).map_err(|problem| Failure::new(Status::Other, problem))?;
    let reading = Reading { rules: vec![rule], ..Reading::default() };
    let side =
        PreparedTable::read(&table, &reading, settings, &StorageOptions::default(), &mut ())?;
    Ok((table, side))
}

/// The lines of a file without its header, and the key of each: the only field that has an `@`.
fn keyed(contents: &[u8]) -> Vec<(&str, &str)> {
    let text = std::str::from_utf8(contents).expect("the files are UTF-8");
    text.lines()
        .skip(1)
        .map(|line| (line, line.split(',').find(|field| field.contains('@')).unwrap_or_default()))
        .collect()
}

fn row([sender, receiver]: [&Outcome; 2], written: &[u8]) -> Row {
    let set: HashSet<&str> = keyed(FILES[0].1).into_iter().map(|(_, key)| key).collect();
    let ours = keyed(FILES[1].1);
    let found: HashSet<&str> = keyed(written).into_iter().map(|(line, _)| line).collect();
    let wrong = ours.iter().filter(|(line, key)| found.contains(line) != set.contains(key));
    // The run ends when the slower party ends.
    let slower = |of: fn(&Outcome) -> f64| of(sender).max(of(receiver));
    let parameters = receiver.parameters.as_ref().expect("the run had one part");
    let [sender_items, receiver_items] = parameters.sizes();
    Row {
        protocol: "psi",
        variant: receiver.protocol.name(),
        sender_file: FILES[0].0,
        receiver_file: FILES[1].0,
        key: KEY,
        sender_items,
        receiver_items,
        common: found.len(),
        security: receiver.protocol.security().to_string(),
        parameters: parameters.describe(),
        assumption: parameters.assumption(),
        false_positive_log2: parameters.false_positive(),
        seconds_setup: slower(|outcome| outcome.setup.as_secs_f64()),
        seconds_online: slower(|outcome| outcome.online.as_secs_f64()),
        seconds_total: slower(|outcome| (outcome.setup + outcome.online).as_secs_f64()),
        sender_bytes: sender.traffic.bytes_sent,
        receiver_bytes: receiver.traffic.bytes_sent,
        checked: ours.len(),
        wrong: wrong.count(),
    }
}

/// Prints the table.
pub(super) fn print(row: &Row, out: &mut impl Write) -> io::Result<()> {
    let headings = [
        "what",
        "protocol",
        ">sender's",
        ">receiver's",
        ">common",
        "security",
        ">setup s",
        ">online s",
        ">total s",
        ">bytes ->",
        ">bytes <-",
        "checked",
    ];
    let cells = [
        row.protocol.to_owned(),
        row.variant.to_owned(),
        row.sender_items.to_string(),
        row.receiver_items.to_string(),
        row.common.to_string(),
        row.security.clone(),
        format!("{:.3}", row.seconds_setup),
        format!("{:.3}", row.seconds_online),
        format!("{:.3}", row.seconds_total),
        row.sender_bytes.to_string(),
        row.receiver_bytes.to_string(),
        if row.wrong == 0 { "as a set" } else { "WRONG" }.to_owned(),
    ];
    writeln!(out, "{}", table(headings, [cells]))?;
    writeln!(
        out,
        "psi: the receiver learns which rows of {} have the {} of a row of {}, and each side how many the other has; \
         compared with the intersection in plaintext.\nParameters: {}\nSecurity rests on: {}",
        row.receiver_file, row.key, row.sender_file, row.parameters, row.assumption
    )
}
