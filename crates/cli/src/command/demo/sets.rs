//! Intersection of the two files of `crates/cli/data`, which are embedded in the program.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};

use volery_channel::Role;
use volery_tables::{ByteStrings, Reading, Records};

use super::super::matching::{Name, Outcome, PhaseTimer, Settings, Verb, run_party};
use super::super::options::{Common, Reporter, pool};
use super::super::table::table;
use crate::driver;
use crate::exit::{Failure, Status};

/// The files of the sender and of the receiver.
const FILES: [(&str, &[u8]); 2] = [
    (
        "customers.csv",
        include_bytes!("../../../data/customers.csv"),
    ),
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
pub(super) fn run(common: &Common) -> Result<Row, Failure> {
    let [theirs, ours] = read()?;
    let threads = common
        .threads
        .map_or_else(driver::threads_per_party, usize::from);
    let pools = [pool(threads)?, pool(threads)?];
    // Two bars at once would overwrite each other, and a tenth of a second needs none.
    let quiet = Reporter {
        quiet: true,
        verbose: 0,
    };
    let settings = Settings::new(Name::Vole, None, false, None)?;
    let party = |role, records, channel: &mut _| {
        let mut told = PhaseTimer::new(quiet);
        run_party(Verb::Psi, role, &settings, records, &mut told, channel)
    };
    let (sender, receiver) = driver::both(
        driver::loopback(common.timeout())?,
        |channel| pools[0].install(|| party(Role::Sender, &theirs, channel)),
        |channel| pools[1].install(|| party(Role::Receiver, &ours, channel)),
    )?;
    let row = row(&settings, &[sender, receiver], ours.keys(), theirs.keys());
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

/// Reads both files through a temporary folder.
fn read() -> Result<[Records; 2], Failure> {
    let folder = tempfile::tempdir().map_err(|error| {
        let what = format_args!("cannot use a temporary folder: {error}");
        Failure::new(Status::Other, what).hint("set TMPDIR to use another folder")
    })?;
    let reading = Reading {
        keys: vec![KEY.to_owned()],
        ..Reading::default()
    };
    let read = |(name, contents): (&str, &[u8])| {
        let path = folder.path().join(name);
        fs::write(&path, contents).map_err(|error| Failure::file(&path, error))?;
        Ok::<_, Failure>(volery_tables::read(&path, &reading, &mut |_, _| ())?)
    };
    let [sender, receiver] = FILES;
    Ok([read(sender)?, read(receiver)?])
}

fn row(
    settings: &Settings,
    [sender, receiver]: &[Outcome; 2],
    ours: &ByteStrings,
    theirs: &ByteStrings,
) -> Row {
    let found: HashSet<usize> = receiver.matched.common.iter().flatten().copied().collect();
    let set: HashSet<&[u8]> = theirs.iter().collect();
    let wrong = ours
        .iter()
        .enumerate()
        .filter(|(item, key)| found.contains(item) != set.contains(key));
    // The run ends when the slower party ends.
    let slower = |of: fn(&Outcome) -> f64| of(sender).max(of(receiver));
    let parameters = &receiver.parameters;
    let [sender_items, receiver_items] = parameters.sizes();
    Row {
        protocol: "psi",
        variant: receiver.agreed.protocol.name(),
        sender_file: FILES[0].0,
        receiver_file: FILES[1].0,
        key: KEY,
        sender_items,
        receiver_items,
        common: found.len(),
        security: settings.security.to_string(),
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
