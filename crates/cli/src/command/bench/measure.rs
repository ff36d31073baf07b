//! A stream of correlations as the harness measures it, and what is made of its runs when all are done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use volery_bench::measurement::{Key, Phase, Sample};
use volery_bench::runner::{Cell, Forecast};
use volery_bench::{Error, Machine};
use volery_pcg::{Plan, Protocol};

use super::row::Row;
use super::setting::Setting;
use crate::command::choices::Parameters;
use crate::command::options::pool;
use crate::command::parts::{self, Parts};
use crate::command::verify::Findings;
use crate::deal::{Deal, Order};
use crate::ends::{Correlation, End};
use crate::exit::{Failure, Status};
use crate::party::{self, Outcome, Step};

/// What is measured, and what comes after.
pub(super) struct Measured {
    pub(super) cell: Cell,
    pub(super) after: After,
}

/// What the runs of a cell were, to be looked at when they are over.
pub(super) struct After {
    setting: Setting,
    runs: Arc<Runs>,
    parts: fn(&parts::Run<'_>) -> Result<Option<Parts>, Failure>,
}

/// What the runs of a cell leave behind.
#[derive(Default)]
struct Runs {
    /// Of the sender and the receiver, a pair a run, with what was made.
    outcomes: Mutex<Vec<([Outcome; 2], Deal)>>,
    /// Of the run that failed.
    failure: Mutex<Option<Failure>>,
}

/// Also after a panic elsewhere: what is behind it is valid at every moment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl After {
    /// The run that failed, if one did.
    pub(super) fn failure(&self) -> Result<(), Failure> {
        lock(&self.runs.failure).take().map_or(Ok(()), Err)
    }

    /// The protocol of the last run, by its name; none if there was no run.
    pub(super) fn chosen(&self) -> Option<String> {
        let runs = lock(&self.runs.outcomes);
        Some(runs.last()?.1.plan.name())
    }

    /// The run of the median time among those that count, and the parts of it measured alone. Of an
    /// even number of runs, the two in the middle are equally near to the median: it is the faster.
    pub(super) fn row(self, machine: &Machine, counted: &[Sample]) -> Result<Row, Failure> {
        let Setting {
            n, link, common, ..
        } = &self.setting;
        let mut runs = lock(&self.runs.outcomes).clone();
        runs.retain(|(outcomes, _)| {
            let phases = sample(*n, *outcomes).phases;
            counted.iter().any(|sample| sample.phases == phases)
        });
        runs.sort_by_key(|(outcomes, _)| outcomes[0].total().max(outcomes[1].total()));
        let (outcomes, deal) = runs.swap_remove((runs.len() - 1) / 2);
        let parts = (self.parts)(&parts::Run {
            plan: &deal.plan,
            n: *n,
            link,
            timeout: common.timeout(),
            machine,
            outcomes,
        })?;
        Ok(Row::new(&self.setting, machine, &deal, outcomes, parts))
    }
}

/// A stream from nothing, then its parts alone. The correlations are thrown away as they come, but the last step's are
/// checked.
pub(super) fn stream<K: Correlation + 'static>(setting: &Setting) -> Result<Measured, Failure> {
    // Whoever asks for a protocol by its name knows the link.
    let link = match setting.choices.protocol {
        Protocol::Auto => None,
        _ => Some(setting.link.for_plan()),
    };
    let order = Order::new(&setting.choices, K::KIND, setting.n, link)?;
    let runs = Arc::new(Runs::default());
    let run = {
        let (setting, order, runs) = (setting.clone(), order.clone(), Arc::clone(&runs));
        move || match once::<K>(&setting, &order) {
            Ok(run) => {
                let sample = sample(setting.n, run.0);
                lock(&runs.outcomes).push(run);
                Ok(sample)
            }
            Err(failure) => {
                let told = Error::protocol(&failure);
                *lock(&runs.failure) = Some(failure);
                Err(told)
            }
        }
    };
    let cell = Cell {
        key: key(setting, order.sample()),
        plan: order.plan().map(Plan::describe),
        security_bits: Some(order.sample().claimed_bits()),
        // Nothing is too long, and nothing is foretold.
        forecast: Forecast {
            seconds: 0.0,
            bytes: 0.0,
            round_trips: 0.0,
            work: 1.0,
        },
        run: Box::new(run),
    };
    let after = After {
        setting: setting.clone(),
        runs,
        parts: parts::measure::<K>,
    };
    Ok(Measured { cell, after })
}

/// The protocol is what the plan has of it, and the set or parameters where they are asked for.
fn key(setting: &Setting, plan: &Plan) -> Key {
    let mut words = vec![
        setting.name.to_owned(),
        plan.security().to_string(),
        plan.noise().to_string(),
    ];
    words.extend(setting.choices.set.clone());
    let parameters = setting.choices.parameters;
    if parameters != Parameters::Default {
        words.push(parameters.to_string());
    }
    let protocol = setting.choices.protocol;
    if protocol != Protocol::Auto {
        words.push(protocol.to_string());
    }
    Key {
        protocol: words.join("-"),
        n: setting.n,
        link: setting.link.clone(),
        threads: setting.threads,
    }
}

/// Runs both parties once.
fn once<K: Correlation>(setting: &Setting, order: &Order) -> Result<([Outcome; 2], Deal), Failure> {
    let n = setting.n;
    let pools = [pool(setting.threads)?, pool(setting.threads)?];
    let progress = setting.common.voice().progress(n);
    let (mut sent, mut received) = (Last::<K::Sender>::new(n), Last::<K::Receiver>::new(n));
    let run = party::run_both::<K>(
        order,
        &setting.link,
        setting.common.timeout(),
        &pools,
        &progress,
        |key, step| sent.look(key, step),
        |key, step| received.look(key, step),
    );
    progress.finish_and_clear();
    let run = run?;
    check_last::<K>(sent, received)?;
    Ok(run)
}

/// The setup lasts until the slower party has it, the stream from there until the slower party, perhaps the other, has it.
fn sample(n: u64, outcomes: [Outcome; 2]) -> Sample {
    let slower = |of: fn(&Outcome) -> f64| of(&outcomes[0]).max(of(&outcomes[1]));
    let sum = |of: fn(&Outcome) -> u64| of(&outcomes[0]) + of(&outcomes[1]);
    let setup = slower(|outcome| outcome.setup.as_secs_f64());
    let total = slower(|outcome| outcome.total().as_secs_f64());
    let setup_bytes = sum(|outcome| outcome.setup_traffic.bytes_sent);
    let setup_messages = sum(|outcome| outcome.setup_traffic.messages_sent);
    let phases = vec![
        Phase {
            name: "setup".to_owned(),
            outputs: 0,
            seconds: setup,
            bytes: setup_bytes,
            messages: setup_messages,
        },
        Phase {
            name: "stream".to_owned(),
            outputs: n,
            seconds: total - setup,
            bytes: sum(|outcome| outcome.traffic.bytes_sent) - setup_bytes,
            messages: sum(|outcome| outcome.traffic.messages_sent) - setup_messages,
        },
    ];
    Sample {
        phases,
        ..Sample::default()
    }
}

/// The last step of a party.
struct Last<E: End> {
    left: u64,
    key: Option<E::Ring>,
    step: Option<Step<E>>,
}

impl<E: End> Last<E> {
    fn new(n: u64) -> Self {
        Self {
            left: n,
            key: None,
            step: None,
        }
    }

    fn look(&mut self, key: Option<E::Ring>, step: &Step<E>) {
        self.left -= step.count as u64;
        if self.left == 0 {
            self.key = key;
            self.step = Some(step.clone());
        }
    }
}

/// Checks that the last steps of both parties are correlated.
fn check_last<K: Correlation>(
    sent: Last<K::Sender>,
    received: Last<K::Receiver>,
) -> Result<(), Failure> {
    let (Some(mut s), Some(mut r)) = (sent.step, received.step) else {
        return Err(Failure::new(Status::Other, "a party ended too early"));
    };
    let mut findings = Findings::default();
    match (sent.key, received.key) {
        (Some(key), _) => K::Receiver::open(&r.u, r.count, |u| {
            findings.check(key, u, &mut r.column, &s.column);
        }),
        (None, key) => K::Sender::open(&s.u, s.count, |u| {
            findings.check(key.unwrap_or_default(), u, &mut s.column, &r.column);
        }),
    }
    findings.verdict(K::RELATION)
}
