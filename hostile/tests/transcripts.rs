//! What every protocol of the cast puts on the wire: a change of any byte shows here, and the row says which protocol made it.
//!
//! A row has the first 16 bytes of the BLAKE3 hashes of all that the left and the right party sent, then the name. When the wire
//! was to change, the failing test prints the table as it now is; the crates of the streams and of the intersections have
//! tables of their own for what they can be set to.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use volery_channel::{Channel, run_two_parties};
use volery_hostile::{Protocol, Side, cast};

const TABLE: &str = include_str!("transcripts/table.txt");

#[test]
fn the_wire_is_as_it_was() {
    let rows = cast().into_iter().map(|protocol| {
        let (left, right) = run_two_parties(
            |channel| recorded(&protocol, Side::Left, channel),
            |channel| recorded(&protocol, Side::Right, channel),
        );
        format!("{left} {right} {}\n", protocol.name)
    });
    let now: String = rows.collect();
    let differ = TABLE
        .lines()
        .zip(now.lines())
        .filter(|(old, new)| old != new);
    assert!(
        now == TABLE,
        "{} rows differ; the table of what is sent now:\n{now}",
        differ.count()
    );
}

/// The hash of what the party sent.
fn recorded(protocol: &Protocol, side: Side, channel: &mut Channel) -> String {
    channel.record_transcript();
    protocol.run(side, channel).unwrap();
    let sent = channel.transcript().unwrap().sent;
    sent[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
