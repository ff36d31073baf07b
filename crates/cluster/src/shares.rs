//! The shards of a worker in a run for totals: shares of the totals of each.

use volery_channel::Role;
use volery_channel::{Channel, SessionId};
use volery_matching::steps::{Journal, Keys, Part, SESSION, session_of};
use volery_matching::totals::{Settings, Values, shares};
use volery_matching::{Progress, Result};
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

use crate::manifest::Manifest;
use crate::stats::WorkerStats;

/// Makes shares of the totals of a worker's shards that are not finished in one session on both
/// sides.
pub(crate) fn work(
    manifest: &Manifest,
    settings: &Settings,
    (journal, load): (&dyn Journal, &dyn Fn(Part) -> Result<Keys>),
    shards: &[Part],
    (connection, mut rng): (SessionId, Prg),
    channel: &mut Channel,
    progress: &mut dyn Progress,
) -> Result<WorkerStats> {
    let announced = manifest.items(settings)?;
    let [sender, receiver] = manifest.capacities()?[0];
    let size = match settings.role {
        Role::Sender => sender,
        Role::Receiver => receiver,
    };
    let mut ours = Vec::new();
    for &part in shards {
        ours.push(journal.session_of_shares(part)?.unwrap_or_default());
    }
    channel.send(ours.as_flattened())?;
    let mut theirs = vec![[0; SESSION]; ours.len()];
    channel.recv(theirs.as_flattened_mut())?;
    let mut worked = WorkerStats { shards: shards.len() as u64, ..WorkerStats::default() };
    progress.begin("matching shards", worked.shards);
    for (number, &part) in shards.iter().enumerate() {
        // mutant(totals-attempts): `ours[number] == theirs[number]` => `true`
        if ours[number] != [0; SESSION] && ours[number] == theirs[number] {
            worked.resumed += 1;
        } else {
            let session = session_of(connection, part);
            journal.begin(part, session)?;
            let keys = load(part)?;
            let values = Values::of_shard(&keys, settings, size, &mut rng)?;
            drop(keys);
            let own = (session, rng.fork("shard"));
            let parts = manifest.executions();
            let (_, shares) = shares(settings, parts, announced, &values, own, channel, &mut ())?;
            let mut found = Zeroizing::new(session.as_bytes().to_vec());
            found.extend(shares.words().flat_map(u64::to_le_bytes));
            journal.put_shares(part, session, &found)?;
        }
        progress.done(number as u64 + 1);
    }
    Ok(worked)
}
