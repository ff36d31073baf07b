//! One run of one protocol over one link, in the phases that the tables are made of.
//!
//! ```text
//! first        setup, and the first main round up to its first outputs
//! first-rest   the rest of that round, until both parties have it; no table shows it
//! begin        the next main round up to its first outputs
//! rest         the rest of that round
//! stream       the main rounds after it, as many as n takes; begin, rest and stream are drawn without a pause
//! ```
//!
//! The one-time setup is what `first` took more than `begin`. What Tables 1 and 3 show is `begin`, `rest` and `stream`
//! together. Of a checked round, all messages, all trees and the check are in `begin`, with the outputs that the round keeps
//! for the next, and nothing else: that is what Table 5 takes apart. A protocol without LPN has no rounds: its setup is
//! `first`, all else is `stream`.

use std::time::Duration;

use volery_bench::measurement::{Sample, Term};
use volery_bench::parties::{Mark, Watch, meet, run_in_pools};
use volery_bench::{Link, Result};
use volery_channel::Channel;
use volery_pcg::lpn::LpnSet;
use volery_pcg::{Plan, Security};

use super::candidate::Candidate;
use super::ends::{End, ReceiverEnd, SenderEnd, check};
use crate::experiment::{fresh_prg, fresh_session};

const FIRST: &str = "first";
const FIRST_REST: &str = "first-rest";
const BEGIN: &str = "begin";
const REST: &str = "rest";
const STREAM: &str = "stream";

/// The first outputs of a round: few.
const FEW: u64 = 1 << 10;

/// What to run.
pub(super) struct Run {
    pub(super) candidate: Candidate,
    /// The candidate's plan; none where there is no LPN.
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
                    SenderEnd::setup(candidate, plan, session, rng, channel)
                })
            },
            |channel| {
                let rng = fresh_prg()?;
                self.party(channel, |channel| {
                    ReceiverEnd::setup(candidate, plan, session, rng, channel)
                })
            },
        )?;
        check(sender.1, receiver.1)?;
        Ok(Sample::of([sender.0, receiver.0]))
    }

    /// One party, from the setup to the end of the stream.
    fn party<E: End>(
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

/// A run in the parts that the tables tell apart; times are the slower party's, bytes go both ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parts {
    /// The one-time setup: its phase, and of that the first main round, which takes as long as the
    /// next.
    pub(super) setup_seconds: Term,
    pub(super) setup_bytes: u64,
    /// The stream.
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) cots: u64,
    /// One main round, in parts; none where it is not checked.
    pub(super) round: Option<Round>,
}

/// A main round of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    /// The part with messages, and of that the encoding of what is kept for the next round.
    pub(super) trees_seconds: Term,
    /// The encoding of all outputs.
    pub(super) lpn_seconds: f64,
    /// Correlated OTs handed out.
    pub(super) cots: u64,
}

impl Parts {
    /// Of a sample; `checked` is the set of its main rounds, if they are checked. None if the sample has other phases.
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
                // As long for an output that is kept as for one that is handed out.
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
    (plan.security() == Security::Malicious).then(|| plan.ladder().last().copied())?
}

#[cfg(test)]
mod tests {
    use volery_bench::measurement::Phase;
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
        // The rest is half of what the set makes: all of it would have taken twice as long.
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
