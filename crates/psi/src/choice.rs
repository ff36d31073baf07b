//! The choice of a protocol: one function for rows, totals and shares, with workers or without.
//!
//! The model is
//!
//! ```text
//! seconds = bytes / rate + round trips * round-trip time + fixed work
//!           + work for each item of either set, of the slower party
//! ```
//!
//! with bytes from the parameters of the protocol for these sizes, and the rest from
//! [`Matching::cost`](crate::matching::Matching::cost). It is precise enough to choose: transfer
//! and work overlap in a run, which favours no protocol. Both parties must use the same numbers,
//! because the choice follows from them.
//!
//! A peer that lies about its size or the link can make the parties run another one of the
//! candidates, no other protocol: all candidates have the security asked for. The protocols
//! themselves commit to the sizes, so a caller who compares them notices a false one.
//!
//! Never chosen, and so only by name: [`Form::Low`](crate::vole::Form::Low), whose correlations
//! have a code of estimated distance, and [`Variant::KkrtPaper`](crate::Variant::KkrtPaper), which
//! is for reproduction.
//!
//! The constants of the protocols are for one thread a party: medians on the machine of
//! docs/performance.md, on which nothing else ran. A line through equal and uneven sizes is off by
//! up to a quarter at either. To measure them again:
//!
//! ```sh
//! for sizes in 4 20 20:10 10:20; do
//!   cargo run --release -p volery-psi --example pair -- $sizes 9 1 \
//!     kkrt fast malicious low-communication
//! done
//! for sizes in 2 10 12 12:8 8:12; do
//!   cargo run --release -p volery-psi --example pair -- $sizes 9 1 dh
//! done
//! for sizes in 4 18 18:12 12:18; do
//!   cargo run --release -p volery-psi --example pair -- $sizes 5 1 circuit
//! done
//! for sizes in 4 10 14 12:8 8:12; do
//!   cargo run --release -p volery-psi --example pair -- $sizes 5 1 count
//! done
//! ```
//!
//! The least sizes give the fixed work; equal ones the sum of the two times an item, the uneven
//! sizes their ratio. The round trips are those of runs over `volery_channel::shaped` with a round
//! trip of one second, until the sender's end; of circuit-PSI with 2^4, 2^18 and 2^20 items, where
//! the setup of small sets takes eight fewer.

use volery_channel::Link;

use crate::matching::{Output, PROTOCOLS, Protocol, Task, named};

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

impl Candidate {
    /// The cost of a protocol for a task on a link.
    ///
    /// # Panics
    /// If it does not give the output, or a set is too large for it.
    pub fn new(protocol: Protocol, task: &Task, link: Link) -> Self {
        let cost = protocol.cost(task);
        Self { protocol, seconds: cost.seconds(link), bytes: cost.bytes }
    }
}

/// The protocols that are compared for a task, whatever its sizes: each name once, in the form with
/// the security asked for.
fn compared(task: &Task) -> impl Iterator<Item = Protocol> {
    let Task { security, output, .. } = *task;
    PROTOCOLS
        .into_iter()
        .filter(move |one| one.is_candidate() && named(one.name(), security, &output) == Some(*one))
}

/// The protocols that fulfil a task, the fastest on this link first; none where the sender is to
/// learn the result with malicious security.
///
/// # Panics
/// If a set is larger than [`MAX_ITEMS`](crate::params::MAX_ITEMS).
pub fn candidates(task: &Task, link: Link) -> Vec<Candidate> {
    let all = compared(task).filter(|protocol| protocol.fulfils(task));
    let mut candidates: Vec<_> = all.map(|protocol| Candidate::new(protocol, task, link)).collect();
    candidates.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    candidates
}

/// The protocols that were compared, and for what.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The sizes of one execution.
    pub task: Task,
    /// The link.
    pub link: Link,
    /// The fastest first.
    pub candidates: Vec<Candidate>,
}

impl Choice {
    /// The protocols for a task on a link. Panics as [`candidates`] does.
    pub fn new(task: Task, link: Link) -> Self {
        Self { candidates: candidates(&task, link), task, link }
    }

    /// The fastest.
    #[must_use]
    pub fn best(&self) -> Option<&Candidate> {
        self.candidates.first()
    }

    /// One line for users, to whom items are keys: sizes and link, the predicted times of the
    /// fastest and of the next two.
    pub fn why(&self) -> String {
        let Task { sender_items, receiver_items, security, output, .. } = self.task;
        let Link { bits_per_second, round_trip } = self.link;
        let what = match output {
            Output::Items { .. } => "",
            Output::Totals(_) => "a count of ",
        };
        let seconds = |one: &Candidate| format!("{} {:.3} s", one.protocol, one.seconds);
        let mut all = self.candidates.iter().map(seconds);
        let first = all.next().unwrap_or_default();
        let next: Vec<_> = all.take(2).collect();
        let next = match next[..] {
            [] => String::new(),
            _ => format!(", before {}", next.join(", ")),
        };
        format!(
            "{security}, {what}{sender_items} and {receiver_items} keys, fastest at {:.1} Mbit/s \
             and {:.2} ms: {first}{next} (predicted)",
            bits_per_second / 1e6,
            round_trip * 1e3
        )
    }
}

/// The protocol of a run: that of this name, or without a name the fastest one for the task.
///
/// `link` describes the link. It is called only if there is anything to compare: where all sizes
/// have one protocol, that is it, without a [`Choice`].
///
/// # Errors
/// The errors of `link`.
///
/// # Panics
/// If no protocol of this name, or none at all, gives the output with this security.
pub fn decide<E>(
    name: Option<&str>,
    task: &Task,
    link: impl FnOnce() -> Result<Link, E>,
) -> Result<(Protocol, Option<Choice>), E> {
    const CHECKED: &str = "a protocol gives the output with this security";
    if let Some(name) = name {
        let protocol = named(name, task.security, &task.output);
        return Ok((protocol.expect(CHECKED), None));
    }
    let mut all = compared(task).filter(|one| one.is_for_workers() || !task.with_workers);
    if let (Some(only), None) = (all.next(), all.next()) {
        return Ok((only, None));
    }
    let choice = Choice::new(*task, link()?);
    let best = choice.best().expect(CHECKED);
    Ok((best.protocol, Some(choice)))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use volery_channel::Role;
    use volery_pcg::Security;

    use super::*;
    use crate::circuit::{self, Circuit};
    use crate::count::Count;
    use crate::dh::Dh;
    use crate::kkrt::Kkrt;
    use crate::matching::Totals;
    use crate::params::Variant;
    use crate::vole::{Form, Vole};

    const MALICIOUS: Protocol = &Vole(Form::Malicious);
    const FAST: Protocol = &Vole(Form::Fast);
    const KKRT: Protocol = &Kkrt(Variant::Kkrt);
    const CIRCUIT: Protocol = &Circuit(Form::Fast);

    const ROWS: Output = items(false, false);

    const fn items(both: bool, search: bool) -> Output {
        Output::Items { both, search }
    }

    /// The number of common items for this party, and for nobody else.
    fn count(counts: Option<Role>) -> Output {
        Output::Totals(Totals {
            settings: circuit::Settings { weights: 1, ..circuit::Settings::default() },
            comparisons: 0,
            in_bins: Role::Receiver,
            counts,
        })
    }

    fn task(sender_items: u64, receiver_items: u64, security: Security, output: Output) -> Task {
        Task { sender_items, receiver_items, security, output, with_workers: false }
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
        let outputs =
            [ROWS, items(false, true), items(true, false), count(Some(Role::Sender)), count(None)];
        sizes.flat_map(move |(sender, receiver)| {
            [1e1, 1e2, 1e3, 1e4].into_iter().flat_map(move |megabits| {
                [Security::SemiHonest, Security::Malicious].into_iter().flat_map(move |security| {
                    outputs.map(|output| (task(sender, receiver, security, output), link(megabits)))
                })
            })
        })
    }

    #[test]
    fn every_candidate_has_the_security_asked_for_and_the_order_is_that_of_the_seconds() {
        for (task, link) in all() {
            let candidates = candidates(&task, link);
            let malicious = task.security == Security::Malicious;
            let none = malicious && !matches!(task.output, Output::Items { both: false, .. });
            assert_eq!(candidates.is_empty(), none, "{task:?}");
            assert!(candidates.is_sorted_by(|a, b| a.seconds <= b.seconds));
            for one in &candidates {
                assert!(!malicious || one.protocol.security() == Security::Malicious);
                assert!(one.protocol.gives(&task.output));
                assert!(!["vole-low", "kkrt-paper", "circuit-low"].contains(&one.protocol.name()));
                assert!(one.seconds > 8.0 * one.bytes as f64 / link.bits_per_second);
                let same =
                    candidates.iter().filter(|other| other.protocol.name() == one.protocol.name());
                assert_eq!(same.count(), 1);
            }
        }
    }

    /// A faster link never makes a run slower, and more items, columns or comparisons never make it
    /// faster.
    #[test]
    fn the_model_is_monotonic() {
        for (task, link) in all() {
            let faster = Link { bits_per_second: 2.0 * link.bits_per_second, ..link };
            let [sender_items, receiver_items] =
                [task.sender_items, task.receiver_items].map(|items| 2 * items);
            let larger = Task { sender_items, receiver_items, ..task };
            let mut richer = task;
            if let Output::Totals(totals) = &mut richer.output {
                let Totals { settings, comparisons, .. } = totals;
                (*comparisons, settings.payload) = (1, 1);
                (settings.selections, settings.products) = (2, 1);
            }
            for protocol in PROTOCOLS.into_iter().filter(|protocol| protocol.fulfils(&task)) {
                let seconds = |task: &Task, link| Candidate::new(protocol, task, link).seconds;
                let one = seconds(&task, link);
                assert!(seconds(&task, faster) < one, "{protocol} {task:?} {link:?}");
                assert!(protocol != CIRCUIT || seconds(&richer, link) > one, "{task:?} {link:?}");
                let less = protocol.fulfils(&larger) && seconds(&larger, link) <= 0.999 * one;
                assert!(!less, "{protocol} {task:?} {link:?}");
            }
        }
    }

    /// Small sets are matched by `dh`, which has no setup, with either security; where both get the
    /// result, by KKRT, which has the smaller setup.
    #[test]
    fn small_sets() {
        for security in [Security::SemiHonest, Security::Malicious] {
            for megabits in [1e1, 1e2, 1e3, 1e4] {
                for (sender, receiver) in [(1, 1), (64, 64), (1, 100)] {
                    let task = task(sender, receiver, security, ROWS);
                    let best = candidates(&task, link(megabits))[0];
                    assert_eq!(best.protocol, &Dh as Protocol, "{task:?} {megabits}");
                    assert_eq!(best.bytes, 240 + 16 * sender + 32 * receiver);
                }
                let task = task(1 << 15, 1, security, ROWS);
                let names = candidates(&task, link(megabits));
                assert!(names.iter().all(|one| one.protocol.name() != "dh"));
            }
        }
        let both = task(64, 64, Security::SemiHonest, items(true, false));
        assert_eq!(candidates(&both, link(10.0))[0].protocol, KKRT);
    }

    /// Where one protocol is left for all sizes, nobody is asked for the link.
    #[test]
    fn a_link_is_asked_for_where_there_is_a_choice() {
        let semi_honest = |output| task(64, 64, Security::SemiHonest, output);
        let with_workers = |task| Task { with_workers: true, ..task };
        for (task, compares, expected) in [
            (semi_honest(ROWS), true, &Dh as Protocol),
            (semi_honest(items(true, false)), true, KKRT),
            (task(1 << 20, 1, Security::Malicious, ROWS), true, MALICIOUS),
            (semi_honest(count(Some(Role::Sender))), true, &Count),
            (semi_honest(count(None)), false, CIRCUIT),
            (with_workers(semi_honest(ROWS)), false, FAST),
            (with_workers(task(64, 64, Security::Malicious, items(false, true))), false, MALICIOUS),
            (with_workers(semi_honest(count(Some(Role::Sender)))), false, CIRCUIT),
        ] {
            let mut asked = false;
            let decided = decide(None, &task, || {
                asked = true;
                Ok::<_, Infallible>(link(1e3))
            });
            let (protocol, choice) = decided.unwrap();
            assert_eq!(protocol, expected, "{task:?}");
            assert_eq!((asked, choice.is_some()), (compares, compares), "{task:?}");
            let name = Some(protocol.name());
            let (again, choice) =
                decide(name, &task, || -> Result<_, Infallible> { unreachable!() }).unwrap();
            assert_eq!(again, protocol);
            assert!(choice.is_none());
        }
    }

    /// Each protocol by its name: one form for each security, and none that is not secure enough.
    #[test]
    fn names() {
        for protocol in PROTOCOLS {
            let output = match protocol.gives(&ROWS) {
                true => ROWS,
                false => count(Some(Role::Sender)),
            };
            let by_name = |security| named(protocol.name(), security, &output);
            let malicious = by_name(Security::Malicious);
            assert!(malicious.is_none_or(|one| one.security() == Security::Malicious));
            let own = by_name(protocol.security());
            assert_eq!(own, Some(protocol));
        }
        assert_eq!(named("vole", Security::SemiHonest, &ROWS), Some(FAST));
        assert_eq!(named("vole", Security::Malicious, &ROWS), Some(MALICIOUS));
        assert_eq!(named("dh", Security::SemiHonest, &ROWS), Some(&Dh as Protocol));
        assert_eq!(named("kkrt", Security::Malicious, &ROWS), None);
        assert_eq!(named("vole", Security::Malicious, &items(true, false)), None);
        assert_eq!(named("ecdh", Security::SemiHonest, &ROWS), None);
    }
}
