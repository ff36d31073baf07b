//! Both parties of a run.

use volery_channel::{Channel, SessionId, run_two_channels};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::vole::{self, Form};
use volery_psi::{Receiver, Result, Sender, Settings, Variant};

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

/// A protocol with its settings.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Kkrt(Settings),
    Vole(vole::Settings),
}

/// The parameters in words, and the numbers of the common items of a party that learns them.
type Ended = (String, Option<Vec<usize>>);

impl Kind {
    /// Every protocol, with one result and with both where it may have both.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for both in [false, true] {
            all.extend(Variant::ALL.map(|variant| Self::Kkrt(Settings { variant, both })));
            let forms = Form::ALL.into_iter();
            let forms = forms.filter(|form| !both || *form != Form::Malicious);
            all.extend(forms.map(|form| Self::Vole(vole::Settings { form, both })));
        }
        all
    }

    pub(crate) const fn both(self) -> bool {
        match self {
            Self::Kkrt(settings) => settings.both,
            Self::Vole(settings) => settings.both,
        }
    }

    pub(crate) fn send(
        self,
        items: &[impl AsRef<[u8]> + Sync],
        channel: &mut Channel,
    ) -> Result<Ended> {
        let rng = Prg::new(Block::new(1));
        Ok(match self {
            Self::Kkrt(settings) => {
                let sender = Sender::setup(SESSION, rng, channel)?;
                let sent = sender.intersect(items, settings, &mut (), channel)?;
                (format!("{:?}", sent.parameters), sent.common)
            }
            Self::Vole(settings) => {
                let sender = vole::Sender::new(SESSION, rng);
                let sent = sender.intersect(items, settings, &mut (), channel)?;
                (format!("{:?}", sent.parameters), sent.common)
            }
        })
    }

    /// The sender of a search.
    pub(crate) fn answer(
        self,
        items: &[impl AsRef<[u8]> + Sync],
        values: &[impl AsRef<[u8]> + Sync],
        channel: &mut Channel,
    ) -> Result<()> {
        let rng = Prg::new(Block::new(1));
        match self {
            Self::Kkrt(settings) => {
                let sender = Sender::setup(SESSION, rng, channel)?;
                sender.answer(items, values, settings, &mut (), channel)?;
            }
            Self::Vole(settings) => {
                let sender = vole::Sender::new(SESSION, rng);
                sender.answer(items, values, settings, &mut (), channel)?;
            }
        }
        Ok(())
    }

    /// The receiver of a search.
    pub(crate) fn search(
        self,
        items: &[impl AsRef<[u8]> + Sync],
        channel: &mut Channel,
    ) -> Result<()> {
        let rng = Prg::new(Block::new(2));
        match self {
            Self::Kkrt(settings) => {
                let receiver = Receiver::setup(SESSION, rng, channel)?;
                receiver.search(items, settings, &mut (), channel)?;
            }
            Self::Vole(settings) => {
                let receiver = vole::Receiver::new(SESSION, rng);
                receiver.search(items, settings, &mut (), channel)?;
            }
        }
        Ok(())
    }

    pub(crate) fn receive(
        self,
        items: &[impl AsRef<[u8]> + Sync],
        channel: &mut Channel,
    ) -> Result<Ended> {
        let rng = Prg::new(Block::new(2));
        Ok(match self {
            Self::Kkrt(settings) => {
                let receiver = Receiver::setup(SESSION, rng, channel)?;
                let received = receiver.intersect(items, settings, &mut (), channel)?;
                (format!("{:?}", received.parameters), Some(received.common))
            }
            Self::Vole(settings) => {
                let receiver = vole::Receiver::new(SESSION, rng);
                let received = receiver.intersect(items, settings, &mut (), channel)?;
                (format!("{:?}", received.parameters), Some(received.common))
            }
        })
    }
}

/// A run in memory, in which one party may leave early.
pub(crate) fn intersect(
    ours: &[Vec<u8>],
    theirs: &[Vec<u8>],
    kind: Kind,
) -> (Result<Ended>, Result<Ended>) {
    let (left, right) = Channel::memory_pair();
    let ((sent, _), (received, _)) = run_two_channels(
        left,
        right,
        |channel| kind.send(ours, channel),
        |channel| kind.receive(theirs, channel),
    );
    (sent, received)
}
