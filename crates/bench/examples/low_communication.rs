//! Draws docs/low-communication.svg: `cargo run -p volery-bench --example low_communication > docs/low-communication.svg`.

use std::io::{self, Write as _};

use volery_bench::measurement::Spread;
use volery_bench::page::{Axis, Plot, Point, Scale, Series, svg};
use volery_pcg::{
    Kind, Plan, Protocol, Security, Wishes,
    lpn::{LpnSet, estimate::Field, set_named},
};

fn main() -> io::Result<()> {
    io::stdout().write_all(picture().as_bytes())
}

/// Bytes of both parties against the number of outputs.
pub(crate) fn picture() -> String {
    let axis = |label: &str, unit: &str| Axis {
        label: label.to_owned(),
        unit: unit.to_owned(),
        scale: Scale::Log,
    };
    svg::plot(&Plot {
        title: "Bytes of both parties, without the setup of base OTs".to_owned(),
        x: axis("outputs n", ""),
        y: axis("sent", "bytes"),
        series: vec![
            line("IKNP", true, iknp),
            line("Ferret, its regular set", true, ferret),
            line("gf128", false, |n| dual(Kind::Vole(Field::Gf128), n)),
            line("z64", false, |n| dual(Kind::Vole(Field::Z64Odd), n)),
            line("fp61", false, |n| dual(Kind::Vole(Field::Fp61), n)),
            line("COT", false, |n| dual(Kind::Cot, n)),
        ],
        marks: Vec::new(),
    })
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

/// What the plan says of low communication.
fn dual(kind: Kind, n: u64) -> u64 {
    let wishes = Wishes {
        total: Some(n),
        security: match kind {
            Kind::Vole(Field::Z64Odd) => Security::SemiHonest,
            _ => Security::Malicious,
        },
        protocol: Protocol::LowCommunication,
        ..Wishes::default()
    };
    let plan = Plan::new(kind, &wishes).expect("there is a plan for each ring");
    plan.dual_bytes().expect("of dual LPN")
}

/// 128 bits each.
fn iknp(n: u64) -> u64 {
    16 * n
}

/// The protocol as its paper has it: IKNP for the base of the setup, GGM trees, whole rounds.
fn ferret(n: u64) -> u64 {
    let set = |name| set_named(name).expect("the sets of the paper");
    let (setup, main) = (set("ferret-reg-setup"), set("ferret-reg"));
    let depth = |set: &LpnSet| u64::from((set.n / set.t).next_power_of_two().ilog2());
    let base = |set: &LpnSet| set.k as u64 + set.t as u64 * depth(set) + 128;
    let trees = |set: &LpnSet| set.t as u64 * (32 * depth(set) + 16);
    let rounds = n.div_ceil(main.n as u64 - base(main));
    iknp(base(setup)) + trees(setup) + rounds * trees(main)
}
