//! VOLE-PSI as one of the protocols for matching.

use volery_channel::{Channel, Role};
use volery_pcg::Security;

use super::{Form, Parameters, Receiver, Sender, Settings};
use crate::error::Result;
use crate::failure::Failure;
use crate::matching::{
    self, Call, Cost, Matching, Outcome, Output, PEER_DEVIATES, PEER_FOLLOWS, Party, Task,
};
use crate::watch::Watch;

/// VOLE-PSI in one of its forms.
#[derive(Clone, Copy, Debug)]
pub struct Vole(pub Form);

impl Vole {
    fn parameters(self, task: &Task, parts: u64) -> Parameters {
        let Output::Items { both, search } = task.output else {
            panic!("VOLE-PSI gives no totals");
        };
        let (sender, receiver) = (task.sender_items, task.receiver_items);
        Parameters::one_of(parts, self.0, both && !search, sender, receiver)
    }
}

impl Matching for Vole {
    fn name(&self) -> &'static str {
        match self.0 {
            Form::Malicious | Form::Fast => "vole",
            Form::Low => "vole-low",
        }
    }

    fn security(&self) -> Security {
        self.0.security()
    }

    fn gives(&self, output: &Output) -> bool {
        match output {
            Output::Items { both, .. } => !both || self.0 != Form::Malicious,
            Output::Totals(_) => false,
        }
    }

    fn is_candidate(&self) -> bool {
        self.0 != Form::Low
    }

    fn is_for_workers(&self) -> bool {
        true
    }

    fn parameters(&self, task: &Task, parts: u64) -> Box<dyn matching::Parameters> {
        Box::new(Self::parameters(*self, task, parts))
    }

    fn cost(&self, task: &Task) -> Cost {
        let parameters = Self::parameters(*self, task, 1);
        let [evaluated, encoded] = parameters.sides();
        let (mut bytes, mut work) = (parameters.bytes(), 0.0);
        if let Output::Items { both, search } = task.output {
            bytes += if search { parameters.value_bytes(0) } else { 0 };
            bytes += if both { evaluated.div_ceil(8) } else { 0 };
        }
        // Nanoseconds for an item of the evaluator, and of the encoder.
        let (trips, fixed, evaluator, encoder) = match self.0 {
            Form::Malicious => (5.0, 9.0, 75.0, 170.0),
            Form::Fast => (4.0, 9.0, 60.0, 140.0),
            Form::Low => (6.0, 12.0, 70.0, 240.0),
        };
        if !parameters.trivial() {
            work = evaluator * evaluated as f64 + encoder * encoded as f64;
        }
        Cost { bytes, trips, fixed, work }
    }

    fn run(
        &self,
        party: Party<'_>,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Outcome> {
        let (call, both) = party.call();
        let form = self.0;
        let settings = Settings { form, both };
        let Party { session, rng, parts, items, .. } = party;
        let sender = |rng| Sender::new(session, rng).one_of(parts);
        let receiver = |rng| Receiver::new(session, rng).one_of(parts);
        Ok(match call {
            Call::SendIntersect => sender(rng).intersect(items, settings, watch, channel)?.into(),
            Call::ReceiveIntersect => {
                receiver(rng).intersect(items, settings, watch, channel)?.into()
            }
            Call::Answer(values) => {
                sender(rng).answer(items, values, settings, watch, channel)?.into()
            }
            Call::Search => receiver(rng).search(items, settings, watch, channel)?.into(),
        })
    }
}

impl matching::Parameters for Parameters {
    fn sizes(&self) -> [u64; 2] {
        [self.sender_items, self.receiver_items]
    }

    fn assumption(&self) -> String {
        let adversary = match self.form {
            Form::Malicious => PEER_DEVIATES,
            Form::Fast | Form::Low => PEER_FOLLOWS,
        };
        format!(
            "{adversary}; AES-128 an ideal cipher; vector OLE: {}; {:.0} statistical",
            self.plan().assumption(),
            self.statistical_bits().floor()
        )
    }

    fn failures(&self) -> Vec<Failure> {
        Self::failures(self)
    }

    fn check_bits(&self) -> Option<u32> {
        self.plan().statistical_bits()
    }

    fn traffic(&self, longest: Option<usize>) -> [u64; 4] {
        [
            self.encoding_bytes(),
            self.tag_bytes(),
            longest.map_or(0, |longest| self.value_bytes(longest)),
            self.correlation_bytes(),
        ]
    }

    fn most_items(&self, log_queries: u32) -> Option<f64> {
        Self::most_items(self, log_queries.into())
    }

    fn memory(&self, role: Role, output: &Output) -> u64 {
        match *output {
            Output::Items { both, search } => Self::memory(self, role, search, both),
            Output::Totals(_) => 0,
        }
    }
}
