//! Transcripts: hashes of the bytes that seeded runs send. A test compares them with a table, so a
//! change of any byte is detected.

use volery_channel::{Channel, Role, run_two_parties};

use crate::Protocol;

/// Runs a party and returns the first 16 bytes of the BLAKE3 hash of all bytes it sent, in
/// hexadecimal.
///
/// # Panics
/// Never: the transcript is recorded.
pub fn recorded(channel: &mut Channel, party: impl FnOnce(&mut Channel)) -> String {
    channel.record_transcript();
    party(channel);
    let sent = channel.transcript().expect("the transcript is recorded").sent;
    sent[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hashes of the bytes sent by each of two parties.
pub fn hashes(
    left: impl FnOnce(&mut Channel) + Send,
    right: impl FnOnce(&mut Channel) + Send,
) -> [String; 2] {
    let (left, right) =
        run_two_parties(|channel| recorded(channel, left), |channel| recorded(channel, right));
    [left, right]
}

/// The hashes of the bytes sent by the left and the right party of a protocol.
///
/// # Panics
/// If an honest party fails.
pub fn of(protocol: &Protocol) -> [String; 2] {
    let run = |side: Role| {
        move |channel: &mut Channel| {
            protocol.run(side, channel).expect("honest parties finish");
        }
    };
    hashes(run(Role::Sender), run(Role::Receiver))
}

/// Checks rows against a table of lines, each with the hash of the left party's bytes, the hash of
/// the right party's bytes, and a name.
///
/// # Panics
/// If they differ. The message contains the current table.
pub fn assert_unchanged(table: &str, rows: impl IntoIterator<Item = (String, [String; 2])>) {
    let rows = rows.into_iter();
    let now: String =
        rows.map(|(name, [left, right])| format!("{left} {right} {name}\n")).collect();
    let differ = table.lines().zip(now.lines()).filter(|(old, new)| old != new);
    assert!(now == table, "{} rows differ; the current table:\n{now}", differ.count());
}
