//! The figures of docs/, as a file of results that `report.py` draws:
//! `cargo run --profile dist --example docs_figures > figures.json`, then
//! `python3 report.py figures.json --plots ../docs`.

use std::io::{self, Write as _};

use volery_bench::measurement::Spread;
use volery_bench::page::{Axis, Plot, Point, Scale, Section, Series, VerticalMark};
use volery_bench::results::Results;
use volery_pcg::{
    Kind, Plan, PlanOptions, Protocol, Security,
    lpn::estimate::{Estimate, Field, estimate, sweep, weights},
    lpn::{LpnSet, set_named},
};

fn main() -> io::Result<()> {
    let section = |name: &str, plot| Section {
        name: name.to_owned(),
        plots: vec![plot],
        ..Section::default()
    };
    let sections = [
        section("low-communication", low_communication()),
        section("security-levels", security_levels()),
    ];
    let mut results = Results::new("figures of docs");
    let sections = serde_json::to_value(sections).map_err(io::Error::other)?;
    results.more.insert("sections".to_owned(), sections);
    io::stdout().write_all(&results.to_bytes())
}

fn axis(label: &str, unit: &str, scale: Scale) -> Axis {
    Axis {
        label: label.to_owned(),
        unit: unit.to_owned(),
        scale,
    }
}

/// Bytes of both parties against the number of outputs.
fn low_communication() -> Plot {
    Plot {
        title: "Bytes of both parties, without the setup of base OTs".to_owned(),
        x: axis("outputs n", "", Scale::Log),
        y: axis("sent", "bytes", Scale::Log),
        series: vec![
            line("IKNP", true, iknp),
            line("Ferret, its regular set", true, ferret),
            line("gf128", false, |n| dual(Kind::Vole(Field::Gf128), n)),
            line("z64", false, |n| dual(Kind::Vole(Field::Z64Odd), n)),
            line("fp61", false, |n| dual(Kind::Vole(Field::Fp61), n)),
            line("COT", false, |n| dual(Kind::Cot, n)),
        ],
        marks: Vec::new(),
    }
}

/// Bits of the set b12 over f2 against the noise weight: a line for each attack that costs at most
/// a tenth more than the cheapest, and one for the bits that are wanted.
fn security_levels() -> Plot {
    const WANTED: f64 = 128.0;
    let instance = set_named("b12").expect("a set").instance(Field::F2);
    let mut attacks = estimate(&instance);
    attacks.sort_by(|a, b| a.bits.total_cmp(&b.bits));
    let least = attacks[0].bits;
    let t = instance.t;
    let samples = sweep(&instance, &weights(t * 7 / 10, t * 3 / 2, 97));
    let series = |name: String, published, bits: &dyn Fn(usize) -> Option<f64>| Series {
        name,
        published,
        points: (0..samples.len())
            .filter_map(|i| {
                let bits = bits(i).filter(|bits| (0.85 * WANTED..=1.2 * least).contains(bits))?;
                Some(Point {
                    x: samples[i].t as f64,
                    y: Spread::exactly(bits),
                    from_plot: false,
                })
            })
            .collect(),
    };
    let near = attacks.iter().filter(|found| found.bits <= 1.1 * least);
    let mut lines: Vec<_> = near
        .map(|Estimate { attack, bits }| {
            series(format!("{attack}: {bits:.1}"), false, &|i| {
                samples[i].bits(attack)
            })
        })
        .collect();
    lines.push(series(format!("{WANTED} bits"), true, &|_| Some(WANTED)));
    Plot {
        title: "Bits of the set b12 over f2 against the noise weight".to_owned(),
        x: axis("noise weight t", "", Scale::Linear),
        y: axis("security", "bits", Scale::Linear),
        series: lines,
        marks: vec![VerticalMark {
            x: t as f64,
            label: format!("t = {t}: {least:.1} bits"),
        }],
    }
}

/// From 2^14 to 2^26, four to each power of two.
fn line(name: &str, published: bool, bytes: impl Fn(u64) -> u64) -> Series {
    let numbers = (14 * 4..=26 * 4).map(|quarter| 2f64.powf(f64::from(quarter) / 4.0) as u64);
    Series {
        name: name.to_owned(),
        published,
        points: numbers
            .map(|n| Point {
                x: n as f64,
                y: Spread::exactly(bytes(n) as f64),
                from_plot: false,
            })
            .collect(),
    }
}

/// The plan's figures for low communication.
fn dual(kind: Kind, n: u64) -> u64 {
    let wishes = PlanOptions {
        total: Some(n),
        security: match kind {
            Kind::Vole(Field::Z64Odd) => Security::SemiHonest,
            _ => Security::Malicious,
        },
        protocol: Protocol::LowCommunication,
        ..PlanOptions::default()
    };
    let plan = Plan::new(kind, &wishes).expect("there is a plan for each ring");
    plan.dual_bytes().expect("of dual LPN")
}

/// 128 bits each.
fn iknp(n: u64) -> u64 {
    16 * n
}

/// The protocol as in its paper: IKNP for the base of the setup, GGM trees, whole rounds.
fn ferret(n: u64) -> u64 {
    let set = |name| set_named(name).expect("the sets of the paper");
    let (setup, main) = (set("ferret-reg-setup"), set("ferret-reg"));
    let depth = |set: &LpnSet| u64::from((set.n / set.t).next_power_of_two().ilog2());
    let base = |set: &LpnSet| set.k as u64 + set.t as u64 * depth(set) + 128;
    let trees = |set: &LpnSet| set.t as u64 * (32 * depth(set) + 16);
    let rounds = n.div_ceil(main.n as u64 - base(main));
    iknp(base(setup)) + trees(setup) + rounds * trees(main)
}
