//! The subcommands for callers that are not a shell: both parties in threads of this process.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, StringArray};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_run::embed::{
    self, Array, Cancel, Connection, Events, Failure, Level, MatchResult, Numbers, Operation, Part,
    Run, Status, StreamVerb, Values,
};
use volery_tables::Table;

const LONG: Duration = Duration::from_secs(60);

/// The events of a run.
#[derive(Default)]
struct EventLog {
    lines: Mutex<Vec<(Level, String)>>,
    phases: Mutex<Vec<(String, u64)>>,
    done: Mutex<u64>,
    /// Cancelled when the first phase of this name begins.
    stop: Option<(&'static str, Cancel)>,
}

impl Events for EventLog {
    fn line(&self, level: Level, text: &str) {
        self.lines.lock().unwrap().push((level, text.to_owned()));
    }

    fn phase(&self, name: &str, steps: u64) {
        self.phases.lock().unwrap().push((name.to_owned(), steps));
        if let Some((phase, cancel)) = &self.stop
            && name == *phase
        {
            cancel.cancel();
        }
    }

    fn done(&self, steps: u64) {
        *self.done.lock().unwrap() = steps;
    }
}

fn quiet() -> Run {
    Run::new(Arc::new(EventLog::default()), Cancel::default())
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

fn theirs() -> Table {
    table(&[("zoe", "9"), ("emmy", "7"), ("otto", "2"), ("ada", "0")])
}

/// Both parties of `psi` or `lookup`.
fn matched(verb: Operation, options: [&str; 2], rows: bool) -> [Result<MatchResult, Failure>; 2] {
    let party = |role: &str, options: &str, table: Table, connection: &mut Connection| {
        let named = named(&format!("--role {role} {options}"));
        embed::matching(verb, &named, Some(table), rows, Some(connection), &quiet())
    };
    let (sender, receiver) = both(
        |connection| party("sender", options[0], ours(), connection),
        |connection| party("receiver", options[1], theirs(), connection),
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

fn report(json: &str) -> serde_json::Value {
    serde_json::from_str(json).unwrap()
}

fn refused<T>(result: Result<T, Failure>, status: Status, fragment: &str) {
    let failure = result.err().unwrap();
    assert_eq!(failure.status(), status, "{failure}");
    assert!(failure.message().contains(fragment), "{failure}");
}

#[test]
fn tables_in_memory_are_matched() {
    let [sender, receiver] = matched(Operation::Psi, ["--key mail"; 2], true).map(Result::unwrap);
    assert!(sender.indices.is_none() && sender.rows.is_none() && sender.count.is_none());
    assert_eq!(receiver.count, Some(2));
    assert_eq!(receiver.indices, Some(vec![1, 3]));
    assert_eq!(receiver.rules, Some(vec![1, 1]));
    assert_eq!(numbers(&receiver), [1, 3]);
    let report = report(&receiver.report);
    assert_eq!(report["protocol"], "psi");
    assert_eq!(report["result"]["matched"], 2);

    let [_, indices] = matched(Operation::Psi, ["--key mail"; 2], false).map(Result::unwrap);
    assert!(indices.rows.is_none());
    assert_eq!(indices.indices, Some(vec![1, 3]));
}

#[test]
fn several_keys_both_sides_and_a_rule_column() {
    let options = "--key mail --or phone --both";
    let receiver = format!("{options} --rule-column by");
    let [sender, receiver] =
        matched(Operation::Psi, [options, &receiver], true).map(Result::unwrap);
    assert_eq!(sender.indices, Some(vec![0, 1, 2]));
    assert_eq!(sender.rules, Some(vec![1, 2, 1]));
    assert_eq!(receiver.indices, Some(vec![1, 2, 3]));
    assert_eq!(receiver.rules, Some(vec![1, 2, 1]));
    let (schema, _) = receiver.rows.unwrap();
    let names: Vec<_> = schema.fields().iter().map(|field| field.name()).collect();
    assert_eq!(names, ["mail", "phone", "n", "by"]);
}

#[test]
fn values_are_looked_up_and_rows_without_match_stay() {
    let sender = "--key mail --value n,phone";
    for (receiver, rows) in [("--key mail", vec![1, 3]), ("--key mail --left", vec![0, 1, 2, 3])] {
        let [_, found] = matched(Operation::Lookup, [sender, receiver], true).map(Result::unwrap);
        assert_eq!(numbers(&found), rows);
        assert_eq!(found.indices, Some(vec![1, 3]));
        let (_, batches) = found.rows.unwrap();
        let column = batches[0].column_by_name("n_sender").unwrap();
        let values: Vec<_> = column.as_primitive::<Int64Type>().iter().flatten().collect();
        assert_eq!(values, [2, 0]);
    }
}

#[test]
fn rows_go_to_a_file_and_text_files_give_strings() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let receiver = format!("--key mail --out {}", path("out.csv"));
    let [_, found] = matched(Operation::Psi, ["--key mail", &receiver], true).map(Result::unwrap);
    assert!(found.rows.is_none());
    let text = std::fs::read_to_string(path("out.csv")).unwrap();
    assert_eq!(text, "mail,phone,n\nemmy,7,1\nada,0,3\n");

    let line = format!("--role receiver --key mail --input {}", path("out.csv"));
    let (_, found) = both(
        |connection| {
            let named = named("--role sender --key mail");
            embed::matching(Operation::Psi, &named, Some(ours()), false, Some(connection), &quiet())
                .unwrap()
        },
        |connection| {
            embed::matching(Operation::Psi, &named(&line), None, true, Some(connection), &quiet())
                .unwrap()
        },
    );
    let (_, batches) = found.rows.unwrap();
    let mails = batches[0].column(0).as_string::<i32>();
    assert_eq!(mails.iter().flatten().collect::<Vec<_>>(), ["emmy", "ada"]);
}

#[test]
fn a_dry_run_meets_nobody() {
    let named = named("--role receiver --key mail --dry-run");
    let plan = embed::matching(Operation::Psi, &named, Some(ours()), true, None, &quiet()).unwrap();
    let report = report(&plan.report);
    assert_eq!(report["result"]["dry_run"], true);
    assert_eq!(report["result"]["rows"], 3);
    assert!(plan.rows.is_none());
}

/// One party's correlations, with the places of the borders between parts.
#[derive(Default)]
struct Correlations {
    key: Vec<u64>,
    values: Vec<u64>,
    column: Vec<u64>,
    counts: Vec<usize>,
}

impl Correlations {
    fn take(&mut self, part: Part) {
        let so_far: usize = self.counts.iter().sum();
        assert_eq!(part.first, so_far as u64);
        self.counts.push(part.count);
        self.key = part.key.unwrap_or_default();
        match part.values {
            Some(Values::Bits(bits)) => {
                assert_eq!(bits.len(), part.count);
                self.values.extend(bits.into_iter().map(u64::from));
            }
            Some(Values::Words(words)) => self.values.extend(words),
            None => {}
        }
        self.column.extend(part.column);
    }
}

fn drawn(verb: StreamVerb, options: &str, chunks: [Option<usize>; 2]) -> [Correlations; 2] {
    let party = |role: &str, chunk, connection: &mut Connection| {
        let mut all = Correlations::default();
        let named = named(&format!("--role {role} {options}"));
        let json =
            embed::stream(verb, &named, None, chunk, Some(connection), &quiet(), &mut |part| {
                all.take(part);
                Ok(())
            });
        assert_eq!(report(&json.unwrap())["role"], role);
        all
    };
    let (sender, receiver) = both(
        |connection| party("sender", chunks[0], connection),
        |connection| party("receiver", chunks[1], connection),
    );
    [sender, receiver]
}

/// The relation `left = u*key + right`.
fn holds<R: Ring + bytemuck::Pod>(u: &[u64], key: &[u64], left: &[u64], right: &[u64]) {
    let elements = |words: &[u64]| -> Vec<R> {
        let per = R::BYTES / 8;
        assert_eq!(words.len() % per, 0);
        words
            .chunks(per)
            .map(|words| bytemuck::pod_read_unaligned(bytemuck::cast_slice(words)))
            .collect()
    };
    let (u, key, left, right) = (elements(u), elements(key), elements(left), elements(right));
    assert_eq!(key.len(), 1);
    assert!(u.len() == left.len() && left.len() == right.len());
    for ((u, left), right) in u.into_iter().zip(left).zip(right) {
        assert!(left == u * key[0] + right);
    }
}

#[test]
fn correlations_hold_whole_and_in_chunks() {
    const N: usize = 300_000;
    // Chunks below, of and above the steps of a run, on one side or on both.
    for (chunks, counts) in [
        ([None, None], [1, 1]),
        ([Some(7_000), Some(N)], [43, 1]),
        ([Some(200_000), Some(1 << 17)], [2, 3]),
    ] {
        let options = format!("--n {N}");
        let [sender, receiver] = drawn(StreamVerb::Cot, &options, chunks);
        assert_eq!([sender.counts.len(), receiver.counts.len()], counts);
        assert_eq!(receiver.values.len(), N);
        let bits = receiver.values.iter().flat_map(|bit| [*bit, 0]).collect::<Vec<_>>();
        holds::<Gf128>(&bits, &sender.key, &receiver.column, &sender.column);
        for ring in ["fp61", "z64", "gf128"] {
            let options = format!("{options} --ring {ring}");
            let [sender, receiver] = drawn(StreamVerb::Vole, &options, chunks);
            let check = match ring {
                "fp61" => holds::<Fp61>,
                "z64" => holds::<Z64>,
                _ => holds::<Gf128>,
            };
            check(&sender.values, &receiver.key, &receiver.column, &sender.column);
        }
    }
    let [none, _] = drawn(StreamVerb::Cot, "--n 0", [None, Some(5)]);
    assert_eq!((none.counts, none.key.len()), (vec![0], 2));
}

/// One party of `cot` with 1000 correlations: its key, if it has one.
fn cot(
    role: &str,
    delta: Option<[u64; 2]>,
    connection: &mut Connection,
    mut put: impl FnMut() -> Result<(), Failure>,
) -> Result<Option<Vec<u64>>, Failure> {
    let named = named(&format!("--role {role} --n 1000"));
    let mut key = None;
    let verb = StreamVerb::Cot;
    embed::stream(verb, &named, delta, None, Some(connection), &quiet(), &mut |part| {
        key = part.key;
        put()
    })?;
    Ok(key)
}

#[test]
fn a_delta_is_taken() {
    let delta = [5, 1 << 40];
    let (sender, receiver) = both(
        |connection| cot("sender", Some(delta), connection, || Ok(())),
        |connection| cot("receiver", None, connection, || Ok(())),
    );
    let key = sender.unwrap().unwrap();
    // The receiver learns the place of one set bit, which the run may choose.
    assert_eq!((key, receiver.unwrap()), (delta.to_vec(), None));
    for (role, delta, fragment) in [
        ("sender", [0, 0], "--delta: it is zero"),
        ("receiver", [1, 0], "--delta: only the sender"),
    ] {
        let (result, _) = both(|end| cot(role, Some(delta), end, || Ok(())), |_| ());
        refused(result, Status::Usage, fragment);
    }
}

#[test]
fn an_error_of_the_caller_ends_the_run_at_both() {
    let (sender, receiver) = both(
        |connection| cot("sender", None, connection, || Ok(())),
        |connection| {
            let full = || Err(Failure::new(Status::Other, "no room"));
            let first = cot("receiver", None, connection, full);
            refused(cot("receiver", None, connection, full), Status::Network, "is closed");
            first
        },
    );
    refused(receiver, Status::Other, "no room");
    refused(sender, Status::Network, "closed the connection");
}

#[test]
fn a_panic_of_the_caller_is_a_failure_and_closes_the_connection() {
    let (sender, receiver) = both(
        |connection| cot("sender", None, connection, || Ok(())),
        |connection| cot("receiver", None, connection, || panic!("of the test")),
    );
    refused(receiver, Status::Other, "internal error");
    refused(sender, Status::Network, "closed the connection");
}

#[test]
fn polynomials_and_matrices_in_memory() {
    let words_of = |numbers: &[u64], shape: &[usize]| Array {
        shape: shape.to_vec(),
        numbers: Numbers::Words(numbers.to_vec()),
    };
    let reals_of = |numbers: &[f64], shape: &[usize]| Array {
        shape: shape.to_vec(),
        numbers: Numbers::Reals(numbers.to_vec()),
    };
    // 1 + 2x + 3x^2 at 0, 1 and 10; then a product over a ring, and one of real numbers, on the
    // same connection.
    let party = |role: &str, connection: &mut Connection, inputs: [Array; 3]| {
        let [numbers, ring, reals] = inputs;
        let line = named(&format!("--role {role} --max-points 3"));
        let (json, values) = embed::ope(&line, Some(numbers), Some(connection), &quiet()).unwrap();
        assert_eq!(report(&json)["result"]["degree"], 2);
        let line = named(&format!("--role {role}"));
        let mut product = |array| {
            let product = embed::matvec(&line, Some(array), Some(connection), &quiet());
            product.unwrap().1
        };
        (values, product(ring), product(reals))
    };
    let (sender, receiver) = both(
        |end| {
            let matrix = words_of(&[1, 2, 3, 4, 5, 6], &[2, 3]);
            let real = reals_of(&[0.5, -1.0], &[1, 2]);
            party("sender", end, [words_of(&[1, 2, 3], &[3]), matrix, real])
        },
        |end| {
            let vector = words_of(&[1, 10, 100], &[3]);
            let real = reals_of(&[8.0, 0.25], &[2]);
            party("receiver", end, [words_of(&[0, 1, 10], &[3]), vector, real])
        },
    );
    assert!(sender.0.is_none() && sender.1.is_none() && sender.2.is_none());
    assert_eq!(receiver.0, Some(vec![1, 6, 321]));
    let ring = receiver.1.unwrap();
    assert_eq!(ring.shape, [2]);
    assert!(matches!(ring.numbers, Numbers::Words(words) if words == [321, 654]));
    let Numbers::Reals(reals) = receiver.2.unwrap().numbers else {
        panic!("real numbers");
    };
    assert!((reals[0] - 3.75).abs() < 0.1, "{reals:?}");
}

#[test]
fn runs_follow_each_other_over_an_address_and_count_for_themselves() {
    let party = |role: &'static str, end: String| {
        let heard = Arc::new(EventLog::default());
        let run = Run::new(Arc::clone(&heard) as _, Cancel::default());
        let mut connection = embed::open(&named(&end), &run).unwrap();
        let tables = [ours, theirs];
        let table = tables[usize::from(role == "receiver")];
        let line = named(&format!("--role {role} --key mail"));
        let [first, second] = [(); 2].map(|()| {
            let table = Some(table());
            embed::matching(Operation::Psi, &line, table, false, Some(&mut connection), &run)
                .unwrap()
        });
        let [first, second] = [first, second].map(|matched| report(&matched.report));
        let close = |field: &str| {
            let [first, second] = [&first, &second].map(|one| one[field].as_f64().unwrap());
            assert!(second < 2.0 * first, "{field}: {first} {second}");
        };
        close("bytes_sent");
        close("messages");
        assert_ne!(first["result"]["session"], second["result"]["session"]);
        // A connection that is there needs no address.
        let again = named(&format!("--role {role} --key mail --listen 127.0.0.1:0"));
        let again = embed::matching(
            Operation::Psi,
            &again,
            Some(table()),
            false,
            Some(&mut connection),
            &run,
        );
        refused(again, Status::Usage, "--listen");
        heard
    };
    // The port is told by a line.
    let listening = Arc::new(EventLog::default());
    let run = Run::new(Arc::clone(&listening) as _, Cancel::default());
    thread::scope(|scope| {
        let one = scope.spawn(|| embed::open(&named("--listen 127.0.0.1:0"), &run));
        let port = loop {
            let lines = listening.lines.lock().unwrap();
            let text = lines.iter().find_map(|(_, text)| text.strip_prefix("listening on "));
            match text {
                Some(address) => break address.to_owned(),
                None => drop(lines),
            }
            thread::sleep(Duration::from_millis(5));
        };
        let other = embed::open(&named(&format!("--connect {port}")), &quiet()).unwrap();
        drop(other);
        drop(one.join().unwrap().unwrap());
        // The address is free again.
        let receiver = scope.spawn({
            let port = port.clone();
            move || party("receiver", format!("--connect {port} --wait 60s"))
        });
        let heard = party("sender", format!("--listen {port}"));
        receiver.join().unwrap();
        let phases = heard.phases.lock().unwrap();
        assert!(phases.iter().any(|(name, steps)| name == "reading keys" && *steps > 0));
        assert!(*heard.done.lock().unwrap() > 0);
        let lines = heard.lines.lock().unwrap();
        assert!(lines.iter().any(|(level, _)| *level == Level::Debug));
        assert!(!lines.iter().any(|(_, text)| text.contains("volery: ")));
    });
}

#[test]
fn eight_runs_at_once_do_not_mix() {
    thread::scope(|scope| {
        for i in 0..4_usize {
            scope.spawn(move || {
                let rows: Vec<String> = (0..10 + i).map(|row| format!("{i}-{row}")).collect();
                let rows: Vec<(&str, &str)> = rows.iter().map(|row| (&**row, "")).collect();
                let party = |role: &str, table: Table, connection: &mut Connection| {
                    let heard = Arc::new(EventLog::default());
                    let run = Run::new(Arc::clone(&heard) as _, Cancel::default());
                    let named = named(&format!("--role {role} --key mail"));
                    let found = embed::matching(
                        Operation::Psi,
                        &named,
                        Some(table),
                        true,
                        Some(connection),
                        &run,
                    );
                    let report = report(&found.unwrap().report);
                    let phases: Vec<String> = report["phases"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|phase| phase["name"].as_str().unwrap().to_owned())
                        .collect();
                    let heard = heard.phases.lock().unwrap();
                    let heard: Vec<String> = heard.iter().map(|(name, _)| name.clone()).collect();
                    assert_eq!(phases, heard);
                    assert_eq!(report["role"], role);
                    assert_eq!(report["n"], 10 + i);
                    assert_eq!(report["result"]["peer_items"], 10 + i);
                };
                both(
                    |connection| party("sender", table(&rows), connection),
                    |connection| party("receiver", table(&rows), connection),
                );
            });
        }
    });
}

#[test]
fn a_cancelled_run_ends_at_once_and_the_peer_is_told() {
    for phase in ["setup", "correlations"] {
        let party = |role: &str, run: &Run, connection: &mut Connection| {
            let named = named(&format!("--role {role} --n 2^22"));
            let verb = StreamVerb::Vole;
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
                let heard = EventLog { stop: Some((phase, cancel.clone())), ..EventLog::default() };
                party("sender", &Run::new(Arc::new(heard), cancel), connection)
            },
            |connection| party("receiver", &quiet(), connection),
        );
        let failure = sender.err().unwrap();
        assert_eq!((failure.status(), failure.message()), (Status::Other, "cancelled"));
        refused(receiver, Status::Network, "closed the connection");
    }
    let cancel = Cancel::default();
    cancel.cancel();
    let run = Run::new(Arc::new(EventLog::default()), cancel);
    refused(
        embed::open(&named("--listen 127.0.0.1:0"), &run).map(drop),
        Status::Other,
        "cancelled",
    );
}

#[test]
fn wrong_words_name_the_option() {
    let psi = |line: &str| {
        let named = named(line);
        embed::matching(Operation::Psi, &named, Some(ours()), true, None, &quiet()).map(drop)
    };
    for (line, fragment) in [
        ("--key mail", "--role"),
        ("--role sender", "--key"),
        ("--role sender --key mail", "--listen, --connect"),
        ("--role third --key mail", "--role"),
        ("--role sender --key mail --buckets x", "--buckets"),
        ("--role sender --key mail --colour x", "--colour"),
        ("--role sender --key mail --input x --connect 127.0.0.1:1", "--input"),
        ("--role sender --key mail --out x.csv --connect 127.0.0.1:1", "--out"),
    ] {
        refused(psi(line), Status::Usage, fragment);
    }
    let line = named("--role sender --n 5 --out x --connect 127.0.0.1:1");
    let put = &mut |_: Part| Ok(());
    let refused_out =
        embed::stream(StreamVerb::Vole, &line, None, None, None, &quiet(), put).map(drop);
    refused(refused_out, Status::Usage, "--out");
    for (refusal, fragment) in [
        (embed::ope(&named("--role third"), None, None, &quiet()).map(drop), "--role"),
        (
            embed::matvec(&named("--ring f2 --role sender"), None, None, &quiet()).map(drop),
            "--ring",
        ),
        (embed::lint(Vec::new(), &named("--strict"), Some(ours()), &quiet()).map(drop), "--key"),
        (embed::keygen(&named("--days 0 --out x"), &quiet()).map(drop), "--days"),
        (embed::keygen(&named("--token --days 9 --out x"), &quiet()).map(drop), "--token"),
        (embed::verify([(); 2].map(|()| "x".into()), &named("--n 5"), &quiet()).map(drop), "--n"),
    ] {
        refused(refusal, Status::Usage, fragment);
    }
    let column = psi("--role receiver --key colour --dry-run");
    refused(column, Status::Other, "colour");
}

#[test]
fn settings_that_differ_have_their_status() {
    let [sender, receiver] = matched(Operation::Psi, ["--key mail", "--key mail --or phone"], true);
    for side in [sender, receiver] {
        refused(side, Status::Mismatch, "differ in the key columns");
    }
}

#[test]
fn two_columns_of_one_name_are_an_error() {
    let column = || Arc::new(StringArray::from(vec!["x"])) as arrow_array::ArrayRef;
    let field = |name| arrow_schema::Field::new(name, arrow_schema::DataType::Utf8, false);
    let schema = Arc::new(arrow_schema::Schema::new(vec![field("a"), field("a")]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column(), column()]).unwrap();
    let error = Table::from_batches(schema, vec![batch]).unwrap_err();
    assert!(error.to_string().contains("'a'") || error.to_string().contains("\"a\""), "{error}");
}

#[test]
fn identities_checks_and_verification() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let fingerprint = embed::keygen(&named(&format!("--out {}", path("me"))), &quiet()).unwrap();
    assert!(Path::new(&path("me/identity.pem")).exists());
    assert_eq!(fingerprint.len(), 44);

    let json = embed::lint(Vec::new(), &named("--key mail:lower"), Some(ours()), &quiet()).unwrap();
    let rule = &report(&json)["result"]["rules"][0];
    assert_eq!((&rule["distinct"], &rule["changed"]), (&3.into(), &0.into()));

    let missing = ["a", "b"].map(|name| path(name).into());
    refused(embed::verify(missing, &[], &quiet()), Status::Other, "u.npy");
}

#[test]
fn a_failed_run_writes_its_own_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let line = named(&format!(
        "--role receiver --key mail --connect 127.0.0.1:1 --wait 1s --report {}",
        path.display()
    ));
    let run = embed::matching(Operation::Psi, &line, Some(ours()), true, None, &quiet());
    refused(run.map(drop), Status::Network, "no peer");
    let report = report(&std::fs::read_to_string(path).unwrap());
    assert_eq!((&report["status"], &report["role"]), (&4.into(), &"receiver".into()));
    assert_eq!(report["protocol"], "psi");
}
