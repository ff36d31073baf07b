//! One party's run, from the open channel to its result.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use volery_channel::{Channel, Error as ChannelError, Role, SessionId, Stats};
use volery_primitives::prg::Prg;
use volery_psi::choice::Protocol;
use volery_psi::{Error, Phase, Watch, dh, vole};
use volery_tables::Records;

use super::super::options::Reporter;
use super::protocol::{Agreed, Settings};
use super::{Keys, Verb};
use crate::exit::{Failure, Status};
use crate::randomness::fresh_prg;

/// The parameters of a run, by its protocol.
#[derive(Clone, Debug)]
pub(crate) enum Parameters {
    Vole(vole::Parameters),
    Kkrt(volery_psi::Parameters),
    /// The numbers of items of sender and receiver.
    Dh([u64; 2]),
}

impl From<vole::Parameters> for Parameters {
    fn from(parameters: vole::Parameters) -> Self {
        Self::Vole(parameters)
    }
}

impl From<volery_psi::Parameters> for Parameters {
    fn from(parameters: volery_psi::Parameters) -> Self {
        Self::Kkrt(parameters)
    }
}

/// The result of one party.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) session: SessionId,
    pub(crate) agreed: Agreed,
    pub(crate) parameters: Parameters,
    pub(crate) matched: Matched,
    /// The handshake, the choice of the protocol and its offline phase.
    pub(crate) setup: Duration,
    /// The phase that depends on the items.
    pub(crate) online: Duration,
    /// Traffic of the time of `setup`.
    pub(crate) setup_traffic: Stats,
    /// All traffic.
    pub(crate) traffic: Stats,
}

/// The matching items of one party. `Debug` shows no value.
#[derive(Clone, Default)]
pub(crate) struct Matched {
    /// Indices of this party's matching items, ascending, if it gets the result.
    pub(crate) common: Option<Vec<usize>>,
    /// Receiver of a lookup: the value of each match.
    pub(crate) values: Vec<Vec<u8>>,
    /// Lookup: bytes of the longest value.
    pub(crate) longest: Option<usize>,
}

impl std::fmt::Debug for Matched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let common = self.common.as_ref().map(Vec::len);
        write!(f, "Matched({common:?} items, ..)")
    }
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
    settings: &Settings,
    records: &Records,
    told: &mut PhaseTimer,
    channel: &mut Channel,
) -> Result<Outcome, Failure> {
    let start = Instant::now();
    let (session, agreed) = settings.settle(verb, role, records, channel)?;
    if let Some(choice) = &agreed.choice {
        told.reporter.explain(choice.why());
    }
    let rng = fresh_prg()?;
    let keys = &Keys(records.keys());
    let values = records.values().map(Keys);

    let (setup, setup_traffic, parameters, matched);
    // The calls are the same for both protocols: `$start` makes the party from its type.
    macro_rules! run {
        ($($module:ident)::+, $settings:expr, $start:ident) => {{
            use $($module)::+ as module;
            let settings = $settings;
            match role {
                Role::Sender => {
                    let sender = $start!(module::Sender);
                    (setup, setup_traffic) = (start.elapsed(), channel.stats());
                    (parameters, matched) = match (verb, &values) {
                        (Verb::Psi, _) => {
                            let sent = sender.intersect(keys, settings, told, channel)?;
                            let common = sent.common;
                            let matched = Matched {
                                common,
                                ..Matched::default()
                            };
                            (Parameters::from(sent.parameters), matched)
                        }
                        (Verb::Lookup { .. }, values) => {
                            let values = values
                                .as_ref()
                                .expect("a sender's values were read with its keys");
                            let answered = sender.answer(keys, values, settings, told, channel)?;
                            let matched = Matched {
                                common: answered.found,
                                values: Vec::new(),
                                longest: Some(answered.longest),
                            };
                            (answered.parameters.into(), matched)
                        }
                    };
                }
                Role::Receiver => {
                    let receiver = $start!(module::Receiver);
                    (setup, setup_traffic) = (start.elapsed(), channel.stats());
                    (parameters, matched) = match verb {
                        Verb::Psi => {
                            let received = receiver.intersect(keys, settings, told, channel)?;
                            let matched = Matched {
                                common: Some(received.common),
                                ..Matched::default()
                            };
                            (Parameters::from(received.parameters), matched)
                        }
                        Verb::Lookup { .. } => {
                            let found = receiver.search(keys, settings, told, channel)?;
                            let matched = Matched {
                                common: Some(found.items),
                                values: found.values,
                                longest: Some(found.longest),
                            };
                            (found.parameters.into(), matched)
                        }
                    };
                }
            }
        }};
    }
    macro_rules! new {
        ($party:ty) => {
            <$party>::new(session, rng)
        };
    }
    macro_rules! set_up {
        ($party:ty) => {
            <$party>::setup(session, rng, channel)?
        };
    }
    let both = settings.both;
    match agreed.protocol {
        Protocol::Vole(form) => run!(volery_psi::vole, vole::Settings { form, both }, new),
        Protocol::Kkrt(variant) => run!(volery_psi, volery_psi::Settings { variant, both }, set_up),
        Protocol::Dh => {
            (setup, setup_traffic) = (start.elapsed(), channel.stats());
            let party = (session, rng);
            (parameters, matched) = run_dh(verb, role, party, keys, &values, told, channel)?;
        }
    }
    told.end();
    if let Some(choice) = &agreed.choice
        && parameters.sizes() != [choice.task.sender_items, choice.task.receiver_items]
    {
        let what = "its set has another size than it announced before the choice of the protocol";
        return Err(ChannelError::PeerMisbehaved(what).into());
    }
    Ok(Outcome {
        session,
        agreed,
        parameters,
        matched,
        setup,
        online: start.elapsed() - setup,
        setup_traffic,
        traffic: channel.stats(),
    })
}

/// The protocol `dh`, whose results have only what the receiver gets.
fn run_dh(
    verb: Verb<'_>,
    role: Role,
    (session, rng): (SessionId, Prg),
    keys: &Keys<'_>,
    values: &Option<Keys<'_>>,
    told: &mut PhaseTimer,
    channel: &mut Channel,
) -> Result<(Parameters, Matched), Failure> {
    let mut matched = Matched::default();
    let parameters = match (role, verb, values) {
        (Role::Sender, Verb::Lookup { .. }, Some(values)) => {
            let sender = dh::Sender::new(session, rng);
            let answered = sender.answer(keys, values, told, channel)?;
            matched.longest = Some(answered.longest);
            answered.parameters
        }
        (Role::Sender, ..) => {
            let sent = dh::Sender::new(session, rng).intersect(keys, told, channel)?;
            sent.parameters
        }
        (Role::Receiver, Verb::Psi, _) => {
            let received = dh::Receiver::new(session, rng).intersect(keys, told, channel)?;
            matched.common = Some(received.common);
            received.parameters
        }
        (Role::Receiver, Verb::Lookup { .. }, _) => {
            let found = dh::Receiver::new(session, rng).search(keys, told, channel)?;
            matched.common = Some(found.items);
            matched.values = found.values;
            matched.longest = Some(found.longest);
            found.parameters
        }
    };
    let sizes = [parameters.sender_items, parameters.receiver_items];
    Ok((Parameters::Dh(sizes), matched))
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
