//! `volery params estimate`: the cost of each attack on an instance.

use volery_pcg::Noise;
use volery_pcg::lpn::estimate::{Estimate, Instance, NoiseShape, estimate};
use volery_pcg::plan::RoundSize;
use volery_run::failure::Result;
use volery_run::report::Report;
use volery_run::reporter::Reporter;

use super::super::options::Common;
use super::super::table::table;
use super::ask::{InstanceArguments, Question, Search, kind, security};

/// Estimate the cost of every known attack on LPN parameters, or search for parameters
///
/// Prints the bits of each attack, cheapest first, and whether all attacks cost at least --bits.
/// Without --t, searches the smallest noise weight that resists all attacks; without --k too,
/// searches the secret length and weight for which a round of n outputs sends the fewest bits,
/// including those for its base. The code has ten entries in each column, as that of this program;
/// attacks that do not use this assume a random one. The estimate does not cover unpublished
/// attacks.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    asked: InstanceArguments,

    #[command(flatten)]
    common: Common,
}

/// The estimates for one instance.
struct InstanceReport {
    instance: Instance,
    /// The cheapest first.
    attacks: Vec<Estimate>,
    round: RoundSize,
}

pub(super) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<()> {
    let Arguments { asked, common, .. } = arguments;
    let place = common.prepare_report(reporter)?;
    let pool = common.pool()?;

    let question = pool.install(|| asked.question(reporter))?;
    let answers: Vec<_> = question.instances.iter().copied().map(InstanceReport::new).collect();
    let texts: Vec<_> = answers.iter().map(|answer| answer.text(&question, asked.bits)).collect();
    reporter.output(&format!("{}\n", texts.join("\n\n")))?;
    let mut report = Report::new("params", reporter);
    let entries = answers.iter().map(|answer| answer.json(asked.bits));
    report.result = serde_json::Map::from_iter([
        ("set".to_owned(), question.set.into()),
        ("search".to_owned(), question.search.to_string().into()),
        ("wanted_bits".to_owned(), asked.bits.into()),
        ("instances".to_owned(), entries.collect()),
    ]);
    place.write(&report).map(drop)
}

impl InstanceReport {
    fn new(instance: Instance) -> Self {
        let mut attacks = estimate(&instance);
        attacks.sort_by(|a, b| a.bits.total_cmp(&b.bits));
        let Instance { n, k, t, field, .. } = instance;
        let kind = kind(field);
        let noise = noise(instance.noise);
        Self { instance, attacks, round: RoundSize::new(kind, security(kind), noise, [n, k, t]) }
    }

    fn least(&self) -> Estimate {
        self.attacks[0]
    }

    fn holds(&self, bits: u32) -> bool {
        self.least().bits >= f64::from(bits)
    }

    /// Samples per block and samples left over, for regular noise.
    fn blocks(&self) -> Option<(usize, usize)> {
        let Instance { n, t, noise, .. } = self.instance;
        (noise == NoiseShape::Regular).then(|| (n / t, n % t))
    }

    /// The instance in words.
    fn heading(&self) -> String {
        let Instance { n, k, t, field, noise: shape, .. } = self.instance;
        let noise = noise(shape);
        format!("n = {n}, k = {k}, t = {t}, {noise} noise over {field}")
    }

    fn text(&self, question: &Question, bits: u32) -> String {
        let mut text = self.heading();
        if let Some(name) = question.set {
            text = format!("{name}: {text}");
        }
        match question.search {
            Search::None => {}
            search => text += &format!(" ({search} for {bits} bits)"),
        }
        if let Some((size, left @ 1..)) = self.blocks() {
            text += &format!(
                "\nn is no multiple of t: blocks of {size} samples; the {left} left over count as equations without noise"
            );
        }
        text += &format!(
            "\none round spends {} base correlations, and sends {:.2} bits for each of its outputs, those for the base included",
            self.round.base,
            self.round.bits_each()
        );
        let rows = self.attacks.iter().map(|Estimate { attack, bits }| {
            let bits =
                if bits.is_finite() { format!("{bits:.1}") } else { "does not work".to_owned() };
            [(*attack).to_owned(), bits]
        });
        let Estimate { attack, bits: least } = self.least();
        let verdict = if self.holds(bits) { "holds" } else { "falls short of" };
        let least = if least.is_finite() {
            format!("{least:.1} bits, by {attack}")
        } else {
            "no attack works".to_owned()
        };
        format!("{text}\n\n{}\n\n{verdict} {bits} bits: {least}", table(["attack", ">bits"], rows))
    }

    fn json(&self, wanted: u32) -> serde_json::Value {
        let Instance { n, k, t, field, noise: shape, .. } = self.instance;
        let Estimate { attack, bits } = self.least();
        // If no attack works, there is no cheapest attack.
        let attack = bits.is_finite().then_some(attack);
        let attacks = self
            .attacks
            .iter()
            .map(|found| serde_json::json!({ "attack": found.attack, "bits": found.bits }));
        let (block, left_over) = self.blocks().unzip();
        let RoundSize { trees, levels, base, .. } = self.round;
        serde_json::json!({
            "n": n, "k": k, "t": t, "field": field.to_string(), "noise": noise(shape).to_string(),
            "block": block, "left_over": left_over,
            "bits": bits, "attack": attack, "holds": self.holds(wanted),
            "attacks": attacks.collect::<Vec<_>>(),
            "round": {
                "trees": trees, "levels": levels, "base_correlations": base,
                "bits_each": self.round.bits_each(),
            },
        })
    }
}

/// The command-line name of the noise.
fn noise(shape: NoiseShape) -> Noise {
    match shape {
        NoiseShape::Regular => Noise::Regular,
        NoiseShape::Exact => Noise::Uniform,
    }
}
