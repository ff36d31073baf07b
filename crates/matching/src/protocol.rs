//! One execution of a protocol, on the sets of one part of a run.

use volery_channel::{Channel, Role, SessionId, Stats};
use volery_primitives::prg::Prg;
use volery_psi::choice::Protocol;
use volery_psi::{Items, Watch, dh, vole};

use crate::error::Result;
use crate::parameters::Parameters;
use crate::settings::{Settings, Verb};

/// The result of an execution.
pub(crate) struct Executed {
    pub(crate) parameters: Parameters,
    /// Places of this party's matching items, ascending, if it gets the result.
    pub(crate) common: Option<Vec<usize>>,
    /// Receiver of a lookup: the value of each match.
    pub(crate) values: Vec<Vec<u8>>,
    /// Lookup: bytes of the longest value.
    pub(crate) longest: Option<usize>,
    /// Traffic of a setup that depends on no set.
    pub(crate) setup: Stats,
}

/// Runs a protocol. `parts` executions share the failure probability of a run.
pub(crate) fn execute(
    protocol: Protocol,
    settings: &Settings,
    (session, rng, parts): (SessionId, Prg, u64),
    set: &(impl Items + ?Sized),
    values: Option<&(impl Items + ?Sized)>,
    watch: &mut dyn Watch,
    channel: &mut Channel,
) -> Result<Executed> {
    let Settings {
        verb, role, both, ..
    } = *settings;
    // A sender of a lookup has values, and nobody else.
    assert_eq!(
        values.is_some(),
        (verb, role) == (Verb::Lookup, Role::Sender)
    );
    let before = channel.stats();
    // The calls of both families of protocols have the same form.
    macro_rules! run {
        ($settings:expr, $sender:expr, $receiver:expr) => {{
            let settings = $settings;
            match (role, values) {
                (Role::Sender, None) => {
                    let party = $sender;
                    let setup = channel.stats() - before;
                    let sent = party.intersect(set, settings, watch, channel)?;
                    Executed {
                        parameters: sent.parameters.into(),
                        common: sent.common,
                        values: Vec::new(),
                        longest: None,
                        setup,
                    }
                }
                (Role::Sender, Some(values)) => {
                    let party = $sender;
                    let setup = channel.stats() - before;
                    let answered = party.answer(set, values, settings, watch, channel)?;
                    Executed {
                        parameters: answered.parameters.into(),
                        common: answered.found,
                        values: Vec::new(),
                        longest: Some(answered.longest),
                        setup,
                    }
                }
                (Role::Receiver, _) if verb == Verb::Psi => {
                    let party = $receiver;
                    let setup = channel.stats() - before;
                    let received = party.intersect(set, settings, watch, channel)?;
                    Executed {
                        parameters: received.parameters.into(),
                        common: Some(received.common),
                        values: Vec::new(),
                        longest: None,
                        setup,
                    }
                }
                (Role::Receiver, _) => {
                    let party = $receiver;
                    let setup = channel.stats() - before;
                    let found = party.search(set, settings, watch, channel)?;
                    Executed {
                        parameters: found.parameters.into(),
                        common: Some(found.items),
                        values: found.values,
                        longest: Some(found.longest),
                        setup,
                    }
                }
            }
        }};
    }
    Ok(match protocol {
        Protocol::Vole(form) => run!(
            vole::Settings { form, both },
            vole::Sender::new(session, rng).one_of(parts),
            vole::Receiver::new(session, rng).one_of(parts)
        ),
        Protocol::Kkrt(variant) => run!(
            volery_psi::Settings { variant, both },
            volery_psi::Sender::setup(session, rng, channel)?.one_of(parts),
            volery_psi::Receiver::setup(session, rng, channel)?.one_of(parts)
        ),
        Protocol::Dh => match (role, values) {
            (Role::Sender, None) => {
                let sent = dh::Sender::new(session, rng).intersect(set, watch, channel)?;
                Executed {
                    parameters: sent.parameters.into(),
                    common: None,
                    values: Vec::new(),
                    longest: None,
                    setup: Stats::default(),
                }
            }
            (Role::Sender, Some(values)) => {
                let sender = dh::Sender::new(session, rng);
                let answered = sender.answer(set, values, watch, channel)?;
                Executed {
                    parameters: answered.parameters.into(),
                    common: None,
                    values: Vec::new(),
                    longest: Some(answered.longest),
                    setup: Stats::default(),
                }
            }
            (Role::Receiver, _) if verb == Verb::Psi => {
                let receiver = dh::Receiver::new(session, rng);
                let received = receiver.intersect(set, watch, channel)?;
                Executed {
                    parameters: received.parameters.into(),
                    common: Some(received.common),
                    values: Vec::new(),
                    longest: None,
                    setup: Stats::default(),
                }
            }
            (Role::Receiver, _) => {
                let found = dh::Receiver::new(session, rng).search(set, watch, channel)?;
                Executed {
                    parameters: found.parameters.into(),
                    common: Some(found.items),
                    values: found.values,
                    longest: Some(found.longest),
                    setup: Stats::default(),
                }
            }
        },
    })
}
