//! The noise that a side adds to totals before they are opened.

use serde::{Deserialize, Serialize};
use volery_primitives::prg::Prg;
use volery_psi::noise::Mechanism;
use zeroize::Zeroize as _;

use super::settings::Settings;

/// Noise of this side for each count and each sum. Wiped when dropped.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noise {
    pub(super) counts: Vec<i64>,
    pub(super) sums: Vec<i64>,
}

impl Drop for Noise {
    fn drop(&mut self) {
        self.counts.zeroize();
        self.sums.zeroize();
    }
}

impl Noise {
    /// Samples, where this side adds noise. To be called before the sides of a run meet: the time
    /// that it takes depends on the samples, and a peer sees when each message comes.
    #[must_use]
    pub fn sample(settings: &Settings, rng: &mut Prg) -> Self {
        let [in_count, in_sum] = settings.adds(settings.role);
        let (count, sum) = match &settings.privacy {
            None => (None, None),
            Some(privacy) => (privacy.count.filter(|_| in_count), privacy.sum.filter(|_| in_sum)),
        };
        let mut samples = |mechanism: Option<Mechanism>| {
            let mut samples = vec![0; settings.totals()];
            if let Some(mechanism) = mechanism {
                samples.fill_with(|| mechanism.sample(rng));
            }
            samples
        };
        Self { counts: samples(count), sums: samples(sum) }
    }

    /// Whether there is a sample for each total.
    pub fn fits(&self, settings: &Settings) -> bool {
        [&self.counts, &self.sums].map(Vec::len) == [settings.totals(); 2]
    }
}
