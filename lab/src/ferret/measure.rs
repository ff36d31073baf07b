//! One run of one protocol over one link, in the phases that the tables use.
//!
//! ```text
//! first        setup, and the first main round up to its first outputs
//! first-rest   the rest of that round, until both parties have it; no table shows it
//! begin        the next main round up to its first outputs
//! rest         the rest of that round
//! stream       the main rounds after it, as many as n takes; no pause between begin, rest and stream
//! ```
//!
//! The one-time setup is the time of `first` minus that of `begin`. Tables 1 and 3 show `begin`,
//! `rest` and `stream` together. `begin` contains exactly the messages, trees and check of a
//! checked round, and the outputs that the round keeps for the next: Table 5 splits it into these
//! parts. A protocol without LPN has no rounds: its setup is `first`, the rest is `stream`.

use std::time::Duration;

use crate::measurement::{Sample, Term};
use crate::parties::{Mark, Watch, meet, run_in_pools};
use crate::{Link, Result};
use volery_channel::Channel;
use volery_pcg::lpn::LpnSet;
use volery_pcg::{Plan, Security};

use super::candidate::Candidate;
use super::party::{Party, ReceiverParty, SenderParty, check};
use crate::experiment::{fresh_prg, fresh_session};

const FIRST: &str = "first";
const FIRST_REST: &str = "first-rest";
const BEGIN: &str = "begin";
const REST: &str = "rest";
const STREAM: &str = "stream";

/// The first outputs of a round: few.
const FEW: u64 = 1 << 10;

/// The protocol and settings to run.
pub(super) struct Run {
    pub(super) candidate: Candidate,
    /// The candidate's plan; `None` without LPN.
    pub(super) plan: Option<Plan>,
    /// Correlated OTs to make, at least: whole rounds where there are rounds.
    pub(super) n: u64,
    pub(super) link: Link,
    pub(super) threads: usize,
    pub(super) timeout: Duration,
}

impl Run {
    /// Runs both parties and checks their last outputs.
    ///
    /// # Errors
    /// Those of the parties; if the outputs are not correlated.
    pub(super) fn once(&self) -> Result<Sample> {
        let session = fresh_session()?;
        let (candidate, plan) = (self.candidate, self.plan.as_ref());
        let (sender, receiver) = run_in_pools(
            &self.link,
            self.threads,
            self.timeout,
            |channel| {
                let rng = fresh_prg()?;
                self.party(channel, |channel| {
                    SenderParty::setup(candidate, plan, session, rng, channel)
                })
            },
            |channel| {
                let rng = fresh_prg()?;
                self.party(channel, |channel| {
                    ReceiverParty::setup(candidate, plan, session, rng, channel)
                })
            },
        )?;
        check(sender.1, receiver.1)?;
        Ok(Sample::of([sender.0, receiver.0]))
    }

    /// One party, from the setup to the end of the stream.
    fn party<E: Party>(
        &self,
        channel: &mut Channel,
        setup: impl FnOnce(&mut Channel) -> volery_ot::Result<E>,
    ) -> Result<(Vec<Mark>, E::Last)> {
        let few = if self.plan.is_some() { FEW } else { 0 };
        let mut watch = Watch::start(channel)?;
        let mut end = setup(channel)?;
        end.draw_all(few, channel)?;
        watch.mark(FIRST, few, channel);
        let rest = match &self.plan {
            Some(_) => end.prepare(channel)? as u64,
            None => 0,
        };
        end.draw_all(rest, channel)?;
        meet(channel)?;
        watch.mark(FIRST_REST, rest, channel);
        let mut left = self.n;
        if self.plan.is_some() {
            end.draw_all(few, channel)?;
            watch.mark(BEGIN, few, channel);
            end.draw_all(rest, channel)?;
            watch.mark(REST, rest, channel);
            let round = few + rest;
            left = self.n.next_multiple_of(round) - round;
        }
        end.draw_all(left, channel)?;
        watch.mark(STREAM, left, channel);
        let marks = watch.stop(channel)?;
        Ok((marks, end.last()))
    }
}

/// A run in the parts that the tables distinguish; times are the slower party's, bytes are of both
/// directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parts {
    /// The one-time setup: its phase, and the first main round contained in it, which takes as long
    /// as the next.
    pub(super) setup_seconds: Term,
    pub(super) setup_bytes: u64,
    /// The stream.
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) cots: u64,
    /// One main round, in parts; `None` where it is not checked.
    pub(super) round: Option<Round>,
}

/// A main round of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    /// The part with messages, and the encoding, contained in it, of the outputs kept for the next
    /// round.
    pub(super) trees_seconds: Term,
    /// The encoding of all outputs.
    pub(super) lpn_seconds: f64,
    /// Correlated OTs handed out.
    pub(super) cots: u64,
}

impl Parts {
    /// The parts of a sample; `checked` is the set of its main rounds, if they are checked. `None`
    /// if the sample has other phases.
    pub(super) fn of(sample: &Sample, checked: Option<&LpnSet>) -> Option<Self> {
        let (first, stream) = (sample.phase(FIRST)?, sample.phase(STREAM)?);
        let mut parts = Self {
            setup_seconds: Term::measured(first.seconds),
            setup_bytes: first.bytes,
            seconds: stream.seconds,
            bytes: stream.bytes,
            cots: stream.outputs,
            round: None,
        };
        if let (Some(begin), Some(rest)) = (sample.phase(BEGIN), sample.phase(REST)) {
            parts.setup_seconds.less = begin.seconds;
            parts.setup_bytes = first.bytes.saturating_sub(begin.bytes);
            parts.seconds += begin.seconds + rest.seconds;
            parts.bytes += begin.bytes + rest.bytes;
            parts.cots += begin.outputs + rest.outputs;
            parts.round = checked.filter(|_| rest.outputs > 0).map(|set| {
                // An output that is kept takes as long as one that is handed out.
                let lpn_seconds = rest.seconds * set.n as f64 / rest.outputs as f64;
                Round {
                    trees_seconds: Term {
                        whole: begin.seconds,
                        less: lpn_seconds - rest.seconds,
                    },
                    lpn_seconds,
                    cots: begin.outputs + rest.outputs,
                }
            });
        }
        (parts.cots > 0).then_some(parts)
    }
}

/// The set of a plan's main rounds, if they are checked.
pub(super) fn checked_set(plan: &Plan) -> Option<&'static LpnSet> {
    (plan.security() == Security::Malicious).then(|| plan.schedule().last().copied())?
}

#[cfg(test)]
mod tests {
    use crate::measurement::Phase;
    use volery_pcg::lpn::set_named;

    use super::*;

    fn sample(phases: &[(&str, u64, f64, u64)]) -> Sample {
        let phase = |&(name, outputs, seconds, bytes): &(&str, _, _, _)| Phase {
            name: name.to_owned(),
            outputs,
            seconds,
            bytes,
            messages: 1,
        };
        Sample {
            phases: phases.iter().map(phase).collect(),
            ..Sample::default()
        }
    }

    #[test]
    fn a_stream_in_parts() {
        let set = set_named("ferret-reg").expect("there is one");
        let n = set.n as u64;
        let sample = sample(&[
            (FIRST, 10, 5.0, 900),
            (FIRST_REST, n - 10, 100.0, 100),
            (BEGIN, 10, 2.0, 300),
            (REST, n / 2, 1.0, 0),
            (STREAM, 1000, 4.0, 300),
        ]);
        let parts = Parts::of(&sample, Some(set)).expect("all phases are there");
        let round = parts.round.expect("it is checked");
        let twice = |value: f64| (2.0 * value).round() / 2.0;
        let setup = Term {
            whole: 5.0,
            less: 2.0,
        };
        assert_eq!((parts.setup_seconds, parts.setup_bytes), (setup, 600));
        assert_eq!((parts.seconds, parts.bytes), (7.0, 600));
        assert_eq!((parts.cots, round.cots), (n / 2 + 1010, n / 2 + 10));
        // The rest is half of the set's outputs: all of it would have taken twice as long.
        assert_eq!(
            [
                round.lpn_seconds,
                round.trees_seconds.whole,
                round.trees_seconds.less
            ]
            .map(twice),
            [2.0, 2.0, 1.0]
        );
        assert_eq!(
            Parts::of(&sample, None).map(|parts| parts.round),
            Some(None)
        );
    }

    #[test]
    fn without_rounds_there_are_two_parts() {
        let extension = [
            (FIRST, 0, 0.5, 70),
            (FIRST_REST, 0, 9.0, 2),
            (STREAM, 100, 2.0, 1600),
        ];
        let parts = Parts::of(&sample(&extension), None).expect("all phases are there");
        let setup = Term::measured(0.5);
        assert_eq!((parts.setup_seconds, parts.setup_bytes), (setup, 70));
        assert_eq!((parts.seconds, parts.bytes, parts.cots), (2.0, 1600, 100));
    }

    #[test]
    fn other_phases_are_no_parts() {
        assert_eq!(Parts::of(&sample(&[("online", 3, 1.0, 1)]), None), None);
        let nothing = [(FIRST, 0, 1.0, 1), (STREAM, 0, 1.0, 1)];
        assert_eq!(Parts::of(&sample(&nothing), None), None);
    }
}
