//! Both parties of a run.

use volery_channel::{Channel, Role, SessionId, run_two_channels};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::kkrt::Kkrt;
use volery_psi::matching::{Outcome, Output, PROTOCOLS, Party, Protocol};
use volery_psi::params::MAX_ITEMS;
use volery_psi::vole::{Form, Vole};
use volery_psi::{Items, Result, Variant};

/// The session of all tests.
pub(crate) const SESSION: SessionId = SessionId::from_bytes([7; 32]);

/// Items `from..to`, some of them long.
pub(crate) fn items(from: usize, to: usize) -> Vec<Vec<u8>> {
    (from..to)
        .map(|i| {
            let mut item = format!("item {i}").into_bytes();
            if i % 97 == 0 {
                item.resize(10_240, b'.');
            }
            item
        })
        .collect()
}

/// A protocol for large sets, and whether both parties get the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) protocol: Protocol,
    pub(crate) both: bool,
}

/// The parameters, and the numbers of the common items of a party that learns them.
type RunResult = (String, Option<Vec<usize>>);

impl Kind {
    /// Every protocol, with one result and with both where it may have both.
    pub(crate) fn all() -> Vec<Self> {
        let kinds = [false, true].into_iter().flat_map(|both| {
            let all = PROTOCOLS.into_iter();
            all.map(move |protocol| Self { protocol, both })
        });
        let large = kinds.filter(|kind| kind.protocol.most_items() == MAX_ITEMS);
        large.filter(|kind| kind.protocol.gives(&kind.output(false))).collect()
    }

    pub(crate) const fn output(self, search: bool) -> Output {
        let both = self.both;
        Output::Items { both, search }
    }

    /// Whether it is of the older kind, with an offline phase.
    pub(crate) fn is_kkrt(self) -> bool {
        self.protocol.name().starts_with("kkrt")
    }

    /// Runs one party: the sender of a search has values.
    pub(crate) fn run(
        self,
        role: Role,
        items: &dyn Items,
        values: Option<&dyn Items>,
        search: bool,
        channel: &mut Channel,
    ) -> Result<Outcome> {
        let party = Party {
            role,
            session: SESSION,
            rng: Prg::new(Block::new(role as u128 + 1)),
            parts: 1,
            items,
            values,
            output: self.output(search),
        };
        self.protocol.run(party, &mut (), channel)
    }

    /// One party of an intersection.
    pub(crate) fn intersect(
        self,
        role: Role,
        items: &dyn Items,
        channel: &mut Channel,
    ) -> Result<RunResult> {
        let outcome = self.run(role, items, None, false, channel)?;
        Ok((format!("{:?}", outcome.parameters), outcome.common))
    }
}

/// VOLE-PSI in a form.
pub(crate) fn vole(form: Form, both: bool) -> Kind {
    let protocol = match form {
        Form::Malicious => &Vole(Form::Malicious),
        Form::Fast => &Vole(Form::Fast),
        Form::Low => &Vole(Form::Low),
    };
    Kind { protocol, both }
}

/// The older protocol in a variant.
pub(crate) fn kkrt(variant: Variant, both: bool) -> Kind {
    let protocol = match variant {
        Variant::Kkrt => &Kkrt(Variant::Kkrt),
        Variant::KkrtPaper => &Kkrt(Variant::KkrtPaper),
    };
    Kind { protocol, both }
}

/// An intersection in memory, in which one party may leave early.
pub(crate) fn intersect(
    ours: &[Vec<u8>],
    theirs: &[Vec<u8>],
    kind: Kind,
) -> (Result<RunResult>, Result<RunResult>) {
    let (left, right) = Channel::memory_pair();
    let ((sent, _), (received, _)) = run_two_channels(
        left,
        right,
        |channel| kind.intersect(Role::Sender, &ours, channel),
        |channel| kind.intersect(Role::Receiver, &theirs, channel),
    );
    (sent, received)
}
