//! The predicted cost of a run, before anything is sent, and the choice of its protocol.

use std::convert::Infallible;

use volery_channel::{Link, Role};
use volery_pcg::Security;
use volery_psi::choice::{Candidate, decide};
use volery_psi::circuit::{self, Recipient};
use volery_psi::matching::{Output, Task, Totals};

use super::settings::Settings;
use super::side::PreparedTable;
use crate::error::Result;
use crate::parameters::FIXED;
use crate::parameters::Parameters;
use crate::plan::Plan;
use crate::settings::{SettingsError, check_link};

pub use volery_psi::choice::Choice;
pub use volery_psi::matching::Protocol;

impl Settings {
    /// The results.
    pub fn output(&self) -> Output {
        let counts = match self.to {
            Recipient::Sender => Role::Sender,
            Recipient::Receiver | Recipient::Both => Role::Receiver,
        };
        Output::Totals(Totals {
            settings: self.circuit(),
            comparisons: match self.minimum {
                0 => 0,
                _ => self.totals() as u64,
            },
            in_bins: self.in_bins(),
            counts: self.is_simple_count().then_some(counts),
        })
    }

    /// The task of a protocol for sets of sender and receiver of these sizes.
    pub fn task(&self, [sender_items, receiver_items]: [u64; 2]) -> Task {
        Task {
            sender_items,
            receiver_items,
            security: Security::SemiHonest,
            output: self.output(),
            with_workers: false,
        }
    }

    /// The protocol, if it is named.
    pub fn protocol(&self) -> Option<Protocol> {
        self.name.protocol(Security::SemiHonest, &self.output())
    }

    /// The settings of a run with workers, whose protocol is named, and if it was to be chosen the
    /// reason for the one that they run.
    ///
    /// # Errors
    /// If they describe a link: the protocol is the same on every link.
    pub fn for_workers(mut self) -> Result<(Self, Option<String>), SettingsError> {
        let (name, why) = self.name.for_workers(self.task([0, 0]));
        self.name = name;
        check_link(self.name, self.link)?;
        Ok((self, why))
    }
}

/// Whether a protocol gives shares, on which totals are computed, and not the count alone.
pub(crate) fn has_shares(protocol: Protocol, settings: &Settings) -> bool {
    let counts = None;
    protocol.gives(&match settings.output() {
        Output::Totals(totals) => Output::Totals(Totals { counts, ..totals }),
        items @ Output::Items { .. } => items,
    })
}

impl PreparedTable {
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
        let sizes = settings.role.sides([own, peer]);
        settings.check_range(sizes)?;
        let task = settings.task(sizes);
        let Ok((protocol, choice)) =
            decide(settings.name.given(), &task, || Ok::<_, Infallible>(link));
        let cost = Candidate::new(protocol, &task, link);
        let parameters = Parameters::new(protocol.parameters(&task, 1), task.output);
        // The columns of weights are there twice until they are copied.
        let weights = match has_shares(protocol, settings) && settings.role == settings.in_bins() {
            true => 8 * settings.circuit().weights as u64 * own,
            false => 0,
        };
        Ok(Plan {
            protocol,
            choice,
            buckets: 1,
            bytes: cost.bytes,
            seconds: cost.seconds,
            memory: FIXED + own * KEY + weights + parameters.memory(settings.role),
        })
    }
}
