//! What a run will cost, before anything is sent, and the choice of its protocol.

use volery_channel::{Link, Role};
use volery_psi::choice::totals::{Candidate, Task};
use volery_psi::vole::Form;
use volery_psi::{circuit, count};

use super::run::Parameters;
use super::settings::{Settings, To};
use super::side::Side;
use crate::error::Result;
use crate::parameters::PEER_FOLLOWS;
use crate::plan::FIXED;
use crate::settings::Name;

pub use volery_psi::choice::totals::Protocol;

/// The protocols that were compared, and for what.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Distinct keys of sender and receiver.
    pub sizes: [u64; 2],
    /// The link.
    pub link: Link,
    /// The fastest first.
    pub candidates: Vec<Candidate>,
}

impl Choice {
    /// The protocols for the number of all common keys on a link.
    #[must_use]
    pub fn new(settings: &Settings, sizes: [u64; 2], link: Link) -> Self {
        // Each by the roles that the sides have in it.
        let all = [Protocol::Circuit(Form::Fast), Protocol::Dh];
        let mut candidates = all
            .map(|protocol| protocol.candidate(&settings.task(protocol, sizes), link))
            .to_vec();
        candidates.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Self {
            sizes,
            link,
            candidates,
        }
    }

    /// The fastest.
    #[must_use]
    pub fn best(&self) -> Protocol {
        self.candidates.first().expect("there are two").protocol
    }

    /// One line: sizes and link, the predicted times.
    #[must_use]
    pub fn why(&self) -> String {
        let [sender, receiver] = self.sizes;
        let seconds = |one: &Candidate| format!("{} {:.3} s", one.protocol, one.seconds);
        let all: Vec<_> = self.candidates.iter().map(seconds).collect();
        format!(
            "semi-honest, a count of {sender} and {receiver} keys, fastest at {:.1} Mbit/s and \
             {:.2} ms: {} (predicted)",
            self.link.bits_per_second / 1e6,
            self.link.round_trip * 1e3,
            all.join(", before ")
        )
    }
}

impl Settings {
    /// The task of a protocol, by the roles that the sides have in it.
    #[must_use]
    pub fn task(&self, protocol: Protocol, [sender, receiver]: [u64; 2]) -> Task {
        let is_receiver = match protocol {
            Protocol::Circuit(_) => self.in_bins() == Role::Receiver,
            Protocol::Dh => self.to != To::Sender,
        };
        let (sender_items, receiver_items) = match is_receiver {
            true => (sender, receiver),
            false => (receiver, sender),
        };
        Task {
            sender_items,
            receiver_items,
            settings: self.circuit(),
            comparisons: match self.minimum {
                0 => 0,
                _ => self.totals() as u64,
            },
        }
    }
}

/// The protocol of these settings; `None` if it is chosen by sizes and link.
pub(crate) fn named(settings: &Settings) -> Option<Protocol> {
    match settings.name {
        Name::Dh => Some(Protocol::Dh),
        Name::Auto if settings.is_simple_count() => None,
        _ => Some(Protocol::Circuit(settings.form())),
    }
}

impl Parameters {
    /// In words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Circuit(parameters) => parameters.to_string(),
            Self::Count(parameters) => format!("Ristretto255, tags of {} bits", parameters.tag),
        }
    }

    /// The assumptions that the security of a run rests on, with their level.
    #[must_use]
    pub fn assumption(&self) -> String {
        match self {
            Self::Circuit(parameters) => format!(
                "{}; {:.0} statistical",
                parameters.assumption(),
                self.failure_bits().floor()
            ),
            Self::Count(_) => format!(
                "{PEER_FOLLOWS}; decisional Diffie-Hellman in Ristretto255, BLAKE3 as a random \
                 oracle, no LPN; 128 bits, 40 statistical"
            ),
        }
    }

    /// What may go wrong between honest parties, with the negative logarithm of its probability.
    #[must_use]
    pub fn failures(&self) -> Vec<(&'static str, f64)> {
        match self {
            Self::Circuit(parameters) => {
                let causes = parameters.failures().into_iter();
                // In any of the shards.
                let more = (parameters.settings.parts as f64).log2();
                causes
                    .map(|cause| (cause.what, cause.bits - more))
                    .collect()
            }
            Self::Count(parameters) => {
                let causes = parameters.failures().into_iter();
                causes.map(|cause| (cause.what, cause.bits)).collect()
            }
        }
    }

    /// The negative logarithm of the probability that any of them happens.
    #[must_use]
    pub fn failure_bits(&self) -> f64 {
        let all = self.failures();
        -all.iter()
            .map(|(_, bits)| (-bits).exp2())
            .sum::<f64>()
            .log2()
    }

    /// Bytes of memory of this side, as far as they grow with the sets.
    #[must_use]
    pub fn memory(&self, settings: &Settings) -> u64 {
        match self {
            Self::Circuit(parameters) => {
                let bins = settings.role == settings.in_bins();
                parameters.memory()[usize::from(bins)]
            }
            Self::Count(parameters) => {
                let counts = match settings.to {
                    To::Sender => Role::Sender,
                    To::Receiver | To::Both => Role::Receiver,
                };
                let role = match settings.role == counts {
                    true => Role::Receiver,
                    false => Role::Sender,
                };
                parameters.memory(role)
            }
        }
    }
}

/// What a run is predicted to cost.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The protocol.
    pub protocol: Protocol,
    /// Why, if it was chosen.
    pub choice: Option<Choice>,
    /// Bytes in both directions.
    pub bytes: u64,
    /// Seconds, with one thread a party.
    pub seconds: f64,
    /// Peak memory of this side in bytes.
    pub memory: u64,
}

impl Side {
    /// Predicts a run against a peer with this many distinct keys on this link.
    ///
    /// # Errors
    /// If a total could leave 64 bits, or a set is too large.
    pub fn plan(&self, peer: u64, link: Link) -> Result<Plan> {
        /// Of a key: the item, its value and its group.
        const KEY: u64 = 16 + 8 + 1;
        let settings = self.settings();
        let own = self.summary.keys;
        let items = own.max(peer);
        if items > circuit::MAX_ITEMS {
            let most = circuit::MAX_ITEMS;
            return Err(volery_psi::Error::TooMany { items, most }.into());
        }
        let sizes = match settings.role {
            Role::Sender => [own, peer],
            Role::Receiver => [peer, own],
        };
        settings.check_range(sizes)?;
        let (protocol, choice) = match named(settings) {
            Some(protocol) => (protocol, None),
            None => {
                let choice = Choice::new(settings, sizes, link);
                (choice.best(), Some(choice))
            }
        };
        let task = settings.task(protocol, sizes);
        let cost = protocol.candidate(&task, link);
        let (sender, receiver) = (task.sender_items, task.receiver_items);
        let parameters = match protocol {
            Protocol::Circuit(_) => {
                let circuit = circuit::Parameters::new(settings.circuit(), sender, receiver);
                Parameters::Circuit(circuit)
            }
            Protocol::Dh => Parameters::Count(count::Parameters::new(sender, receiver)),
        };
        // The columns of weights are there twice until they are copied.
        let weights = match protocol {
            Protocol::Circuit(_) if settings.role == settings.in_bins() => {
                8 * settings.circuit().weights as u64 * own
            }
            _ => 0,
        };
        Ok(Plan {
            protocol,
            choice,
            bytes: cost.bytes,
            seconds: cost.seconds,
            memory: FIXED + own * KEY + weights + parameters.memory(settings),
        })
    }
}
