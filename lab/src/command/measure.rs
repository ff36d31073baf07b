//! Measures a stream of correlations with the harness, and evaluates its runs at the end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::measurement::{Key, Phase, Sample};
use crate::runner::{Cell, Forecast};
use crate::{Error, Machine, parties};
use volery_field::ExtensionOf as _;
use volery_pcg::{Plan, Protocol};

use super::row::Row;
use super::setting::Setting;
use crate::command::exit::{Failure, Status};
use crate::command::options::pool;
use crate::command::parts::{self, Parts};
use volery_cli::choices::Parameters;
use volery_cli::driver::{self, Outcome, Step};
use volery_cli::negotiation::{Agreed, Request};
use volery_cli::party::{Correlation, Party};

/// The measurement, and its evaluation.
pub(super) struct Measured {
    pub(super) cell: Cell,
    pub(super) after: After,
}

/// The runs of a cell, kept for evaluation at the end.
pub(super) struct After {
    setting: Setting,
    runs: Arc<Runs>,
    parts: fn(&parts::Run<'_>) -> Result<Option<Parts>, Failure>,
}

/// The data that the runs of a cell leave.
#[derive(Default)]
struct Runs {
    /// The outcomes of the sender and the receiver, one pair per run, with the agreed plan.
    outcomes: Mutex<Vec<([Outcome; 2], Agreed)>>,
    /// The error of the failed run.
    failure: Mutex<Option<Failure>>,
}

/// Also after a panic in another thread: the data is valid at every moment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl After {
    /// The error of the failed run, if one failed.
    pub(super) fn failure(&self) -> Result<(), Failure> {
        lock(&self.runs.failure).take().map_or(Ok(()), Err)
    }

    /// The protocol of the last run, by its name; `None` if there was no run.
    pub(super) fn chosen(&self) -> Option<String> {
        let runs = lock(&self.runs.outcomes);
        Some(runs.last()?.1.plan.name())
    }

    /// The run of the median time among those that count, and its parts measured alone. For an even
    /// number of runs, it is the faster of the two middle ones.
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

/// A stream including setup, then its parts alone. The correlations are discarded, but those of the
/// last step are checked.
pub(super) fn stream<K: Correlation + 'static>(setting: &Setting) -> Result<Measured, Failure> {
    // With a protocol given by name, the link is given too.
    let link = match setting.choices.protocol {
        Protocol::Auto => None,
        _ => Some(setting.link.for_plan()),
    };
    let order = Request::new(&setting.choices, K::KIND, setting.n, link)?;
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
        // No run is too long, and nothing is predicted.
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

/// The key has the protocol of the plan, and the set or parameters where they were requested.
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
fn once<K: Correlation>(
    setting: &Setting,
    order: &Request,
) -> Result<([Outcome; 2], Agreed), Failure> {
    let n = setting.n;
    let pools = [pool(setting.threads)?, pool(setting.threads)?];
    let progress = setting.common.reporter().progress(n);
    let (mut sent, mut received) = (Last::<K::Sender>::new(n), Last::<K::Receiver>::new(n));
    let run = driver::run_both::<K>(
        order,
        parties::channels(&setting.link, setting.common.timeout())?,
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

/// The setup lasts until the slower party has finished it, the stream from then until the slower
/// party, possibly the other, has finished it.
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
struct Last<E: Party> {
    left: u64,
    key: Option<E::Ring>,
    step: Option<Step<E>>,
}

impl<E: Party> Last<E> {
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
        return Err(Failure::new(
            Status::Other,
            "a party ended before its last step",
        ));
    };
    let holds = match (sent.key, received.key) {
        (Some(key), _) => K::Receiver::open(&r.u, r.count, |u| {
            K::Ring::axpy_base(&mut r.column, key, u);
            *r.column == *s.column
        }),
        (None, key) => K::Sender::open(&s.u, s.count, |u| {
            K::Ring::axpy_base(&mut s.column, key.unwrap_or_default(), u);
            *s.column == *r.column
        }),
    };
    if holds {
        return Ok(());
    }
    let what = format_args!("{} does not hold for the last outputs", K::RELATION);
    Err(Failure::new(Status::Other, what))
}
