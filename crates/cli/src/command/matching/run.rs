//! One party's run, from the open channel to its result.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use volery_channel::{Channel, Error as ChannelError, Hello, Role, SessionId, Stats, handshake};
use volery_psi::{Error, Parameters, Phase, Receiver, Sender, Settings, Watch};
use volery_tables::Records;

use super::super::options::Reporter;
use super::{Keys, Verb, key_types};
use crate::exit::{Failure, Status};
use crate::randomness::fresh_prg;

/// The name under which the handshake compares the types of the key columns.
const KEY_TYPES: &str = "the types of the key columns";

/// The result of one party.
#[derive(Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) session: SessionId,
    pub(crate) parameters: Parameters,
    /// Indices of this party's matching items, ascending, if it gets the result.
    pub(crate) common: Option<Vec<usize>>,
    /// Receiver of a lookup: the value of each match.
    pub(crate) values: Vec<Vec<u8>>,
    /// Lookup: bytes of the longest value.
    pub(crate) longest: Option<usize>,
    /// The handshake and the offline phase.
    pub(crate) setup: Duration,
    /// The phase that depends on the items.
    pub(crate) online: Duration,
    /// Traffic of the handshake and the offline phase.
    pub(crate) setup_traffic: Stats,
    /// All traffic.
    pub(crate) traffic: Stats,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Channel(error) => error.into(),
            // Equal keys in a file are found when it is read.
            other => Self::new(Status::Other, other),
        }
    }
}

/// Runs one party.
///
/// # Errors
/// Those of the channel and of the protocol.
pub(crate) fn run_party(
    verb: Verb<'_>,
    role: Role,
    settings: Settings,
    records: &Records,
    told: &mut PhaseTimer,
    channel: &mut Channel,
) -> Result<Outcome, Failure> {
    let start = Instant::now();
    let mut nonce = [0; 32];
    fresh_prg()?.fill_bytes(&mut nonce);
    let hello = hello(verb, role, settings, records);
    let session = handshake(channel, &hello, nonce).map_err(disagreement)?;
    let rng = fresh_prg()?;
    let keys = &Keys(records.keys());

    let before = |channel: &Channel| (start.elapsed(), channel.stats());
    let (setup, setup_traffic, parameters, common, values, longest);
    match (role, verb) {
        (Role::Sender, Verb::Psi) => {
            let sender = Sender::setup(session, rng, channel)?;
            (setup, setup_traffic) = before(channel);
            let sent = sender.intersect(keys, settings, told, channel)?;
            (parameters, common) = (sent.parameters, sent.common);
            (values, longest) = (Vec::new(), None);
        }
        (Role::Receiver, Verb::Psi) => {
            let receiver = Receiver::setup(session, rng, channel)?;
            (setup, setup_traffic) = before(channel);
            let received = receiver.intersect(keys, settings, told, channel)?;
            (parameters, common) = (received.parameters, Some(received.common));
            (values, longest) = (Vec::new(), None);
        }
        (Role::Sender, Verb::Lookup { .. }) => {
            let sender = Sender::setup(session, rng, channel)?;
            (setup, setup_traffic) = before(channel);
            let file_values = Keys(
                records
                    .values()
                    .expect("a sender's values were read with its keys"),
            );
            let answered = sender.answer(keys, &file_values, settings, told, channel)?;
            (parameters, common) = (answered.parameters, answered.found);
            (values, longest) = (Vec::new(), Some(answered.longest));
        }
        (Role::Receiver, Verb::Lookup { .. }) => {
            let receiver = Receiver::setup(session, rng, channel)?;
            (setup, setup_traffic) = before(channel);
            let found = receiver.search(keys, settings, told, channel)?;
            (parameters, common) = (found.parameters, Some(found.items));
            (values, longest) = (found.values, Some(found.longest));
        }
    }
    told.end();
    Ok(Outcome {
        session,
        parameters,
        common,
        values,
        longest,
        setup,
        online: start.elapsed() - setup,
        setup_traffic,
        traffic: channel.stats(),
    })
}

/// The first message of this side; the peer's must be the same.
fn hello(verb: Verb<'_>, role: Role, settings: Settings, records: &Records) -> Hello {
    let both = if settings.both { "yes" } else { "no" };
    Hello {
        protocol: verb.name(),
        role: role.name(),
        fields: vec![
            ("--protocol", settings.variant.to_string()),
            ("security", "semi-honest".to_owned()),
            ("--both", both.to_owned()),
            (KEY_TYPES, key_types(records)),
        ],
    }
}

/// The remedy for keys of different types on the two sides.
fn disagreement(error: ChannelError) -> Failure {
    let hint = match &error {
        ChannelError::Mismatch { field, .. } if field == KEY_TYPES => {
            "name the same number of key columns on both sides, in the same order; --key NAME:TYPE reads a column as another type"
        }
        ChannelError::Mismatch { field, .. } if field == "--both" => {
            "the sender gets the result only if both sides set --both"
        }
        _ => return error.into(),
    };
    Failure::from(error).hint(hint)
}

/// Shows the current phase and records the duration of each.
pub(crate) struct PhaseTimer {
    reporter: Reporter,
    bar: ProgressBar,
    phase: Option<(Phase, Instant)>,
    /// Seconds of each finished phase.
    pub(crate) seconds: Vec<(Phase, f64)>,
}

impl PhaseTimer {
    pub(crate) fn new(reporter: Reporter) -> Self {
        Self {
            reporter,
            bar: ProgressBar::hidden(),
            phase: None,
            seconds: Vec::new(),
        }
    }

    /// Ends the last phase.
    fn end(&mut self) {
        if let Some((phase, start)) = self.phase.take() {
            let seconds = start.elapsed().as_secs_f64();
            self.bar.finish_and_clear();
            self.reporter
                .explain(format_args!("{}: {seconds:.3} s", phase.name()));
            self.seconds.push((phase, seconds));
        }
    }

    /// Removes the progress bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for PhaseTimer {
    fn begin(&mut self, phase: Phase, steps: u64) {
        self.end();
        self.bar = self.reporter.phase(phase.name(), steps);
        self.phase = Some((phase, Instant::now()));
    }

    fn done(&mut self, steps: u64) {
        self.bar.set_position(steps);
    }
}
