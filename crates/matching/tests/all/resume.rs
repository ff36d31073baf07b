//! Runs that break, and go on.

use std::fs;
use std::path::Path;

use volery_channel::{Error as ChannelError, Role};
use volery_matching::{
    ATTEMPTS, Columns, Error, NAMES, Operation, Outcome, PROGRESS, StorageOptions,
};
use volery_tables::{Duplicates, Table};

use crate::common::{Row, Run, begun, forget_begun, kept, rows, run_cut, table, written};

const RUN: Run = Run {
    verb: Operation::Lookup,
    name: volery_matching::ProtocolChoice::Dh,
    security: None,
    both: false,
    rules: 2,
    duplicates: Duplicates::Keep,
};

struct Sides {
    rows: [Vec<Row>; 2],
    tables: [Table; 2],
    folders: [tempfile::TempDir; 2],
    buckets: u32,
}

impl Sides {
    fn new(buckets: u32) -> Self {
        let rows = [rows(0..30), rows(20..45)];
        Self {
            tables: [table(&rows[0]), table(&rows[1])],
            rows,
            folders: [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()],
            buckets,
        }
    }

    fn folder(&self, side: usize) -> &Path {
        self.folders[side].path()
    }

    fn locals(&self) -> [StorageOptions; 2] {
        [0, 1].map(|side| kept(self.folder(side), self.buckets))
    }

    /// Runs both sides; what each sends is cut after so many bytes. Returns also what each sent.
    fn attempt(&self, ends: [u64; 2]) -> ([Result<Outcome, Error>; 2], [u64; 2]) {
        self.attempt_naming(&Columns::default(), ends)
    }

    fn attempt_naming(
        &self,
        columns: &Columns,
        ends: [u64; 2],
    ) -> ([Result<Outcome, Error>; 2], [u64; 2]) {
        let [left, right] = self.locals();
        let sender = RUN.read(Role::Sender, &self.tables[0], &left).unwrap();
        let receiver = RUN.read(Role::Receiver, &self.tables[1], &right).unwrap().naming(columns);
        let ((sent, received), bytes) = run_cut(
            ends,
            |channel| sender.run(channel, &mut ()),
            |channel| receiver.run(channel, &mut ()),
        );
        ([sent, received], bytes)
    }

    fn whole(&self) -> [Result<Outcome, Error>; 2] {
        self.attempt([u64::MAX; 2]).0
    }

    fn assert_exact(&self, outcome: &Outcome) {
        let expected = RUN.expected(&self.rows[0], &self.rows[1], true);
        assert_eq!(written(outcome, &self.tables[1], true), expected);
    }

    /// Runs to the end, and compares the result.
    fn finish(&self) {
        let [sent, received] = self.whole();
        sent.unwrap();
        self.assert_exact(&received.unwrap());
    }

    /// The sessions in the file of a side.
    fn sessions(&self, side: usize) -> Vec<String> {
        let begun = begun(self.folder(side)).into_iter();
        begun.map(|(_, session)| session).collect()
    }
}

/// Bytes that each side sends in a run that does not break.
fn lengths(buckets: u32) -> [u64; 2] {
    let (results, sent) = Sides::new(buckets).attempt([u64::MAX; 2]);
    for result in results {
        result.unwrap();
    }
    sent
}

#[test]
fn names_for_another_number_of_columns_end_a_run_before_its_protocol() {
    let sides = Sides::new(1);
    let columns = Columns { names: vec!["x".to_owned()], ..Columns::default() };
    for resumes in [false, true] {
        let ([_, received], [_, bytes]) = sides.attempt_naming(&columns, [u64::MAX; 2]);
        let error = received.map(drop).unwrap_err().to_string();
        assert!(error.contains(&format!("{NAMES}: 1 here, 2 at the peer")), "{error}");
        // A run that goes on knows the columns.
        assert_eq!(bytes == 0, resumes);
        assert!(sides.sessions(0).is_empty() && sides.sessions(1).is_empty() || resumes);
        if !resumes {
            // The last byte says that all results are here.
            let ends = lengths(1).map(|end| end - 1);
            assert!(sides.attempt(ends).0.iter().all(Result::is_err));
        }
    }
    sides.finish();
}

#[test]
fn what_was_found_is_not_looked_for_again() {
    let lengths = lengths(3);
    let sides = Sides::new(3);
    drop(sides.attempt([lengths[0] * 3 / 4, u64::MAX]));
    let [sent, received] = sides.whole();
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert!((1..6).contains(&received.resumed), "{}", received.resumed);
    assert_eq!((sent.resumed, sent.attempts), (received.resumed, 2));
    sides.assert_exact(&received);
}

#[test]
fn a_part_is_begun_three_times() {
    // Without the last bytes of the sender the only part of the second rule has no end. A run that
    // goes on sends less.
    let first = lengths(1)[0] - 10;
    let sides = Sides::new(1);
    drop(sides.attempt([first, u64::MAX]));
    let later = sides.attempt([u64::MAX; 2]).1[0] - 10;
    let broken = |sides: &Sides, times| {
        for end in [first].into_iter().chain([later; 9]).take(times as usize) {
            let ([sent, received], _) = sides.attempt([end, u64::MAX]);
            assert!(sent.is_err() && received.is_err());
        }
    };
    let sides = Sides::new(1);
    broken(&sides, ATTEMPTS - 1);
    sides.finish();
    let sides = Sides::new(1);
    broken(&sides, ATTEMPTS);
    for result in sides.whole() {
        let error = result.map(drop).unwrap_err();
        assert!(matches!(error, Error::TooManyAttempts { .. }), "{error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn another_table_or_settings_are_refused() {
    let sides = Sides::new(3);
    drop(sides.attempt([lengths(3)[0] / 2, u64::MAX]));
    let local = &sides.locals()[1];
    let refused = |run: Run, table: &Table| {
        let error = run.read(Role::Receiver, table, local).map(drop).unwrap_err();
        assert!(matches!(error, Error::OtherRun { .. }), "{error}");
    };
    let mut other = sides.rows[1].clone();
    other[3].a = Some(999);
    refused(RUN, &table(&other));
    let duplicates = Duplicates::Dedup;
    refused(Run { duplicates, ..RUN }, &sides.tables[1]);
    refused(Run { rules: 1, ..RUN }, &sides.tables[1]);
    let name = volery_matching::ProtocolChoice::Vole;
    refused(Run { name, ..RUN }, &sides.tables[1]);
    sides.finish();
}

#[test]
fn a_side_that_lost_its_folder_is_told() {
    for side in [0, 1] {
        let sides = Sides::new(3);
        drop(sides.attempt([lengths(3)[0] * 3 / 4, u64::MAX]));
        fs::remove_dir_all(sides.folder(side)).unwrap();
        for result in sides.whole() {
            match result.map(drop).unwrap_err() {
                Error::Protocol(volery_psi::Error::Channel(ChannelError::Mismatch {
                    field,
                    ..
                })) => {
                    assert_eq!(field, PROGRESS);
                }
                other => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_folder_has_one_process() {
    let sides = Sides::new(1);
    let local = &sides.locals()[0];
    let first = RUN.read(Role::Sender, &sides.tables[0], local).unwrap();
    let error = RUN.read(Role::Sender, &sides.tables[0], local).map(drop).unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    drop(first);
    sides.finish();
}

#[test]
fn one_side_may_keep_its_progress_alone() {
    for side in [0, 1] {
        let sides = Sides::new(3);
        let mut locals = sides.locals();
        locals[side] = StorageOptions::default();
        let [sent, received] =
            RUN.both([&sides.tables[0], &sides.tables[1]], [&locals[0], &locals[1]]);
        sent.unwrap();
        sides.assert_exact(&received.unwrap());
    }
}

/// Sides of which only the receiver has written the agreement, and nobody has begun a part.
fn half_agreed() -> Sides {
    let sides = Sides::new(3);
    drop(sides.attempt([lengths(3)[0] / 2, u64::MAX]));
    fs::remove_dir_all(sides.folder(0)).unwrap();
    let receiver = sides.folder(1);
    forget_begun(receiver);
    for rule in 0..2 {
        for bucket in 0..3 {
            let _ = fs::remove_file(receiver.join(format!("found-{rule}-{bucket}")));
        }
    }
    assert!(receiver.join("run.json").exists());
    sides
}

#[test]
fn an_agreement_of_one_side_is_made_anew() {
    for buckets in [1, 3, 7] {
        let mut sides = half_agreed();
        sides.buckets = buckets;
        sides.finish();
    }
}

#[test]
fn files_of_others_stay_and_torn_ones_do_not_count() {
    let sides = Sides::new(3);
    let foreign = ["part-00000-a1.parquet", "items-2024.csv", "found-x", "part-1", "rows"];
    for name in foreign {
        fs::write(sides.folder(1).join(name), "data").unwrap();
    }
    let torn =
        ["part-0-0", "items-0", "found-1-2", "found-rows-0", "run.json.0123456789abcdef.new"];
    for name in torn {
        fs::write(sides.folder(1).join(name), [7; 13]).unwrap();
    }
    drop(sides.attempt([lengths(3)[0] * 3 / 4, u64::MAX]));
    fs::write(sides.folder(1).join("found-rows-0"), [7; 13]).unwrap();
    // Killed when a part had its file, and the file no session yet.
    fs::write(sides.folder(1).join("begun-1-2-1"), "").unwrap();
    let [sent, received] = sides.whole();
    sent.unwrap();
    let received = received.unwrap();
    sides.assert_exact(&received);
    let (finish, rest) = received.split();
    finish.finish().unwrap();
    drop(rest);
    let names = fs::read_dir(sides.folder(1)).unwrap();
    let mut names: Vec<_> = names.map(|name| name.unwrap().file_name()).collect();
    names.sort();
    let mut expected: Vec<_> = foreign.into_iter().chain(["complete"]).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert!(sides.locals()[1].is_complete());
}
