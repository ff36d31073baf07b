//! A peer that deviates in one message of a run, for each check of that message.

use volery_channel::{Channel, Role, SessionId, handshake, run_two_unchecked};
use volery_matching::{Columns, Error, Operation, Outcome, StorageOptions};
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_psi::dh;
use volery_tables::{Format, Item, Packing, Reader, Reading, Rule, Table};

use crate::common::{Run, kept, rows, table};

type CheatResult = Result<(), Box<dyn std::error::Error>>;

const LOOKUP: Run = Run {
    verb: Operation::Lookup,
    name: volery_matching::ProtocolChoice::Dh,
    security: None,
    both: false,
    rules: 1,
    duplicates: volery_tables::Duplicates::Keep,
};

const PSI: Run = Run { verb: Operation::Psi, ..LOOKUP };

/// Keys of the honest party.
const KEYS: std::ops::Range<u32> = 0..5;

fn honest_table() -> Table {
    table(&rows(KEYS))
}

/// The peer after the handshake.
struct Peer<'a> {
    channel: &'a mut Channel,
    session: SessionId,
}

impl Peer<'_> {
    fn skip(&mut self, bytes: usize) -> CheatResult {
        Ok(self.channel.recv(&mut vec![0; bytes])?)
    }

    fn say(&mut self, bytes: &[u8]) -> CheatResult {
        Ok(self.channel.send(bytes)?)
    }

    /// Steps 1 and 2.
    fn progress(&mut self) -> CheatResult {
        self.say(&[0; 37])?;
        self.skip(37)
    }

    /// Steps 1 to 3 of a sender with this number of items.
    fn columns(&mut self, items: u64, line: &[u8], longest: u32) -> CheatResult {
        self.progress()?;
        self.say(&items.to_le_bytes())?;
        self.say(&(line.len() as u32).to_le_bytes())?;
        self.say(line)?;
        self.say(&longest.to_le_bytes())?;
        self.skip(8)
    }

    /// Step 5 of a side that keeps nothing.
    fn nothing_kept(&mut self) -> CheatResult {
        self.say(&[0])?;
        self.skip(1)
    }

    /// The session of the only part.
    fn part(&self) -> SessionId {
        let mut oracle = RandomOracle::new("volery matching: part");
        oracle.absorb(self.session.as_bytes()).absorb_u64(0).absorb_u64(0);
        SessionId::from_bytes(oracle.finish32())
    }

    /// Step 6 of a sender of a lookup.
    fn answer(&mut self, items: &[Item], values: &[Vec<u8>]) -> CheatResult {
        let own = (self.part(), Prg::from_os()?);
        dh::send(own, items, Some(&values), &mut (), self.channel)?;
        Ok(())
    }
}

/// Runs an honest side against a peer; returns the honest side's result.
fn meet(
    run: Run,
    role: Role,
    local: &StorageOptions,
    cheat: impl FnOnce(&mut Peer<'_>) -> CheatResult + Send,
) -> Result<Outcome, Error> {
    let table = honest_table();
    let side = run.read(role, &table, local).unwrap();
    let hello = run.settings(role.other()).hello(side.key_description());
    let (result, ()) = run_two_unchecked(
        |channel| side.run(channel, &mut ()),
        |channel| {
            let session = handshake(channel, &hello, [3; 32]).unwrap();
            // What becomes of the cheat does not matter: the honest side may leave at any time.
            let _ = cheat(&mut Peer { channel, session });
            let _ = channel.flush();
        },
    );
    result
}

fn assert_caught(result: Result<Outcome, Error>, why: &str) {
    let error = result.map(drop).unwrap_err().to_string();
    assert!(error.contains(why), "{error}");
}

fn caught(
    run: Run,
    role: Role,
    why: &str,
    cheat: impl FnOnce(&mut Peer<'_>) -> CheatResult + Send,
) {
    assert_caught(meet(run, role, &StorageOptions::default(), cheat), why);
}

/// The items of the honest table.
fn items() -> Vec<Item> {
    let table = honest_table();
    let reading = Reading { rules: vec![Rule::parse("a,b").unwrap()], ..Reading::default() };
    let mut reader = Reader::new(&table, &reading).unwrap();
    let mut scan = table.scan(&reader.columns()).unwrap();
    let mut items = Vec::new();
    while let Some(batch) = scan.next().unwrap() {
        reader.items(&batch, 0, &mut items).unwrap();
    }
    items.into_iter().map(Option::unwrap).collect()
}

#[test]
fn malformed_numbers() {
    for (begun, least) in [(2, 0), (0, (1_u32 << 14) + 1), (1, u32::MAX)] {
        caught(PSI, Role::Sender, "settings message is malformed", move |peer| {
            peer.say(&[0; 32])?;
            peer.say(&[begun])?;
            peer.say(&least.to_le_bytes())?;
            peer.skip(37)
        });
    }
}

#[test]
fn progress_that_nobody_has() {
    caught(PSI, Role::Sender, "disagree on the progress of the run", |peer| {
        peer.say(&[9; 32])?;
        peer.say(&[1, 0, 0, 0, 0])?;
        peer.skip(37)
    });
}

#[test]
fn a_share_chosen_after_the_commitment() {
    let local = StorageOptions { buckets: 2, ..StorageOptions::default() };
    let result = meet(PSI, Role::Sender, &local, |peer| {
        peer.progress()?;
        peer.say(&[1; 32])?;
        peer.skip(32)?;
        peer.say(&[2; 32])?;
        peer.skip(32)
    });
    assert_caught(result, "opening does not match its commitment");
}

#[test]
fn a_set_larger_than_any() {
    for size in [(1_u64 << 31) + 1, u64::MAX] {
        caught(PSI, Role::Sender, "a set larger than the maximum", move |peer| {
            peer.progress()?;
            peer.say(&size.to_le_bytes())?;
            peer.skip(8)
        });
    }
}

#[test]
fn columns_that_are_none() {
    let columns = |line: Vec<u8>, longest, why| {
        caught(LOOKUP, Role::Receiver, why, move |peer| {
            peer.columns(1, &line, longest)?;
            peer.nothing_kept()
        });
    };
    columns(vec![b'a'; (1 << 16) + 1], 1, "list of columns is too long");
    columns(vec![0xff; 9], 1, "list of columns is not UTF-8");
    columns(b"\"n:".to_vec(), 1, "list of columns is malformed");
    columns(b"n:int64".to_vec(), (1 << 14) - 1, "values longer than the maximum");
    columns(b"n:int64".to_vec(), u32::MAX, "values longer than the maximum");
}

#[test]
fn a_set_of_another_size_than_announced() {
    caught(PSI, Role::Sender, "another size than it announced", |peer| {
        peer.progress()?;
        peer.say(&3_u64.to_le_bytes())?;
        peer.skip(8)?;
        peer.nothing_kept()?;
        let own = (peer.part(), Prg::from_os()?);
        dh::receive(own, &items()[..4], false, &mut (), peer.channel)?;
        Ok(())
    });
}

/// The peer of a receiver: announces payload of so many bytes, and has these values for all keys.
fn values(longest: u32, value: &'static [u8]) -> Result<Outcome, Error> {
    meet(LOOKUP, Role::Receiver, &StorageOptions::default(), move |peer| {
        let items = items();
        let line = line();
        peer.columns(items.len() as u64, line.as_bytes(), longest)?;
        peer.nothing_kept()?;
        peer.answer(&items, &vec![value.to_vec(); items.len()])
    })
}

/// The columns of an honest sender.
fn line() -> String {
    let table = honest_table();
    let reading = Reading {
        rules: vec![Rule::parse("a,b").unwrap()],
        values: vec!["n".to_owned(), "t".to_owned()],
        ..Reading::default()
    };
    let reader = Reader::new(&table, &reading).unwrap();
    reader.payload_schema().unwrap().line()
}

#[test]
fn values_of_another_length_than_announced() {
    assert_caught(values(9, &[1, 0, 7]), "another length than it announced");
}

/// Found when rows are written: an error during the run would tell the sender what matched. It
/// costs the receiver that value, and no other.
#[test]
fn values_of_other_columns_or_lengths() {
    const SHORT: &str = "\"n_sender\" is cut short";
    for (value, why) in [
        (&[1, 0, 255][..], "\"t_sender\" is followed by more values than there are columns"),
        (&[0, 0, 0], SHORT),
        (&[2, 0, 7], SHORT),
        (&[255, 255, 7], SHORT),
    ] {
        let outcome = values(1, value).unwrap();
        let (matches, table) = (outcome.matches.unwrap(), honest_table());
        let format = (Format::Csv, Packing::None);
        let mut out = Vec::new();
        let written = matches.write(&table, &Columns::default(), &mut out, format, &mut ());
        let written = written.unwrap();
        assert_eq!((written.rows, written.unwritten), (matches.rows(), matches.rows()));
        let first = format!("row 1: the sender's column {why}");
        assert_eq!(written.first_unwritten[0], first);
    }
}

#[test]
fn another_final_byte() {
    let folder = tempfile::tempdir().unwrap();
    let local = kept(folder.path(), 1);
    let result = meet(PSI, Role::Sender, &local, |peer| {
        peer.progress()?;
        peer.say(&5_u64.to_le_bytes())?;
        peer.skip(8)?;
        // It keeps its progress, and has no part.
        peer.say(&[1])?;
        peer.skip(1)?;
        peer.say(&[0])?;
        peer.skip(1)?;
        let own = (peer.part(), Prg::from_os()?);
        dh::receive(own, &items(), false, &mut (), peer.channel)?;
        peer.say(&[0x57])
    });
    assert_caught(result, "unexpected final message");
    assert!(!folder.path().join("complete").exists());
}
