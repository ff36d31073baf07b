//! Matches of two sets: each protocol of [`volery_psi::matching`] with each of its results.

use volery_channel::{Channel, Role, SessionId};
use volery_pcg::Security;
use volery_primitives::prg::Prg;
use volery_psi::count::Count;
use volery_psi::dh::Dh;
use volery_psi::kkrt::Kkrt;
use volery_psi::matching::{Outcome, Output, Party, Protocol};
use volery_psi::vole::{Form, Vole};
use volery_psi::{Items, Result, Variant, Watch};

/// The number of common items, which the receiver learns.
pub const COUNT: Output = Output::count(Role::Receiver);

/// A protocol for two sets, and its results.
#[derive(Clone, Debug)]
pub struct Match {
    /// The name of the run.
    pub name: String,
    /// The protocol.
    pub protocol: Protocol,
    /// The results.
    pub output: Output,
}

impl Match {
    /// Whether it is secure against a malicious peer.
    #[must_use]
    pub fn is_malicious(&self) -> bool {
        self.protocol.security() == Security::Malicious
    }

    /// Whether the sender learns which of its items are common.
    #[must_use]
    pub fn both(&self) -> bool {
        matches!(self.output, Output::Items { both: true, .. })
    }

    /// Whether the sender has a value for each item.
    #[must_use]
    pub fn searches(&self) -> bool {
        matches!(self.output, Output::Items { search: true, .. })
    }

    /// Runs one party; the sender of a search takes the values.
    ///
    /// # Errors
    /// That of the protocol.
    pub fn run(
        &self,
        (role, session, rng): (Role, SessionId, Prg),
        items: &dyn Items,
        values: &dyn Items,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Outcome> {
        let party = Party {
            role,
            session,
            rng,
            parts: 1,
            items,
            values: (self.searches() && role == Role::Sender).then_some(values),
            output: self.output,
        };
        self.protocol.run(party, watch, channel)
    }
}

/// Intersections and searches by a protocol, with the results that it gives.
fn by(protocol: Protocol, prefix: &str, suffix: &str) -> Vec<Match> {
    let mut all = Vec::new();
    for (both, known) in [(false, ""), (true, ", for both")] {
        for (search, kind) in [(false, "intersection"), (true, "search")] {
            let output = Output::Items { both, search };
            if protocol.gives(&output) {
                all.push(Match {
                    name: format!("{prefix}{kind}{suffix}{known}"),
                    protocol,
                    output,
                });
            }
        }
    }
    all
}

/// Matches by the protocol of CCS 2016. `prefix` begins their names.
pub fn by_kkrt(prefix: &str) -> Vec<Match> {
    [by(&Kkrt(Variant::Kkrt), prefix, ""), by(&Kkrt(Variant::KkrtPaper), prefix, ", with a stash")]
        .concat()
}

/// Matches by VOLE-PSI in all forms.
pub fn by_vole() -> Vec<Match> {
    [
        by(&Vole(Form::Malicious), "vole ", ", malicious"),
        by(&Vole(Form::Fast), "vole ", ", fast"),
        by(&Vole(Form::Low), "vole ", ", low-communication"),
    ]
    .concat()
}

/// Matches by Diffie-Hellman: of items, and the number of common ones.
pub fn by_dh() -> Vec<Match> {
    let count = Match { name: "count".to_owned(), protocol: &Count, output: COUNT };
    [by(&Dh, "dh ", ""), vec![count]].concat()
}
