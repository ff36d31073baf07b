//! Oblivious PRF and set intersection from vector OLE: Rindal and Schoppmann, *VOLE-PSI*,
//! EUROCRYPT 2021, and Raghuraman and Rindal, *Blazing Fast PSI from Improved OKVS and Subfield
//! VOLE*, CCS 2022, with random band matrices as key-value store (`volery_okvs`).
//!
//! ```text
//! Evaluator: Y                                     Encoder: X
//! 0. sizes, settings, seed, committed to           (module agree)
//! 1. a digest of each item under the seed, bins by the digests
//! 2. D                 setup of the vector OLE
//!    for each batch of bins, of m columns each:
//! 3. w = u D + v       vector OLE                  u, v
//!    hash functions: rows of the matrix, h
//! 4.                                               P = Encode({x -> h(x)})
//!    <----------------- A = u + P ---------------
//! 5. K = w + A D
//!    F(y) = H(Decode(K, y) + h(y) D, y)
//! 6.                                               F(x) = H(Decode(v, x), x)
//! 7. ----- the tags F(y), sorted and coded ------>
//!    -------------------- end ------------------->
//!                                                  8. x is common if its tag is there
//!                               if both get the result:
//! 9. <------- a bit for each tag -----------------
//!    <-------------------- end -------------------
//! ```
//!
//! `K = v + P D`, and decoding is linear: for `x` in `X` the two outputs agree. For any other `y`,
//! `Decode(P, y) + h(y)` is not zero but with probability `2^-l`, and its multiple of the unknown
//! `D` hides the argument of `H`. The receiver of an intersection is the encoder, and the sender
//! the evaluator; where both learn the result, the party with fewer items is the encoder.
//!
//! Three [forms](Form). The **malicious** one adds to a batch:
//!
//! ```text
//! 3a. <----- commitment to r_X ------------------
//! 3b.        the vector OLE, with its check
//! 3c. ----- r_Y, commitment to s_Y ------------->
//!     hash functions from r_X and r_Y
//! 3d. <----- r_X, s_X, BLAKE3(A) ----------------  within 60 s and 1 us an item
//! 5a. ----- s_Y, once A of step 4 has that hash ->
//!     H adds s_X + s_Y to its first argument
//! ```
//!
//! So nobody can compute with the hash functions before the vector OLE is fixed, and the encoder
//! has little time to search for an encoding with more items than it has columns for: the hash
//! fixes all of `A`, however long its bytes then take. The offset
//! `s_X + s_Y` is that of the paper's malicious protocol. `H` and `h` are modelled as random
//! oracles; `h` is AES under a key from the seed, `H` is AES keyed with its first argument, each
//! with its input added to the output, in the ideal cipher model.
//!
//! The **fast** form has values of `l = 128` bits. In the **low-communication** form they are as
//! short as `n_X n_Y 2^-l` allows: `u` and the noise of the vector OLE lie in an F_2-subspace `V`
//! of dimension `l` of the field, and `P` too. All that is applied to `u` and `P` has entries 0
//! and 1 (the rows of the band, the LPN code), so the sums stay in `V`; `D` and `v` are from the
//! whole field. Nothing above needs `V` to be a field.
//!
//! Security: of the malicious form, against either party: a malicious encoder may have tested up to
//! [`Parameters::most_items`] times its number of items; a malicious evaluator learns nothing, also
//! from what follows in a larger run, as no error of the encoder depends on its items. It has at
//! most as many items as it stated, unless it evaluates `H` about 2^64 times to find two with one
//! tag. The other forms are **semi-honest**. In all of them each party learns the size of the
//! other's set.
//!
//! Cost: [`Parameters::encoding_bytes`] from the encoder and [`Parameters::tag_bytes`] from the
//! evaluator, the vector OLE of [`Parameters`], and 112 bytes each way; with `both` a bit for each
//! tag; in the malicious form 112 bytes from the encoder and 96 from the evaluator for each four
//! bins. If a set is empty, 112 bytes each way.

mod batch;
mod bins;
mod intersect;
mod lookup;
mod matching;
mod oprf;
pub(crate) mod packed;
mod params;
mod protocol;
mod sort;

use std::borrow::BorrowMut;
use std::time::Duration;

use volery_channel::{Channel, Hello, Role, Session, SessionId};
use volery_primitives::Block;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;

use crate::agree::{Agreement, Terms};
use crate::error::Result;
use crate::failure::Scale;
use crate::items::Items;
use crate::watch::{Phase, Watch};

use batch::{Encoder, Evaluator};
use bins::BinnedSet;
use params::BATCH;

pub use intersect::{ReceiverResult, SenderResult};
pub use lookup::{LookupReceiverResult, LookupSenderResult};
pub use oprf::{Keys, Outputs};
pub use params::{Form, Parameters};
pub use protocol::Vole;

/// The names of the protocols in their terms.
const INTERSECTION: &str = "intersection";
const SEARCH: &str = "search";
const OPRF: &str = "oprf";

/// The settings of a run. Equal on both sides: a caller compares them in the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The form of the protocol.
    pub form: Form,
    /// Whether the sender learns which of its items are common as well; not in the malicious form.
    pub both: bool,
}

impl Settings {
    /// This party's hello for the handshake of a run with these settings; `protocol` names the
    /// protocol that both are about to run, such as `intersection`.
    #[must_use]
    pub fn hello(self, protocol: &'static str, role: Role) -> Hello {
        Hello {
            protocol,
            role: role.name(),
            fields: vec![
                ("variant", format!("vole, {}", self.form)),
                ("both", self.both.to_string()),
            ],
        }
    }

    /// The terms compared with the peer's: the protocol's name and these settings.
    fn terms(self, protocol: &str, parts: u64) -> Terms {
        // mutant(vole-terms-protocol): `protocol.as_bytes()` => `&$0[..if $ON { 0 } else {
        //     protocol.len() }]`
        // mutant(vole-terms-form): `self.form.name().as_bytes()` => `b""`
        // mutant(vole-terms-both): `self.both` => `false`
        let terms = RandomOracle::new("volery vole psi: terms")
            .absorb(protocol.as_bytes())
            .absorb(self.form.name().as_bytes())
            .absorb(&[self.both.into()])
            .absorb_u64(parts)
            .finish32();
        *terms.first_chunk().expect("32 bytes")
    }
}

/// The sender of an intersection or keyword search, or the party that gets the keys of the OPRF.
///
/// Each call consumes it, so that a failed one leaves nothing behind.
pub struct Sender {
    party: Party,
}

/// The receiver of an intersection or keyword search, or of outputs of the OPRF.
///
/// Like [`Sender`].
pub struct Receiver {
    party: Party,
}

/// A party before a run.
struct Party {
    role: Role,
    session: SessionId,
    rng: Prg,
    /// Executions that share a failure probability of `2^-40`.
    parts: u64,
    /// The scale of every run; another one in tests.
    scale: Scale,
    /// For tests: another deadline.
    deadline: Option<Duration>,
}

impl Sender {
    /// A party of a session that no other object uses, with its randomness. No communication.
    #[must_use]
    pub fn new(session: SessionId, rng: Prg) -> Self {
        let party = Party::new(Role::Sender, session, rng);
        Self { party }
    }

    /// Makes this one of `parts` executions of a larger run, in all of which together anything
    /// fails with probability `2^-40`; the same at both parties.
    #[must_use]
    pub const fn one_of(mut self, parts: u64) -> Self {
        self.party.parts = parts;
        self
    }

    /// [`new`](Self::new) with a fresh session id and fresh randomness of a session.
    #[must_use]
    pub fn start(session: &mut Session<impl BorrowMut<Channel>>) -> Self {
        let (id, rng, _) = session.parts();
        Self::new(id, rng)
    }
}

impl Receiver {
    /// Like [`Sender::one_of`].
    #[must_use]
    pub const fn one_of(mut self, parts: u64) -> Self {
        self.party.parts = parts;
        self
    }

    /// Like [`Sender::new`].
    #[must_use]
    pub fn new(session: SessionId, rng: Prg) -> Self {
        let party = Party::new(Role::Receiver, session, rng);
        Self { party }
    }

    /// Like [`Sender::start`].
    #[must_use]
    pub fn start(session: &mut Session<impl BorrowMut<Channel>>) -> Self {
        let (id, rng, _) = session.parts();
        Self::new(id, rng)
    }
}

/// A party after steps 0 and 1.
struct AgreedParty {
    party: Party,
    parameters: Parameters,
    agreement: Agreement,
    set: BinnedSet,
}

/// The set of a party, whose digests are replaced by outputs of the OPRF.
struct Evaluation {
    role: Role,
    parameters: Parameters,
    agreement: Agreement,
    set: BinnedSet,
    /// For each place of the set, the second block of the output, if they were asked for.
    second: Buffer<Block>,
    /// The evaluator, whose memory is wiped and freed once its tags are sent: the peer waits for
    /// them.
    evaluator: Option<Evaluator>,
}

impl Party {
    fn new(role: Role, session: SessionId, rng: Prg) -> Self {
        Self { role, session, rng, parts: 1, scale: Scale::RUN, deadline: None }
    }

    /// Steps 0 and 1. The receiver gets the number `note`.
    fn begin(
        mut self,
        items: &(impl Items + ?Sized),
        note: u64,
        (protocol, settings): (&str, Settings),
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<AgreedParty> {
        assert!(
            !settings.both || settings.form != Form::Malicious,
            "in the malicious form the receiver alone learns the result"
        );
        watch.begin(Phase::Agree, 0);
        let (terms, said) = (settings.terms(protocol, self.parts), (items.len(), note));
        let agreement =
            Agreement::reach(self.role, self.session, &mut self.rng, terms, said, channel)?;
        let parameters = Parameters::with_scale(
            self.scale,
            self.parts,
            settings.form,
            // In a search the sender, who has the values, has to be the evaluator.
            settings.both && protocol == INTERSECTION,
            [agreement.sender_items, agreement.receiver_items],
        );
        let set = BinnedSet::new(&agreement.salt(), items, &parameters, watch)?;
        Ok(AgreedParty { party: self, parameters, agreement, set })
    }
}

impl AgreedParty {
    /// Steps 2 to 6. `second`: whether the second blocks of the outputs are kept.
    fn evaluate(
        self,
        second: bool,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Evaluation> {
        let evaluates = (self.party.role == Role::Sender) != self.parameters.exchanged;
        let Self { party, parameters, agreement, mut set } = self;
        let role = party.role;
        let places = if second { set.blocks.len() } else { 0 };
        let mut kept = Buffer::zeroed(places);
        let (mut done, mut used) = (0, None);
        if parameters.trivial() {
        } else if evaluates {
            watch.begin(Phase::Correlate, 0);
            let mut evaluator = party.evaluator(&parameters, channel)?;
            watch.begin(Phase::Rows, parameters.sides()[0]);
            for bins in batches(&parameters) {
                done += bins.clone().map(|bin| set.bin(bin).len()).sum::<usize>();
                let second = second.then_some(&mut kept[..]);
                let own = Some((&mut set, second));
                let keys = evaluator.batch(&parameters, &agreement, bins, own, channel)?;
                evaluator.recycle(keys);
                watch.done(done as u64);
            }
            used = Some(evaluator);
        } else {
            watch.begin(Phase::Correlate, 0);
            let mut encoder = Encoder::setup(&parameters, party.session, party.rng, channel)?;
            watch.begin(Phase::Rows, parameters.sides()[1]);
            for bins in batches(&parameters) {
                let second = second.then_some(&mut kept[..]);
                done += bins.clone().map(|bin| set.bin(bin).len()).sum::<usize>();
                encoder.batch(&parameters, &agreement, bins, &mut set, second, channel)?;
                watch.done(done as u64);
            }
        }
        Ok(Evaluation { role, parameters, agreement, set, second: kept, evaluator: used })
    }
}

/// The outputs of the OPRF on blocks that both parties draw from their items under the seed of an
/// agreement, in their order: steps 2 to 6, without the end. `oprf`: this party's role, session and
/// randomness for it.
pub(crate) fn evaluate(
    (role, session, rng): (Role, SessionId, Prg),
    agreement: &Agreement,
    parameters: &Parameters,
    mut blocks: Buffer<Block>,
    watch: &mut dyn Watch,
    channel: &mut Channel,
) -> Result<Buffer<Block>> {
    let begun = AgreedParty {
        party: Party::new(role, session, rng),
        set: BinnedSet::of(&blocks, parameters)?,
        parameters: parameters.clone(),
        agreement: agreement.clone(),
    };
    let done = begun.evaluate(false, watch, channel)?;
    for place in done.set.all_places() {
        blocks[done.set.number(place)] = done.set.blocks[place];
    }
    Ok(blocks)
}

impl Party {
    fn evaluator(self, parameters: &Parameters, channel: &mut Channel) -> Result<Evaluator> {
        let mut evaluator = Evaluator::setup(parameters, self.session, self.rng, channel)?;
        evaluator.deadline = self.deadline;
        Ok(evaluator)
    }
}

/// The bins of each batch.
fn batches(parameters: &Parameters) -> impl Iterator<Item = std::ops::Range<usize>> {
    let bins = parameters.bins;
    (0..bins).step_by(BATCH).map(move |first| first..bins.min(first + BATCH))
}

#[cfg(test)]
pub(crate) mod counting;
#[cfg(test)]
mod tests;
