//! Findings in sentences: cells that were not measured are not mentioned.

use crate::Link;

use super::super::candidate::{Candidate, RingName};
use super::super::crossing;
use super::super::show::{Shown, in_words};
use super::super::stated::{Quantity, stated};
use super::{Lines, case, lengths, links};
use crate::words::{Standing, few_runs, range};

impl Lines<'_> {
    /// Of each link and ring.
    pub(super) fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for (link, column) in links() {
            for ring in RingName::ALL {
                let place = format!("{} over {}", ring.name(), in_words(&link));
                let sentences = [
                    self.crossing(ring, &link, column),
                    self.slow_ways(ring, &link),
                    self.short_vectors(ring, &link),
                ];
                let sentences = sentences.into_iter().flatten();
                findings.extend(sentences.map(|text| format!("{place}: {text}.")));
            }
        }
        findings
    }

    fn crossing(&self, ring: RingName, link: &Link, column: &str) -> Option<String> {
        let candidates = [Candidate::Gilboa, Candidate::VOLE];
        let pairs = self.pairs(Shown::Milliseconds, candidates, ring, link);
        let [other, ours] = candidates.map(Candidate::title);
        let mut text = crossing::sentence(&pairs, ours, other)?;
        if let Some(there) = stated(self.figure, Quantity::Crossing, ring.name(), column) {
            text += &format!("; published: from {there} on");
        }
        Some(text)
    }

    /// With the same parameters.
    fn slow_ways(&self, ring: RingName, link: &Link) -> Option<String> {
        let pairs = |slow| self.pairs(Shown::Milliseconds, [slow, Candidate::Paper80], ring, link);
        let [naive, floram] = [Candidate::WholeDomain, Candidate::Floram].map(pairs);
        let times = |pairs: &[crossing::Pair]| {
            range(
                pairs
                    .iter()
                    .map(|(_, slow, ours)| slow.median / ours.median),
            )
        };
        let mut text = format!(
            "at the paper's 80 bits naive batching takes {} times as long as '{}', FLORAM {} times",
            times(&naive)?,
            Candidate::Paper80.title(),
            times(&floram)?
        );
        let all = naive.iter().chain(&floram);
        text += few_runs(all.flat_map(|(_, slow, ours)| [*slow, *ours]));
        if ring == RingName::Z64 {
            text += "; their base takes 260 bytes a product and that of ours 512, so where the link decides this compares the bases";
        }
        Some(text)
    }

    /// Where the paper's parameters, with a slower way, take less time than ours with more bits,
    /// beyond the spread of the runs.
    fn short_vectors(&self, ring: RingName, link: &Link) -> Option<String> {
        let slow_ways = [Candidate::WholeDomain, Candidate::Floram].into_iter();
        let ahead: Vec<_> = slow_ways
            .filter_map(|slow| self.ahead_of_ours(slow, ring, link))
            .collect();
        let bits = "with 80 bits of security, where VOLE has 128";
        (!ahead.is_empty()).then(|| format!("{}; {bits}", ahead.join(", ")))
    }

    /// Where one of the slower ways takes less time than ours.
    fn ahead_of_ours(&self, slow: Candidate, ring: RingName, link: &Link) -> Option<String> {
        let (mut entries, mut percents, mut spreads) = (Vec::new(), Vec::new(), Vec::new());
        for &n in lengths(self.scope.size) {
            let [slow, ours] = [slow, Candidate::VOLE].map(|candidate| {
                let key = case(candidate, ring, n, link, self.scope).key();
                Shown::Milliseconds.spread(self.results, &key)
            });
            if let Some((slow, ours)) = slow.zip(ours)
                && Standing::of(slow, ours) == Standing::Less
            {
                entries.push(n.to_string());
                percents.push(100.0 * slow.median / ours.median);
                spreads.extend([slow, ours]);
            }
        }
        Some(format!(
            "{} takes {} % of VOLE's time at {} entries{}",
            slow.title(),
            range(percents)?,
            entries.join(", "),
            few_runs(spreads)
        ))
    }
}
