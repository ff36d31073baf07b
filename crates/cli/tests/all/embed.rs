//! The subcommands for callers that are not a shell: both parties in threads of this process. The
//! tests of the Python package check the results of every call.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, StringArray};
use volery_run::embed::{
    self, Cancel, Connection, Events, Failure, Level, MatchResult, Operation, Part, Run, Status,
    StreamVerb,
};
use volery_tables::Table;

use crate::common::pair::Folder;

const LONG: Duration = Duration::from_secs(60);

/// Cancels a run when its first phase of this name begins.
#[derive(Default)]
struct Stop(&'static str, Cancel);

impl Events for Stop {
    fn line(&self, _: Level, _: &str, _: &str) {}

    fn phase(&self, name: &str, _: u64) {
        if name == self.0 {
            self.1.cancel();
        }
    }

    fn done(&self, _: u64) {}
}

fn quiet() -> Run {
    Run::new(Arc::new(Stop::default()), Cancel::default())
}

/// Options by name, as the command line writes them: `--key mail --both`.
fn named(line: &str) -> Vec<(String, OsString)> {
    let options = line.split("--").skip(1).map(str::trim);
    let pair = |option: &str| {
        let (name, value) = option.split_once(' ').unwrap_or((option, "true"));
        (name.replace('-', "_"), value.into())
    };
    options.map(pair).collect()
}

/// Runs two parties over one connection.
fn both<A: Send, B: Send>(
    sender: impl FnOnce(&mut Connection) -> A + Send,
    receiver: impl FnOnce(&mut Connection) -> B + Send,
) -> (A, B) {
    let [mut left, mut right] = embed::pair(LONG, Default::default()).unwrap();
    thread::scope(|scope| {
        let sender = scope.spawn(move || sender(&mut left));
        let received = receiver(&mut right);
        (sender.join().unwrap(), received)
    })
}

/// A table with the columns `mail`, `phone` and `n`, the number of the row.
fn table(rows: &[(&str, &str)]) -> Table {
    let mails = StringArray::from_iter_values(rows.iter().map(|row| row.0));
    let phones = StringArray::from_iter_values(rows.iter().map(|row| row.1));
    let numbers = Int64Array::from_iter_values(0..rows.len() as i64);
    let batch = RecordBatch::try_from_iter([
        ("mail", Arc::new(mails) as _),
        ("phone", Arc::new(phones) as _),
        ("n", Arc::new(numbers) as _),
    ])
    .unwrap();
    Table::from_batches(batch.schema(), vec![batch]).unwrap()
}

fn ours() -> Table {
    table(&[("ada", "1"), ("kurt", "2"), ("emmy", "3")])
}

/// Both parties of a match.
fn matched(verb: Operation, options: [&str; 2]) -> [Result<MatchResult, Failure>; 2] {
    let party = |role: &str, options: &str, table: Table, connection: &mut Connection| {
        let named = named(&format!("--role {role} {options}"));
        embed::matching(verb, &named, Some(table), true, Some(connection), &quiet())
    };
    let theirs = table(&[("zoe", "9"), ("emmy", "7"), ("otto", "2"), ("ada", "0")]);
    let (sender, receiver) = both(
        |connection| party("sender", options[0], ours(), connection),
        |connection| party("receiver", options[1], theirs, connection),
    );
    [sender, receiver]
}

/// The column `n` of the rows.
fn numbers(matched: &MatchResult) -> Vec<i64> {
    let (_, batches) = matched.rows.as_ref().unwrap();
    let column = |batch: &RecordBatch| {
        let column = batch.column_by_name("n").unwrap();
        column.as_primitive::<Int64Type>().values().to_vec()
    };
    batches.iter().flat_map(column).collect()
}

fn refused<T>(result: Result<T, Failure>, status: Status, fragment: &str) {
    let failure = result.err().unwrap();
    assert_eq!(failure.status(), status, "{failure}");
    assert!(failure.message().contains(fragment), "{failure}");
}

/// Copies the progress of a run when its rows are written: a kill would leave it then.
struct Copies(PathBuf, PathBuf);

impl Events for Copies {
    fn line(&self, _: Level, _: &str, _: &str) {}

    fn phase(&self, name: &str, _: u64) {
        if name == "writing rows" {
            std::fs::create_dir(&self.1).unwrap();
            for entry in std::fs::read_dir(&self.0).unwrap() {
                let entry = entry.unwrap();
                std::fs::copy(entry.path(), self.1.join(entry.file_name())).unwrap();
            }
        }
    }

    fn done(&self, _: u64) {}
}

/// The peer is done then, and does not meet again; the folder stays, as it is not known.
#[test]
fn a_side_that_lacks_only_its_output_needs_no_peer() {
    let place = Folder::new();
    let [peer, out, work, copy] = ["peer", "out.csv", "work", "copy"].map(|name| place.path(name));
    let call = |work: &str, more: &str, events: Arc<dyn Events>, connection: Option<&mut _>| {
        let line = format!("--key mail --both --out {out} --force --resume {work} {more}");
        let run = Run::new(events, Cancel::default());
        embed::matching(Operation::Psi, &named(&line), Some(ours()), false, connection, &run)
    };
    let (theirs, ours) = both(
        |connection| {
            let line = format!("--role receiver --key mail --both --resume {peer}");
            let table = table(&[("emmy", "7"), ("zoe", "9")]);
            embed::matching(
                Operation::Psi,
                &named(&line),
                Some(table),
                false,
                Some(connection),
                &quiet(),
            )
        },
        |connection| {
            let line = "--role sender";
            let copies = Copies((&work).into(), (&copy).into());
            call(&work, line, Arc::new(copies), Some(connection))
        },
    );
    assert_eq!((theirs.unwrap().count, ours.unwrap().count), (Some(1), Some(1)));
    std::fs::remove_file(&out).unwrap();
    let alone = "--role sender --listen 127.0.0.1:0 --wait 1s";
    for _ in 0..2 {
        let again = call(&copy, alone, Arc::new(Stop::default()), None).unwrap();
        assert_eq!(again.indices, Some(vec![2]));
        assert!(place.read("out.csv").starts_with("mail,phone,n\nemmy,3,2"));
        // The peer may still need it.
        assert!(!Path::new(&copy).join("complete").exists());
    }
}

#[test]
fn tables_in_memory_are_matched() {
    let options = "--key mail --or phone --both";
    let receiver = format!("{options} --rule-column by");
    let [sender, receiver] = matched(Operation::Psi, [options, &receiver]).map(Result::unwrap);
    assert_eq!(sender.indices, Some(vec![0, 1, 2]));
    assert_eq!(sender.rules, Some(vec![1, 2, 1]));
    assert_eq!((&receiver.count, &receiver.indices), (&Some(3), &Some(vec![1, 2, 3])));
    assert_eq!(receiver.rules, Some(vec![1, 2, 1]));
    assert_eq!(numbers(&receiver), [1, 2, 3]);
    let report: serde_json::Value = serde_json::from_str(&receiver.report).unwrap();
    assert_eq!((&report["command"], &report["result"]["matched"]), (&"psi".into(), &3.into()));

    let options = ["--key mail --value n,phone", "--key mail --left"];
    let [_, found] = matched(Operation::Lookup, options).map(Result::unwrap);
    assert_eq!((numbers(&found), found.indices), (vec![0, 1, 2, 3], Some(vec![1, 3])));
    for side in matched(Operation::Psi, ["--key mail", "--key mail --or phone"]) {
        refused(side, Status::Mismatch, "differ in the key columns");
    }
}

/// One party of `cot` with 1000 correlations.
fn cot(
    role: &str,
    connection: &mut Connection,
    mut put: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (verb, named) = (StreamVerb::Cot, named(&format!("--role {role} --n 1000")));
    embed::stream(verb, &named, None, None, Some(connection), &quiet(), &mut |_| put()).map(drop)
}

#[test]
fn an_error_or_a_panic_of_the_caller_ends_the_run_at_both() {
    let full = || Err(Failure::new(Status::Other, "no room"));
    let (sender, receiver) = both(
        |connection| cot("sender", connection, || Ok(())),
        |connection| {
            let first = cot("receiver", connection, full);
            refused(cot("receiver", connection, full), Status::Network, "is closed");
            first
        },
    );
    refused(receiver, Status::Other, "no room");
    refused(sender, Status::Network, "closed the connection");
    let (sender, receiver) = both(
        |connection| cot("sender", connection, || Ok(())),
        |connection| cot("receiver", connection, || panic!("of the test")),
    );
    refused(receiver, Status::Other, "internal error");
    refused(sender, Status::Network, "closed the connection");
}

#[test]
fn a_cancelled_run_ends_at_once_and_the_peer_is_told() {
    for phase in ["setup", "correlations"] {
        let party = |role: &str, run: &Run, connection: &mut Connection| {
            let (verb, named) = (StreamVerb::Vole, named(&format!("--role {role} --n 2^22")));
            let put = &mut |_: Part| Ok(());
            let start = Instant::now();
            let result =
                embed::stream(verb, &named, None, Some(100_000), Some(connection), run, put);
            assert!(start.elapsed() < LONG / 2);
            result
        };
        let (sender, receiver) = both(
            |connection| {
                let cancel = Cancel::default();
                let stop = Stop(phase, cancel.clone());
                party("sender", &Run::new(Arc::new(stop), cancel), connection)
            },
            |connection| party("receiver", &quiet(), connection),
        );
        refused(sender, Status::Other, "cancelled");
        refused(receiver, Status::Network, "closed the connection");
    }
}

#[test]
fn wrong_words_name_the_option() {
    for (line, fragment) in [
        ("--key mail", "--role"),
        ("--role sender", "--key"),
        ("--role sender --key mail", "--listen, --connect"),
        ("--role sender --key mail --colour x", "--colour"),
        ("--role sender --key mail --input x --connect 127.0.0.1:1", "--input"),
        ("--role sender --key mail --out x.csv --connect 127.0.0.1:1", "--out"),
    ] {
        let named = named(line);
        let psi = embed::matching(Operation::Psi, &named, Some(ours()), true, None, &quiet());
        refused(psi, Status::Usage, fragment);
    }
}
