//! The subcommands for callers that are not a shell: both parties in threads of this process. The
//! tests of the Python package check the results of every call, wrong options, and cancelled calls.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arrow_array::{RecordBatch, StringArray};
use volery_run::embed::{
    self, Cancel, Connection, Events, Failure, Level, Operation, Run, Status, StreamVerb,
};
use volery_tables::Table;

use crate::common::pair::Folder;

const LONG: Duration = Duration::from_secs(60);

/// Copies the progress of a run when its rows are written: a kill would leave it then. Without
/// names, it copies nothing.
#[derive(Default)]
struct Copies(PathBuf, PathBuf);

impl Events for Copies {
    fn line(&self, _: Level, _: &str, _: &str) {}

    fn phase(&self, name: &str, _: u64) {
        if name == "writing rows" && self.0.is_dir() {
            std::fs::create_dir(&self.1).unwrap();
            for entry in std::fs::read_dir(&self.0).unwrap() {
                let entry = entry.unwrap();
                std::fs::copy(entry.path(), self.1.join(entry.file_name())).unwrap();
            }
        }
    }

    fn done(&self, _: u64) {}
}

fn quiet() -> Run {
    Run::new(Arc::new(Copies::default()), Cancel::default())
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

/// A table of one column.
fn table(mails: &[&str]) -> Table {
    let mails = StringArray::from_iter_values(mails);
    let batch = RecordBatch::try_from_iter([("mail", Arc::new(mails) as _)]).unwrap();
    Table::from_batches(batch.schema(), vec![batch]).unwrap()
}

fn refused<T>(result: Result<T, Failure>, status: Status, fragment: &str) {
    let failure = result.err().unwrap();
    assert_eq!(failure.status(), status, "{failure}");
    assert!(failure.message().contains(fragment), "{failure}");
}

/// The peer is done then, and does not meet again; the folder stays, as it is not known.
#[test]
fn a_side_that_lacks_only_its_output_needs_no_peer() {
    let place = Folder::new();
    let [peer, out, work, copy] = ["peer", "out.csv", "work", "copy"].map(|name| place.path(name));
    let call = |work: &str, more: &str, events: Arc<dyn Events>, connection: Option<&mut _>| {
        let line = format!("--key mail --both --out {out} --force --resume {work} {more}");
        let run = Run::new(events, Cancel::default());
        let ours = table(&["ada", "kurt", "emmy"]);
        embed::matching(Operation::Psi, &named(&line), Some(ours), false, connection, &run)
    };
    let (theirs, ours) = both(
        |connection| {
            let line = format!("--role receiver --key mail --both --resume {peer}");
            let table = table(&["emmy", "zoe"]);
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
        let again = call(&copy, alone, Arc::new(Copies::default()), None).unwrap();
        assert_eq!(again.indices, Some(vec![2]));
        assert!(place.read("out.csv").starts_with("mail\nemmy\n"));
        // The peer may still need it.
        assert!(!Path::new(&copy).join("complete").exists());
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
