//! The choice of a protocol for two sets: what each protocol offers, and what it costs on a link.
//!
//! The model is
//!
//! ```text
//! seconds = bytes / rate + round trips * round-trip time + fixed work
//!           + work for each item of either set, of the slower party
//! ```
//!
//! with bytes from the parameters of the protocol for these sizes. It is precise enough to choose:
//! transfer and work overlap in a run, which favours no protocol. Both parties must use the same
//! numbers, because the choice follows from them.
//!
//! A peer that lies about its size or the link can make the parties run another one of the
//! candidates, no other protocol: all candidates have the security asked for. The protocols
//! themselves commit to the sizes, so a caller who compares them notices a false one.
//!
//! Never chosen, and so only by name: [`Form::Low`], whose vector OLE has a code of estimated
//! distance, and [`Variant::KkrtPaper`], which is for reproduction.

pub mod totals;

use std::fmt;

use volery_channel::Link;
use volery_pcg::Security;

use crate::dh;
use crate::lookup::value_bytes;
use crate::params::{self, Variant};
use crate::vole::{self, Form};

/// Bytes of the setup of [`crate::oprf`], the agreement and the ends, both ways.
const KKRT_SETUP: u64 = 15_105;

/// A protocol for set intersection and keyword search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// [`crate::vole`] in one of its forms.
    Vole(Form),
    /// [`crate::intersect`] and [`crate::lookup`].
    Kkrt(Variant),
    /// [`crate::dh`].
    Dh,
}

impl Protocol {
    /// The protocols that [`candidates`] compares.
    pub const CANDIDATES: [Self; 4] = [
        Self::Vole(Form::Malicious),
        Self::Vole(Form::Fast),
        Self::Kkrt(Variant::Kkrt),
        Self::Dh,
    ];

    /// The name on a command line and in reports. Two forms of one protocol that differ in their
    /// security only have one name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vole(Form::Malicious | Form::Fast) => "vole",
            Self::Vole(Form::Low) => "vole-low",
            Self::Kkrt(variant) => variant.name(),
            Self::Dh => "dh",
        }
    }

    /// The adversary that it is secure against.
    #[must_use]
    pub const fn security(self) -> Security {
        match self {
            Self::Vole(form) => form.security(),
            Self::Kkrt(_) => Security::SemiHonest,
            Self::Dh => Security::Malicious,
        }
    }

    /// Whether the sender can get the result too.
    #[must_use]
    pub const fn gives_both(self) -> bool {
        !matches!(self, Self::Vole(Form::Malicious) | Self::Dh)
    }

    /// The most items of a set.
    #[must_use]
    pub const fn most_items(self) -> u64 {
        match self {
            Self::Dh => dh::MAX_ITEMS,
            Self::Vole(_) | Self::Kkrt(_) => params::MAX_ITEMS,
        }
    }

    /// Whether it fulfils a task.
    #[must_use]
    pub fn fulfils(self, task: &Task) -> bool {
        let secure = match (task.security, self) {
            (Security::SemiHonest, Self::Vole(form)) => form != Form::Malicious,
            (Security::SemiHonest, _) => true,
            (asked, _) => self.security() == asked,
        };
        let items = task.sender_items.max(task.receiver_items);
        secure && (self.gives_both() || !task.both) && items <= self.most_items()
    }

    /// Bytes of a run, both ways, without the handshake; a search as if all
    /// values were empty, because they take the same in all protocols.
    #[must_use]
    pub fn bytes(self, task: &Task) -> u64 {
        let Task {
            sender_items,
            receiver_items,
            both,
            search,
            ..
        } = *task;
        match self {
            Self::Vole(form) => {
                let exchanged = both && !search;
                let parameters =
                    vole::Parameters::new(form, exchanged, sender_items, receiver_items);
                let [tags, _] = parameters.sides();
                parameters.bytes()
                    + if search { parameters.value_bytes(0) } else { 0 }
                    + if both { tags.div_ceil(8) } else { 0 }
            }
            Self::Kkrt(variant) => {
                let parameters = params::Parameters::new(variant, sender_items, receiver_items);
                let values = if search {
                    value_bytes(&parameters, 0)
                } else {
                    0
                };
                KKRT_SETUP
                    + parameters.row_bytes()
                    + parameters.tag_bytes()
                    + values
                    + if both { sender_items.div_ceil(8) } else { 0 }
            }
            Self::Dh => {
                let value = search.then_some(0);
                let (sent, received) = dh::bytes(sender_items, receiver_items, value);
                sent + received
            }
        }
    }

    /// Seconds of a run on a link, by the model above.
    #[must_use]
    pub fn seconds(self, task: &Task, link: Link) -> f64 {
        let cost = Cost::of(self);
        let (mut sender, mut receiver) = (task.sender_items, task.receiver_items);
        if sender == 0 || receiver == 0 {
            (sender, receiver) = (0, 0);
        }
        if let Self::Vole(form) = self
            && vole::Parameters::new(form, task.both && !task.search, sender, receiver).exchanged
        {
            (sender, receiver) = (receiver, sender);
        }
        let (sender, receiver) = (sender as f64, receiver as f64);
        let work = cost.sender * sender
            + cost.receiver * receiver
            + cost.pair * receiver * (sender + receiver);
        8.0 * self.bytes(task) as f64 / link.bits_per_second
            + cost.trips * link.round_trip
            + cost.fixed * 1e-3
            + work * 1e-9
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a protocol is chosen for. The same for both parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Items of the sender, at most [`MAX_ITEMS`](params::MAX_ITEMS).
    pub sender_items: u64,
    /// Items of the receiver, at most as many.
    pub receiver_items: u64,
    /// The adversary that the run has to be secure against.
    pub security: Security,
    /// Whether the sender gets the result too.
    pub both: bool,
    /// Whether the sender has values.
    pub search: bool,
}

/// A protocol for a task, with its cost by the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The protocol.
    pub protocol: Protocol,
    /// Seconds from the handshake to the result.
    pub seconds: f64,
    /// Bytes sent, in both directions.
    pub bytes: u64,
}

/// The protocols that fulfil a task, the fastest on this link first; none where the sender is to
/// learn the result with malicious security.
///
/// # Panics
/// If a set is larger than [`MAX_ITEMS`](params::MAX_ITEMS).
#[must_use]
pub fn candidates(task: &Task, link: Link) -> Vec<Candidate> {
    let all = Protocol::CANDIDATES.into_iter();
    let mut candidates: Vec<_> = all
        .filter(|protocol| protocol.fulfils(task))
        .map(|protocol| Candidate {
            protocol,
            seconds: protocol.seconds(task, link),
            bytes: protocol.bytes(task),
        })
        .collect();
    candidates.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    candidates
}

/// The measured part of the model.
struct Cost {
    /// Round trips.
    trips: f64,
    /// Milliseconds that do not depend on the sizes.
    fixed: f64,
    /// Nanoseconds for each item of the sender, which are for `vole` those of the evaluator.
    sender: f64,
    /// Nanoseconds for each item of the receiver, or encoder.
    receiver: f64,
    /// Nanoseconds for each pair of an item of the receiver and one of either set.
    pair: f64,
}

impl Cost {
    /// The constants, for one thread a party.
    ///
    /// Medians on the machine of docs/performance.md, on which nothing else ran. A line through
    /// equal and uneven sizes is off by up to a quarter at either. To measure them again:
    ///
    /// ```sh
    /// for sizes in 4 20 20:10 10:20; do
    ///   cargo run --release -p volery-psi --example pair -- $sizes 9 1 \
    ///     kkrt fast malicious low-communication
    /// done
    /// for sizes in 2 10 12 12:8 8:12; do
    ///   cargo run --release -p volery-psi --example pair -- $sizes 9 1 dh
    /// done
    /// ```
    ///
    /// The least sizes give the fixed work; `20` the sum of the two times an item, the uneven sizes
    /// their ratio. The round trips are those of runs over `volery_channel::shaped` with a round
    /// trip of one second, until the sender's end.
    fn of(protocol: Protocol) -> Self {
        let (trips, fixed, sender, receiver, pair) = match protocol {
            Protocol::Vole(Form::Malicious) => (5.0, 9.0, 75.0, 170.0, 0.0),
            Protocol::Vole(Form::Fast) => (4.0, 9.0, 60.0, 140.0, 0.0),
            Protocol::Vole(Form::Low) => (6.0, 12.0, 70.0, 240.0, 0.0),
            Protocol::Kkrt(Variant::Kkrt) => (3.5, 3.0, 70.0, 100.0, 0.0),
            Protocol::Kkrt(_) => (3.5, 3.0, 130.0, 100.0, 0.0),
            Protocol::Dh => (2.0, 0.2, 3_800.0, 18_000.0, 2.2),
        };
        Self {
            trips,
            fixed,
            sender,
            receiver,
            pair,
        }
    }
}

#[cfg(test)]
mod tests {
    use volery_channel::{SessionId, run_two_parties_with_stats};
    use volery_primitives::{Block, prg::Prg};

    use super::*;
    use crate::{Receiver, Sender, Settings};

    fn task(sender_items: u64, receiver_items: u64, security: Security) -> Task {
        Task {
            sender_items,
            receiver_items,
            security,
            both: false,
            search: false,
        }
    }

    fn link(megabits: f64) -> Link {
        Link {
            bits_per_second: megabits * 1e6,
            // A wide-area network where it is slow, a local one where it is fast.
            round_trip: if megabits < 1000.0 { 0.02 } else { 5e-4 },
        }
    }

    /// All tasks of 2^10 to 2^22 items and 1:1000, on links of 10 Mbit/s to 10 Gbit/s.
    fn all() -> impl Iterator<Item = (Task, Link)> {
        let sizes = (10..=22).step_by(2).flat_map(|log| {
            let n = 1 << log;
            [(n, n), (n, n / 1000), (n / 1000, n)]
        });
        sizes.flat_map(|(sender, receiver)| {
            [1e1, 1e2, 1e3, 1e4].into_iter().flat_map(move |megabits| {
                [Security::SemiHonest, Security::Malicious]
                    .map(|security| (task(sender, receiver, security), link(megabits)))
            })
        })
    }

    #[test]
    fn every_candidate_has_the_security_asked_for_and_the_order_is_that_of_the_seconds() {
        for (asked, link) in all() {
            for task in [
                asked,
                Task {
                    search: true,
                    ..asked
                },
                Task {
                    both: true,
                    ..asked
                },
            ] {
                let candidates = candidates(&task, link);
                let none = task.both && task.security == Security::Malicious;
                assert_eq!(candidates.is_empty(), none, "{task:?}");
                assert!(candidates.is_sorted_by(|a, b| a.seconds <= b.seconds));
                for one in &candidates {
                    let malicious = one.protocol.security() == Security::Malicious;
                    assert!(malicious || task.security == Security::SemiHonest);
                    assert!(one.protocol.gives_both() || !task.both);
                    assert!(one.protocol != Protocol::Vole(Form::Low));
                    assert!(one.protocol != Protocol::Kkrt(Variant::KkrtPaper));
                    assert!(one.seconds > 8.0 * one.bytes as f64 / link.bits_per_second);
                }
            }
        }
    }

    /// A faster link never makes a run slower, and more items never make it faster.
    #[test]
    fn the_model_is_monotonic() {
        for (task, link) in all() {
            let faster = Link {
                bits_per_second: 2.0 * link.bits_per_second,
                ..link
            };
            let larger = Task {
                sender_items: 2 * task.sender_items,
                receiver_items: 2 * task.receiver_items,
                ..task
            };
            for protocol in Protocol::CANDIDATES {
                if !protocol.fulfils(&task) {
                    continue;
                }
                let seconds = protocol.seconds(&task, link);
                assert!(protocol.seconds(&task, faster) < seconds);
                let items = larger.sender_items.max(larger.receiver_items);
                if items > protocol.most_items() {
                    continue;
                }
                let more = protocol.seconds(&larger, link);
                assert!(more > 0.999 * seconds, "{protocol} {task:?} {link:?}");
            }
        }
    }

    fn best(sender: u64, receiver: u64, megabits: f64) -> Protocol {
        let task = task(sender, receiver, Security::SemiHonest);
        candidates(&task, link(megabits))[0].protocol
    }

    /// On a slow link the bytes decide, and `vole` sends a fifth of those of KKRT for large sets.
    #[test]
    fn bytes_decide_on_a_slow_link() {
        let vole = Protocol::Vole(Form::Fast);
        for log in [16, 18, 20, 22] {
            let n = 1 << log;
            for megabits in [10.0, 100.0] {
                assert_eq!(best(n, n, megabits), vole, "2^{log}");
            }
            assert_eq!(best(n, n / 1000, 10.0), vole, "2^{log}");
            assert_eq!(best(n / 1000, n, 10.0), vole, "2^{log}");
        }
    }

    /// On every link there is one size of equal sets from which on `vole` is the fastest malicious
    /// protocol; on a slower link it is larger, since `dh` sends less for small sets.
    #[test]
    fn dh_gives_way_to_vole_once() {
        let crossing = |megabits: f64| {
            let is_vole = |log: u32| {
                let task = task(1 << log, 1 << log, Security::Malicious);
                candidates(&task, link(megabits))[0].protocol == Protocol::Vole(Form::Malicious)
            };
            let first = (0..=22).find(|&log| is_vole(log)).expect("in the end");
            assert!((first..=22).all(is_vole), "{megabits}");
            first
        };
        let crossings = [1e1, 1e2, 1e3, 1e4].map(crossing);
        assert!(
            crossings.is_sorted_by(|slow, fast| slow >= fast),
            "{crossings:?}"
        );
        assert!((8..=15).contains(&crossings[0]) && (8..=15).contains(&crossings[3]));
    }

    /// Of two large sets, `vole` has the fewest bytes and KKRT the least work: as the link becomes
    /// faster, the choice changes once, if at all.
    #[test]
    fn kkrt_is_for_fast_links() {
        for (sender, receiver) in [(1 << 16, 1 << 16), (1 << 20, 1 << 20), (1 << 22, 4194)] {
            let is_kkrt = |tenths: i32| {
                let task = task(sender, receiver, Security::SemiHonest);
                let link = Link {
                    bits_per_second: 10_f64.powf(7.0 + f64::from(tenths) / 10.0),
                    round_trip: 5e-4,
                };
                candidates(&task, link)[0].protocol == Protocol::Kkrt(Variant::Kkrt)
            };
            assert!(!is_kkrt(0), "{sender} {receiver}");
            let changes = (0..30).filter(|&tenths| is_kkrt(tenths) != is_kkrt(tenths + 1));
            assert!(changes.count() <= 1, "{sender} {receiver}");
        }
    }

    /// Small sets are matched by `dh`, which has no setup, with either security; where both get the
    /// result, by KKRT, which has the smaller setup.
    #[test]
    fn small_sets() {
        for security in [Security::SemiHonest, Security::Malicious] {
            for megabits in [1e1, 1e2, 1e3, 1e4] {
                for (sender, receiver) in [(1, 1), (64, 64), (1, 100)] {
                    let task = task(sender, receiver, security);
                    let best = candidates(&task, link(megabits))[0];
                    assert_eq!(best.protocol, Protocol::Dh, "{task:?} {megabits}");
                    assert_eq!(best.bytes, 240 + 16 * sender + 32 * receiver);
                }
                let task = task(1 << 15, 1, security);
                let names = candidates(&task, link(megabits));
                assert!(names.iter().all(|one| one.protocol != Protocol::Dh));
            }
        }
        let both = Task {
            both: true,
            ..task(64, 64, Security::SemiHonest)
        };
        let best = candidates(&both, link(10.0))[0].protocol;
        assert_eq!(best, Protocol::Kkrt(Variant::Kkrt));
    }

    /// The bytes of KKRT and of `dh` are exact, those of `vole` have a test of their own.
    #[test]
    fn bytes_are_those_of_a_run() {
        let session = SessionId::from_bytes([1; 32]);
        let rng = |seed: u128| Prg::new(Block::new(seed));
        let items = |n: u32| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        let (x, y) = (items(300), items(77));
        let values = vec![""; x.len()];
        for (both, search) in [(false, false), (true, false), (true, true)] {
            let settings = Settings {
                both,
                ..Settings::default()
            };
            let ((_, stats), _) = run_two_parties_with_stats(
                |channel| {
                    let sender = Sender::setup(session, rng(1), channel).expect("setup");
                    match search {
                        true => sender
                            .answer(&x, &values[..], settings, &mut (), channel)
                            .map(|_| ()),
                        false => sender.intersect(&x, settings, &mut (), channel).map(|_| ()),
                    }
                },
                |channel| {
                    let receiver = Receiver::setup(session, rng(2), channel).expect("setup");
                    match search {
                        true => receiver.search(&y, settings, &mut (), channel).map(|_| ()),
                        false => receiver
                            .intersect(&y, settings, &mut (), channel)
                            .map(|_| ()),
                    }
                },
            );
            let task = Task {
                both,
                search,
                ..task(300, 77, Security::SemiHonest)
            };
            let bytes = stats.bytes_sent + stats.bytes_received;
            assert_eq!(Protocol::Kkrt(Variant::Kkrt).bytes(&task), bytes);
        }
        let ((_, stats), _) = run_two_parties_with_stats(
            |channel| dh::Sender::new(session, rng(1)).intersect(&x, &mut (), channel),
            |channel| dh::Receiver::new(session, rng(2)).intersect(&y, &mut (), channel),
        );
        let bytes = stats.bytes_sent + stats.bytes_received;
        let task = task(300, 77, Security::Malicious);
        assert_eq!(Protocol::Dh.bytes(&task), bytes);
    }

    /// Empty sets cost the setup at most.
    #[test]
    fn empty_sets() {
        for security in [Security::SemiHonest, Security::Malicious] {
            for (sender, receiver) in [(0, 0), (0, 1 << 20), (1 << 20, 0)] {
                let candidates = candidates(&task(sender, receiver, security), Link::default());
                assert!(!candidates.is_empty());
                assert!(candidates.iter().all(|one| one.seconds < 0.1));
            }
        }
    }
}
