//! A run, from the read table to the totals.

use std::time::Duration;

use volery_channel::{Channel, SessionId, Stats};
use volery_primitives::prg::Prg;
use volery_psi::circuit::{self, Recipient};
use volery_psi::matching::Party;

use super::compute::{Total, check_sizes, compute};
use super::plan::{Choice, Protocol, has_shares};
use super::settings::Settings;
use super::side::PreparedTable;
use crate::error::{Result, misbehaved};
use crate::keyed::begin;
use crate::parameters::Parameters;
use crate::progress::{Inner, Progress};

/// Least nanoseconds for each item, which bounds the time spent on measuring the link.
const EACH: u64 = 1000;

/// The result and the cost of a run.
pub struct Outcome {
    /// The session, public and the same on both sides.
    pub session: SessionId,
    /// The protocol.
    pub protocol: Protocol,
    /// Why, if it was chosen.
    pub choice: Option<Choice>,
    /// The parameters.
    pub parameters: Parameters,
    /// Distinct keys of sender and receiver.
    pub sizes: [u64; 2],
    /// Up to the choice of the protocol.
    pub setup: Duration,
    /// After it.
    pub online: Duration,
    /// Traffic of `setup`.
    pub setup_traffic: Stats,
    /// All traffic.
    pub traffic: Stats,
    /// The total of each group in their order, or of all common keys. A side that does not get them
    /// knows which are below the minimum, and no number.
    pub totals: Vec<Total>,
}

impl PreparedTable {
    /// Steps 1 to 7, over a new connection.
    ///
    /// # Errors
    /// If the two sides differ in a setting; if a total could leave 64 bits; if the channel or the
    /// protocol fails.
    pub fn run(self, channel: &mut Channel, progress: &mut dyn Progress) -> Result<Outcome> {
        let settings = &self.settings;
        let hello = settings.hello(&self.summary.key_description);
        let (start, mut rng, session) = begin(&hello, channel, progress)?;
        let sizes = self.exchange_sizes(channel)?;
        settings.check_range(sizes)?;
        let how = (settings.link, settings.role, EACH);
        let (protocol, choice) = settings.name.decide(&settings.task(sizes), how, channel)?;
        if let Some(choice) = &choice {
            progress.note(&choice.why());
        }
        let (setup, setup_traffic) = (start.elapsed(), channel.stats());
        let randomness = (session, rng.fork("protocol"));
        let (parameters, totals) = match has_shares(protocol, settings) {
            true => {
                let ran = compute(
                    settings,
                    settings.task(sizes).sizes(settings.in_bins()),
                    &self.values,
                    &self.noise,
                    randomness,
                    channel,
                    progress,
                );
                let (parameters, totals) = ran?;
                (Parameters::new(Box::new(parameters), settings.output()), totals)
            }
            false => {
                let (parameters, total) =
                    self.count(protocol, sizes, randomness, channel, progress)?;
                (parameters, vec![total])
            }
        };
        let traffic = channel.stats();
        Ok(Outcome {
            session,
            protocol,
            choice,
            parameters,
            sizes,
            setup,
            online: start.elapsed() - setup,
            setup_traffic,
            traffic,
            totals,
        })
    }

    /// Step 2.
    fn exchange_sizes(&self, channel: &mut Channel) -> Result<[u64; 2]> {
        let ours = self.summary.keys;
        channel.send(&ours.to_le_bytes())?;
        let mut theirs = [0; 8];
        channel.recv(&mut theirs)?;
        let theirs = u64::from_le_bytes(theirs);
        if ours > circuit::MAX_ITEMS {
            let (items, most) = (ours, circuit::MAX_ITEMS);
            return Err(volery_psi::Error::TooMany { items, most }.into());
        }
        // mutant(totals-most): false
        if theirs > circuit::MAX_ITEMS {
            return Err(misbehaved("it announced a set larger than the maximum"));
        }
        Ok(self.settings.role.sides([ours, theirs]))
    }

    /// The number of common keys alone. Where both sides get it, the receiver sends it on.
    fn count(
        &self,
        protocol: Protocol,
        announced: [u64; 2],
        (session, rng): (SessionId, Prg),
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<(Parameters, Total)> {
        let Settings { to, role, .. } = self.settings;
        let task = self.settings.task(announced);
        let watch = &mut Inner { progress, shown: true };
        let party = Party {
            role,
            session,
            rng,
            parts: 1,
            items: &*self.values.items,
            values: None,
            output: task.output,
        };
        let counted = protocol.run(party, watch, channel)?;
        let expected = protocol.parameters(&task, 1).sizes();
        check_sizes(expected, counted.parameters.sizes())?;
        let mut common = counted.count;
        if to == Recipient::Both {
            match common {
                Some(common) => {
                    channel.send(&common.to_le_bytes())?;
                    channel.flush()?;
                }
                None => {
                    let mut theirs = [0; 8];
                    channel.recv(&mut theirs)?;
                    let theirs = u64::from_le_bytes(theirs);
                    // mutant(totals-reported): false
                    if theirs > announced[0].min(announced[1]) {
                        return Err(misbehaved("it reports more common keys than there are"));
                    }
                    common = Some(theirs);
                }
            }
        }
        let total =
            Total { below_minimum: false, count: common.map(|common| common as i64), sum: None };
        Ok((Parameters::new(counted.parameters, task.output), total))
    }
}
