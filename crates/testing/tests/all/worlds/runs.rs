//! Whole runs: one part, several rules, buckets, a run that breaks and is resumed, workers that
//! share the parts of a run; rows and totals and shares.

use std::path::Path;
use std::sync::Arc;

use super::harness::{EditOf, Network, Scenario, Work};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use tempfile::tempdir;
use volery_channel::Role;
use volery_cluster::worker::{Place, Worker};
use volery_cluster::{ClusterStats, WorkerSettings, driver};
use volery_matching::{
    Columns, Operation, Options, Outcome, PreparedTable, ProtocolChoice, ResultKind, Settings,
    StorageOptions, shares, totals,
};
use volery_pcg::Security;
use volery_psi::testing::{change_values, is_last, repeat_tag};
use volery_tables::{Format, Packing, Reading, Rule, Table};

use super::Inputs;

/// Rows of the sender and of the receiver.
const N: u32 = 13;
const M: u32 = 11;

/// Bytes of a value: two lengths, and a row with one text: a bit, a length of one byte, the text.
const VALUE: usize = 2 + 2 + 1 + 1 + TEXT;
const TEXT: usize = 6;

/// A row: two columns for keys, one with a number, and one with a text of one length.
type Row = (u32, u32);

fn table(rows: &[Row]) -> Table {
    let column = |of: &dyn Fn(&Row) -> String| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(of(row))).collect::<StringArray>())
    };
    let columns = [
        ("a", column(&|row| format!("a{}", row.0))),
        ("b", column(&|row| format!("b{}", row.1))),
        ("n", column(&|row| format!("{}", row.0 % 7))),
        ("t", column(&|row| format!("{:06}", row.0))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    Table::from_batches(batch.schema(), vec![batch]).expect("a table")
}

/// Rows whose two keys go together.
fn rows(keys: std::ops::Range<u32>) -> Vec<Row> {
    keys.map(|key| (key, key)).collect()
}

/// The receiver's rows against the sender's `rows(0..N)`, in its worlds.
const RECEIVERS: [&str; 4] =
    ["all match", "none matches", "one matches by the first rule", "some match by each rule"];

fn receivers(world: usize) -> Vec<Row> {
    let strangers = |from: u32| (from..M).map(|key| (100 + key, 100 + key));
    match world {
        0 => rows(0..M),
        1 => strangers(0).collect(),
        2 => rows(0..1).into_iter().chain(strangers(1)).collect(),
        _ => {
            let first = rows(0..4).into_iter();
            let second = (4..8).map(|key| (key, 100 + key));
            first.chain(second).chain(strangers(8)).collect()
        }
    }
}

fn senders(world: usize) -> Vec<Row> {
    let others = 200 + 50 * world as u32..200 + 50 * world as u32 + N - 2;
    rows(0..2).into_iter().chain(rows(others)).collect()
}

fn shown(world: usize) -> Vec<Row> {
    let others = 100 + 50 * world as u32..100 + 50 * world as u32 + M - 2;
    rows(0..2).into_iter().chain(rows(others)).collect()
}

static INPUTS: Inputs<Row> = Inputs {
    receivers: &RECEIVERS,
    receiver: receivers,
    shown,
    sender: senders,
    peer: |role| rows(0..if role == Role::Sender { N } else { M }),
};

/// The kinds of run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    OnePart,
    Rules,
    Buckets,
    Resumed,
    Workers,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::OnePart => "one part",
            Self::Rules => "rules",
            Self::Buckets => "buckets",
            Self::Resumed => "resumed",
            Self::Workers => "workers",
        }
    }

    const fn rules(self) -> usize {
        match self {
            Self::Rules | Self::Workers => 2,
            _ => 1,
        }
    }

    const fn buckets(self) -> u32 {
        match self {
            Self::Buckets | Self::Resumed => 3,
            _ => 1,
        }
    }

    const fn connections(self) -> usize {
        match self {
            Self::Resumed => 2,
            Self::Workers => 1 + WORKERS as usize * 2,
            _ => 1,
        }
    }
}

const WORKERS: u32 = 2;
const SHARDS: u32 = 3;

/// The terms on which both sides of a run agree.
#[derive(Clone, Copy)]
struct Run {
    verb: Operation,
    name: ProtocolChoice,
    security: Option<Security>,
    both: bool,
    kind: Kind,
}

impl Run {
    fn settings(&self, role: Role) -> Settings {
        Settings::new(self.verb, role, self.name, self.security, self.both, None)
            .expect("settings that go together")
    }

    fn read(&self, role: Role, table: &Table, local: &StorageOptions) -> PreparedTable {
        let answers = (self.verb, role) == (Operation::Lookup, Role::Sender);
        let reading = Reading {
            rules: ["a,b", "a"][..self.kind.rules()]
                .iter()
                .map(|rule| Rule::parse(rule).expect("a rule"))
                .collect(),
            values: if answers { vec!["t".to_owned()] } else { Vec::new() },
            ..Reading::default()
        };
        PreparedTable::read(table, &reading, &self.settings(role), local, &mut ()).expect("a table")
    }

    /// One side of the whole run. Where the other one deviates it may end early.
    fn side(&self, role: Role, rows: &[Row], network: &mut Network, mut work: Work) {
        let table = table(rows);
        let folder = tempdir().expect("a folder");
        match self.kind {
            Kind::OnePart | Kind::Rules | Kind::Buckets => {
                let local =
                    StorageOptions { buckets: self.kind.buckets(), ..StorageOptions::default() };
                let side = self.read(role, &table, &local);
                let mut channel = network.connect();
                if let Ok(outcome) = side.run(&mut channel, &mut work) {
                    write(&outcome, &table);
                }
            }
            Kind::Resumed => {
                let local = self.kept(folder.path());
                for _ in 0..self.kind.connections() {
                    if local.is_complete() {
                        break;
                    }
                    let side = self.read(role, &table, &local);
                    let mut channel = network.connect();
                    if let Ok(outcome) = side.run(&mut channel, &mut work) {
                        write(&outcome, &table);
                        outcome.split().0.finish().expect("a folder to clear");
                    }
                }
            }
            Kind::Workers => {
                // A worker that fails ends the run.
                let _ = self.workers((role, &table, folder.path()), network, &mut work);
            }
        }
    }

    fn kept(&self, folder: &Path) -> StorageOptions {
        StorageOptions {
            folder: Some(folder.to_owned()),
            resume: true,
            buckets: self.kind.buckets(),
            ..StorageOptions::default()
        }
    }

    fn workers(
        &self,
        (role, table, folder): (Role, &Table, &Path),
        network: &mut Network,
        work: &mut Work,
    ) -> volery_matching::Result<()> {
        let mut side = self.read(role, table, &self.kept(folder));
        let organisations = ["the sender", "the receiver"].map(str::to_owned);
        let settings = self.settings(role);
        let keys = side.key_description().to_owned();
        let terms = WorkerSettings::new(&settings, &keys, "run", WORKERS, organisations);
        let terms = terms.expect("terms that go together");
        let manifest = {
            let mut channel = network.connect();
            driver::agree_on_workers(&mut side, (terms, Some(SHARDS)), &mut channel, work)?
        };
        for rule in 0..self.kind.rules() {
            for worker in 0..WORKERS {
                let place = Place::Folder(folder);
                let worker = Worker::new(&manifest, role, rule, worker, 1, place)?;
                worker.run(&mut network.connect(), work)?;
            }
        }
        let outcome = driver::into_outcome(side, &manifest, &ClusterStats::default())?;
        write(&outcome, table);
        Ok(())
    }
}

/// Writes the rows of a side that gets some, as a program does before it closes its connection.
fn write(outcome: &Outcome, table: &Table) {
    if let Some(matches) = &outcome.matches {
        let (mut out, format) = (Vec::new(), (Format::Csv, Packing::None));
        // A malformed value is an error here.
        let _ = matches.write(table, &Columns::default(), &mut out, format, &mut ());
    }
}

/// Changes of the last message of a malicious sender.
fn edits(verb: Operation) -> Vec<EditOf> {
    let (value, of): (usize, fn(usize) -> bool) = match verb {
        Operation::Psi => (0, |length| is_last(length, 0)),
        Operation::Lookup => (VALUE, |length| is_last(length, VALUE)),
    };
    // Of 13 tags at most two are not common where all of the receiver's items are.
    let tags = [0, 5, 10].into_iter().map(|at| EditOf {
        name: format!("tag {at} twice"),
        of,
        edit: Arc::new(move |message: &mut Vec<u8>| repeat_tag(message, value, at)),
    });
    // The higher byte of the length that the protocol has, and of that within the payload.
    let values = [(1, "longer values"), (3, "malformed values")].map(|(at, name)| EditOf {
        name: name.to_owned(),
        of,
        edit: Arc::new(move |message: &mut Vec<u8>| change_values(message, VALUE, at)),
    });
    let values = values.into_iter().filter(|_| verb == Operation::Lookup);
    tags.chain(values).collect()
}

fn scenarios(run: Run, malicious: bool) -> [Scenario; 2] {
    let verb = match run.verb {
        Operation::Psi => "psi",
        Operation::Lookup => "lookup",
    };
    let both = if run.both { ", for both" } else { "" };
    let security = if malicious { "" } else { ", semi-honest" };
    let name = format!("{verb} by {}{security}{both}, {}", run.name.name(), run.kind.name());
    let side = move |role, rows: &[Row], network: &mut Network, work| {
        run.side(role, rows, network, work);
    };
    let mut both = super::scenarios(&name, [malicious, run.both], &INPUTS, side);
    if run.name == ProtocolChoice::Vole && malicious {
        both[0].edits = edits(run.verb);
    }
    both.map(|one| Scenario { connections: run.kind.connections(), ..one })
}

fn one_rule() -> Reading {
    Reading { rules: vec![Rule::parse("a").expect("a rule")], ..Reading::default() }
}

/// A total that the receiver gets.
fn total(
    name: ProtocolChoice,
    kind: &str,
    role: Role,
    rows: &[Row],
    network: &mut Network,
    mut work: Work,
) {
    let columns = match (kind, role) {
        ("sum", Role::Sender) => vec!["n".to_owned()],
        _ => Vec::new(),
    };
    let options = Options {
        role,
        result: ResultKind::new(kind, columns).expect("a result"),
        to: Some(totals::Recipient::Receiver),
        protocol: name,
        bound: (kind == "sum").then(|| "10".to_owned()),
        decimals: (kind == "sum").then_some(0),
        minimum: Some(0),
        ..Options::default()
    };
    let settings = options.totals().expect("settings");
    let side = totals::PreparedTable::read(&table(rows), &one_rule(), &settings, &mut ());
    let mut channel = network.connect();
    side.expect("a table").run(&mut channel, &mut work).expect("honest parties");
}

fn shared(role: Role, rows: &[Row], network: &mut Network, mut work: Work) {
    let options = Options {
        role,
        result: ResultKind::Shares(vec!["n".to_owned()]),
        bound: Some("10".to_owned()),
        decimals: Some(0),
        ..Options::default()
    };
    let settings = options.shares().expect("settings");
    let side = shares::PreparedTable::read(&table(rows), &one_rule(), &settings, &mut ());
    let mut channel = network.connect();
    let mut running =
        side.expect("a table").start(&mut channel, &mut work).expect("honest parties");
    while running.next(&mut channel, &mut work).expect("honest parties").is_some() {}
}

/// The runs of a kind that give rows.
pub(super) fn rows_by(kind: Kind) -> Vec<Scenario> {
    let (psi, semi_honest) = (Operation::Psi, Some(Security::SemiHonest));
    let run = |verb, name, security, both| Run { verb, name, security, both, kind };
    let mut all = Vec::new();
    for verb in [psi, Operation::Lookup] {
        all.extend(scenarios(run(verb, ProtocolChoice::Vole, None, false), true));
        if kind == Kind::Workers {
            // They run no other protocol.
            continue;
        }
        all.extend(scenarios(run(verb, ProtocolChoice::Dh, None, false), true));
        let kkrt = run(verb, ProtocolChoice::Kkrt, semi_honest, false);
        all.extend(scenarios(kkrt, false));
    }
    let both = run(psi, ProtocolChoice::Vole, semi_honest, true);
    all.extend(scenarios(both, false));
    all
}

pub(super) fn all_sums() -> Vec<Scenario> {
    let of = |name, run: fn(Role, &[Row], &mut Network, Work)| {
        super::scenarios(name, [false; 2], &INPUTS, run)
    };
    [
        of("count by circuit", |role, rows, network, work| {
            total(ProtocolChoice::Circuit, "count", role, rows, network, work);
        }),
        of("count by dh", |role, rows, network, work| {
            total(ProtocolChoice::Dh, "count", role, rows, network, work);
        }),
        of("sum", |role, rows, network, work| {
            total(ProtocolChoice::Circuit, "sum", role, rows, network, work);
        }),
        of("shares", shared),
    ]
    .into_iter()
    .flatten()
    .collect()
}
