//! Both parties of a run.

use volery_channel::{Channel, Role, SessionId};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::matching::{Outcome, Output, PROTOCOLS, Party, Protocol, named};
use volery_psi::{Items, Result};

/// The session of all tests.
pub(crate) const SESSION: SessionId = SessionId::from_bytes([7; 32]);

/// Items `from..to`, some of them long.
pub(crate) fn items(from: usize, to: usize) -> Vec<Vec<u8>> {
    let item = |i| {
        let mut item = format!("item {i}").into_bytes();
        if i % 97 == 0 {
            item.resize(10_240, b'.');
        }
        item
    };
    (from..to).map(item).collect()
}

/// A protocol, and what the parties learn by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) protocol: Protocol,
    pub(crate) output: Output,
}

impl Kind {
    /// A protocol with a name, the best for items.
    pub(crate) fn named(name: &str, security: volery_pcg::Security, both: bool) -> Self {
        let output = Output::Items { both, search: false };
        Self { protocol: named(name, security, &output).unwrap(), output }
    }

    /// Every protocol, with each of its results.
    pub(crate) fn all() -> Vec<Self> {
        let items = [[false, false], [true, false], [false, true], [true, true]];
        let items = items.map(|[both, search]| Output::Items { both, search });
        let counts = Role::ALL.map(Output::count);
        let of = |protocol: Protocol| {
            let outputs = items.into_iter().chain(counts);
            let outputs = outputs.filter(move |output| protocol.gives(output));
            outputs.map(move |output| Self { protocol, output })
        };
        PROTOCOLS.into_iter().flat_map(of).collect()
    }

    pub(crate) fn searches(self) -> bool {
        matches!(self.output, Output::Items { search: true, .. })
    }

    /// Whether it is of the older kind, with an offline phase.
    pub(crate) fn is_kkrt(self) -> bool {
        self.protocol.name().starts_with("kkrt")
    }

    /// Runs one party; the sender of a search takes the values.
    pub(crate) fn run(
        self,
        role: Role,
        items: &dyn Items,
        values: &dyn Items,
        channel: &mut Channel,
    ) -> Result<Outcome> {
        let party = Party {
            role,
            session: SESSION,
            rng: Prg::new(Block::new(role as u128 + 1)),
            parts: 1,
            items,
            values: (self.searches() && role == Role::Sender).then_some(values),
            output: self.output,
        };
        self.protocol.run(party, &mut (), channel)
    }
}
