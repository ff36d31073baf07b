//! The result against a plain join.

use proptest::prelude::*;
use volery_channel::{Channel, Role, run_two_parties};
use volery_matching::{Error, Operation, Outcome, PreparedTable, ProtocolChoice, StorageOptions};
use volery_pcg::Security;
use volery_tables::{Duplicates, Table};

use crate::common::{Row, Run, rows, table, written};

impl Run {
    /// Runs both sides in memory.
    pub(crate) fn both(
        &self,
        tables: [&Table; 2],
        locals: [&StorageOptions; 2],
    ) -> [Result<Outcome, Error>; 2] {
        let [sender, receiver] = [(Role::Sender, 0), (Role::Receiver, 1)]
            .map(|(role, i)| self.read(role, tables[i], locals[i]));
        match (sender, receiver) {
            (Ok(sender), Ok(receiver)) => {
                let most = receiver.most_matches(Some(sender.rows()));
                assert!(most <= receiver.rows());
                let go =
                    |side: PreparedTable| move |channel: &mut Channel| side.run(channel, &mut ());
                let (sent, received) = run_two_parties(go(sender), go(receiver));
                let matches = received.as_ref().ok().and_then(|outcome| outcome.matches.as_ref());
                assert!(matches.is_none_or(|matches| matches.rows() <= most));
                [sent, received]
            }
            (Err(error), Ok(_)) | (Ok(_), Err(error)) => panic!("one side only: {error}"),
            (Err(sender), Err(receiver)) => [Err(sender), Err(receiver)],
        }
    }

    /// Whether a side has two rows of one key, which is an error then.
    fn is_error(&self, rows: &[Row]) -> bool {
        self.duplicates == Duplicates::Error
            && (0..self.rules).any(|rule| {
                let keys: Vec<_> = rows.iter().filter_map(|row| row.key(rule)).collect();
                let different: std::collections::HashSet<_> = keys.iter().collect();
                different.len() < keys.len()
            })
    }
}

fn row() -> impl Strategy<Value = Row> {
    let key = || prop::option::weighted(0.8, 0..12_u32);
    let number = prop::option::of(any::<i64>());
    (key(), key(), number, "[a-z]{1,9}").prop_map(|(a, b, number, text)| Row { a, b, number, text })
}

fn some_rows() -> impl Strategy<Value = Vec<Row>> {
    let size = prop_oneof![0..3_usize, 3..20_usize];
    size.prop_flat_map(|size| prop::collection::vec(row(), size))
}

fn policy() -> impl Strategy<Value = Duplicates> {
    let keep = Just(Duplicates::Keep);
    prop_oneof![3 => keep, 2 => Just(Duplicates::Dedup), 1 => Just(Duplicates::Error)]
}

fn run() -> impl Strategy<Value = Run> {
    let name = prop_oneof![3 => Just(ProtocolChoice::Dh), 1 => Just(ProtocolChoice::Vole)];
    let lookup = any::<bool>();
    (lookup, name, any::<bool>(), 1..=3_usize, policy()).prop_map(
        |(lookup, name, both, rules, duplicates)| {
            let both = both && name == ProtocolChoice::Vole;
            Run {
                verb: if lookup { Operation::Lookup } else { Operation::Psi },
                name,
                security: both.then_some(Security::SemiHonest),
                both,
                rules,
                duplicates,
            }
        },
    )
}

/// A side in memory or on disk, and its least number of buckets.
fn local() -> impl Strategy<Value = StorageOptions> {
    (any::<bool>(), 0..=7_u32).prop_map(|(disk, buckets)| StorageOptions {
        memory: disk.then_some(u64::MAX),
        buckets,
        ..StorageOptions::default()
    })
}

/// Runs both sides, and compares them with the join.
fn check(run: Run, [sender, receiver]: [&[Row]; 2], locals: [&StorageOptions; 2], left: bool) {
    let tables = [table(sender), table(receiver)];
    let wrong = [run.is_error(sender), run.is_error(receiver)];
    if wrong.contains(&true) {
        // Only in memory it is found before the run.
        for (i, role) in [Role::Sender, Role::Receiver].into_iter().enumerate() {
            let side = run.read(role, &tables[i], &StorageOptions::default());
            // By the first rule the error names the file.
            let found = matches!(side, Err(Error::DuplicateKey { .. } | Error::Table(_)));
            assert_eq!(found, wrong[i], "{role}");
        }
        return;
    }
    let [sent, received] = run.both([&tables[0], &tables[1]], locals);
    let (sent, received) = (sent.unwrap(), received.unwrap());
    let (matched, of_sender) = run.join(sender, receiver);
    assert_eq!(written(&received, &tables[1], left), run.expected(sender, receiver, left));
    let by_rule = |rule| matched.iter().flatten().filter(|found| found.0 == rule).count() as u64;
    let by_rule: Vec<_> = (0..run.rules).map(by_rule).collect();
    assert_eq!(received.matches.as_ref().unwrap().by_rule(), by_rule);
    let rows = of_sender.iter().filter(|found| **found).count() as u64;
    assert_eq!(sent.matches.map(|matches| matches.rows()), run.both.then_some(rows));
    assert_eq!((sent.sizes, sent.session), (received.sizes, received.session));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_run_is_a_join(
        run in run(),
        sender in some_rows(),
        receiver in some_rows(),
        locals in (local(), local()),
        left: bool,
    ) {
        check(run, [&sender, &receiver], [&locals.0, &locals.1], left);
    }
}

#[test]
fn thousands_of_rows_in_memory_and_on_disk() {
    let (sender, receiver) = (rows(0..6789), rows(5000..12890));
    let run =
        Run { verb: Operation::Lookup, name: ProtocolChoice::Vole, rules: 2, ..Run::default() };
    let disk = StorageOptions { memory: Some(u64::MAX), buckets: 7, ..StorageOptions::default() };
    check(run, [&sender, &receiver], [&disk, &StorageOptions::default()], true);
}
