//! One interface to all protocols that compare two sets, and the list of them.
//!
//! A protocol is a module with an implementation of [`Matching`], and a line in [`PROTOCOLS`]. What
//! runs a match asks the list: module [`choice`](crate::choice) for the fastest of it, a command
//! line for one of a [name](named).

use std::fmt;

use volery_channel::{Channel, Link, Role, SessionId, Stats};
use volery_pcg::Security;
use volery_primitives::prg::Prg;

use crate::circuit::{self, Circuit};
use crate::count::Count;
use crate::dh::Dh;
use crate::error::Result;
use crate::failure::Failure;
use crate::items::Items;
use crate::kkrt::Kkrt;
use crate::params::{self, Variant};
use crate::vole::{Form, Vole};
use crate::watch::Watch;

/// One of [`PROTOCOLS`].
pub type Protocol = &'static dyn Matching;

/// All protocols. Of two that are equally fast, a [choice](crate::choice) takes the first.
pub static PROTOCOLS: [Protocol; 9] = [
    &Vole(Form::Malicious),
    &Vole(Form::Fast),
    &Vole(Form::Low),
    &Kkrt(Variant::Kkrt),
    &Kkrt(Variant::KkrtPaper),
    &Dh,
    &Circuit(Form::Fast),
    &Circuit(Form::Low),
    &Count,
];

/// A protocol that compares two sets.
pub trait Matching: fmt::Debug + Sync {
    /// The name on a command line and in reports. Forms of a protocol that differ in their security
    /// only have one name, and so may protocols for different outputs.
    fn name(&self) -> &'static str;

    /// The adversary that it is secure against.
    fn security(&self) -> Security;

    /// Whether it gives an output.
    fn gives(&self, output: &Output) -> bool;

    /// The most items of a set.
    fn most_items(&self) -> u64 {
        params::MAX_ITEMS
    }

    /// Whether a choice may take it. Others run by their name only.
    fn is_candidate(&self) -> bool {
        true
    }

    /// Whether the workers of a run that several machines share run it on their shards.
    fn is_for_workers(&self) -> bool {
        false
    }

    /// The facts that a run reveals beyond the sizes of both sets and the output: a sentence each,
    /// without a full stop. No protocol so far reveals more.
    fn reveals(&self) -> &'static [&'static str] {
        &[]
    }

    /// The parameters of one of `parts` executions that share a failure probability of `2^-40`.
    ///
    /// # Panics
    /// If the protocol does not give the output, or a set is too large for it.
    fn parameters(&self, task: &Task, parts: u64) -> Box<dyn Parameters>;

    /// The cost of an execution, by the model of module [`choice`](crate::choice). Panics as
    /// [`parameters`](Self::parameters) does.
    fn cost(&self, task: &Task) -> Cost;

    /// Runs the protocol, with its setup, as this party. Progress goes to `watch`; a caller cancels
    /// the run by way of the channel.
    ///
    /// # Panics
    /// If the protocol does not give the output; if there are values, and not one for each item of
    /// the sender of a search. [`Output::Totals`] with anything but a count are computed on shares,
    /// by [`circuit::Sender`] and [`circuit::Receiver`].
    ///
    /// # Errors
    /// [`Error::Duplicate`](crate::Error::Duplicate) if two items are equal; if a set or a value is
    /// too large; if the channel fails, or the peer does not follow the protocol.
    fn run(
        &self,
        party: Party<'_>,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Outcome>;
}

impl fmt::Display for dyn Matching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Two protocols are equal if they have one name and one security.
impl PartialEq for dyn Matching {
    fn eq(&self, other: &Self) -> bool {
        (self.name(), self.security()) == (other.name(), other.security())
    }
}

impl Eq for dyn Matching {}

impl dyn Matching {
    /// Whether it has a security: one against malicious parties includes that against semi-honest
    /// ones.
    fn is_secure(&self, asked: Security) -> bool {
        self.security() == asked || asked == Security::SemiHonest
    }

    /// Whether it fulfils a task.
    #[must_use]
    pub fn fulfils(&self, task: &Task) -> bool {
        self.is_secure(task.security)
            && self.gives(&task.output)
            && (self.is_for_workers() || !task.with_workers)
            && task.sender_items.max(task.receiver_items) <= self.most_items()
    }
}

/// The protocol of a name that gives an output with this security. Of two forms the one that has
/// exactly this security: the other one costs more.
#[must_use]
pub fn named(name: &str, security: Security, output: &Output) -> Option<Protocol> {
    let all = PROTOCOLS
        .into_iter()
        .filter(|one| one.name() == name && one.is_secure(security) && one.gives(output));
    all.min_by_key(|one| one.security() != security)
}

/// The task of a protocol. The same for both parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Items of the sender.
    pub sender_items: u64,
    /// Items of the receiver.
    pub receiver_items: u64,
    /// The adversary that the run has to be secure against.
    pub security: Security,
    /// The results.
    pub output: Output,
    /// Whether several workers on each side share the run.
    pub with_workers: bool,
}

impl Task {
    /// The numbers of items of sender and receiver in a protocol whose receiver has this role in
    /// the run.
    pub const fn sizes(&self, receiver: Role) -> [u64; 2] {
        match receiver {
            Role::Receiver => [self.sender_items, self.receiver_items],
            Role::Sender => [self.receiver_items, self.sender_items],
        }
    }
}

/// The results of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The receiver learns which of its items are common.
    Items {
        /// Whether the sender learns that of its own as well.
        both: bool,
        /// Whether the sender has a value for each item, which the receiver gets of common ones.
        search: bool,
    },
    /// Totals over the common items, or shares of their values.
    Totals(Totals),
}

impl Output {
    /// The number of common items, which the party of this role learns.
    pub const fn count(counts: Role) -> Self {
        let counts = Some(counts);
        let settings = circuit::Settings {
            form: Form::Fast,
            payload: 0,
            weights: 1,
            products: 0,
            selections: 0,
            parts: 1,
        };
        Self::Totals(Totals { settings, comparisons: 0, in_bins: Role::Receiver, counts })
    }
}

/// Totals over the common items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// The values; [`form`](circuit::Settings::form) and [`parts`](circuit::Settings::parts) do not
    /// count.
    pub settings: circuit::Settings,
    /// Comparisons with a minimum.
    pub comparisons: u64,
    /// The party whose items are in the bins of [`circuit`].
    pub in_bins: Role,
    /// The party that learns the number of all common items, if nothing else is asked for.
    pub counts: Option<Role>,
}

/// The measured part of the model of a protocol, and its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Bytes in both directions, without the handshake; of a search as if all values were empty,
    /// because they take the same in all protocols.
    pub bytes: u64,
    /// Round trips.
    pub trips: f64,
    /// Milliseconds that do not depend on the sizes.
    pub fixed: f64,
    /// Nanoseconds of the slower party that depend on them.
    pub work: f64,
}

impl Cost {
    /// Seconds of a run on a link.
    pub fn seconds(&self, link: Link) -> f64 {
        8.0 * self.bytes as f64 / link.bits_per_second
            + self.trips * link.round_trip
            + self.fixed * 1e-3
            + self.work * 1e-9
    }
}

/// Begins the assumptions of a protocol that is secure against malicious parties.
pub(crate) const PEER_DEVIATES: &str = "malicious: the peer may do anything";

/// Begins those of a semi-honest protocol.
pub(crate) const PEER_FOLLOWS: &str = "semi-honest: the peer follows the protocol";

/// The parameters of an execution, which follow from the task alone. Displayed in words, for
/// reports.
pub trait Parameters: fmt::Debug + fmt::Display + Send + Sync {
    /// The numbers of items of both parties, in the roles of the protocol: sender and receiver.
    fn sizes(&self) -> [u64; 2];

    /// The adversary and the assumptions that the security rests on, with their level.
    fn assumption(&self) -> String;

    /// The failures that honest parties may meet, each cause once for the whole run.
    fn failures(&self) -> Vec<Failure>;

    /// The negative logarithm of the probability that wrong correlations pass the checks; `None`
    /// without a check.
    fn check_bits(&self) -> Option<u32> {
        None
    }

    /// The statistical security: that of the checks, if there are any, and of the result.
    fn statistical_bits(&self) -> f64 {
        let checks = self.check_bits().map_or(f64::INFINITY, f64::from);
        checks.min(Failure::sum(self.failures()))
    }

    /// Bytes of the receiver's encoded set, of the sender's tags, of the values of a search, the
    /// longest of which has `longest` bytes, and of correlations, which are predicted.
    fn traffic(&self, longest: Option<usize>) -> [u64; 4];

    /// The most items, as a multiple of the stated number, that a malicious receiver may have
    /// tested with `2^log_queries` evaluations of hash functions, if there is a bound.
    fn most_items(&self, _log_queries: u32) -> Option<f64> {
        None
    }

    /// Bytes of memory that the party in this role needs for what grows with the sets, at most at
    /// one time.
    fn memory(&self, role: Role, output: &Output) -> u64;
}

/// One party of an execution.
pub struct Party<'a> {
    /// Its role.
    pub role: Role,
    /// A session that is used for nothing else; the same at both parties.
    pub session: SessionId,
    /// Its randomness.
    pub rng: Prg,
    /// Executions that share a failure probability of `2^-40`; the same at both parties.
    pub parts: u64,
    /// Its items, which are distinct.
    pub items: &'a dyn Items,
    /// The value of each item, at the sender of a search.
    pub values: Option<&'a dyn Items>,
    /// The results; the same at both parties.
    pub output: Output,
}

impl<'a> Party<'a> {
    /// The values, the results and whether the sender learns them, of a protocol for
    /// [`Output::Items`].
    pub(crate) fn call(&self) -> (Call<'a>, bool) {
        let Output::Items { both, search } = self.output else {
            panic!("the protocol gives no totals");
        };
        let call = match (self.role, search, self.values) {
            (Role::Sender, true, Some(values)) => Call::Answer(values),
            (Role::Sender, false, None) => Call::SendIntersect,
            (Role::Receiver, false, None) => Call::ReceiveIntersect,
            (Role::Receiver, true, None) => Call::Search,
            _ => panic!("the sender of a search has values, and nobody else"),
        };
        (call, both)
    }
}

/// The method of a protocol that a party calls.
pub(crate) enum Call<'a> {
    SendIntersect,
    ReceiveIntersect,
    Answer(&'a dyn Items),
    Search,
}

/// The results of an execution at one party.
pub struct Outcome {
    /// The sizes and the parameters derived from them.
    pub parameters: Box<dyn Parameters>,
    /// The numbers of this party's common items, ascending, if it learns them.
    pub common: Option<Vec<usize>>,
    /// Receiver of a search: the value of each of them, in the same order.
    pub values: Vec<Vec<u8>>,
    /// Search: bytes of the sender's longest value.
    pub longest: Option<usize>,
    /// The number of common items, if this party learns it alone.
    pub count: Option<u64>,
    /// Traffic of a setup that depends on no set.
    pub setup: Stats,
}
