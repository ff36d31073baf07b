//! COT and VOLE streams. A row names the kind of correlation; security, noise and trees; the set of
//! the last round, with its instances in lockstep if there are several (a protocol: chosen by cost;
//! `ferret` and `paper80`: the plan of that paper); and the number of correlations drawn, from a
//! stream if the set is named.

use volery_channel::SessionId;
use volery_field::{Fp61, Gf128, Z64};
use volery_ot::{CotReceiver, CotSender};
use volery_pcg::{
    Kind, Plan, PlanOptions, Trees, cot,
    vole::{self, VoleRing},
};
use volery_primitives::{Block, bits};

use super::seeded;

const SESSION: SessionId = SessionId::from_bytes([5; 32]);

/// The plan that the first words of a row name, and the number of correlations drawn.
fn plan(words: &[&str]) -> (Plan, usize) {
    let &[kind, security, noise, trees, set, n] = words else {
        panic!("a row has six words");
    };
    let n = n.parse().unwrap();
    let kind = match kind {
        "cot" => Kind::Cot,
        "fp61" => Kind::Vole(Fp61::FIELD),
        "z64" => Kind::Vole(Z64::FIELD),
        _ => Kind::Vole(Gf128::FIELD),
    };
    let (security, noise) = (security.parse().unwrap(), noise.parse().unwrap());
    let plan = match set {
        "ferret" => Plan::ferret(Some(n), noise, security),
        "paper80" => Plan::paper80(kind.field(), n).unwrap(),
        _ => {
            let protocol = set.parse().ok();
            let (set, instances) = set.split_once('/').unwrap_or((set, "1"));
            let wishes = PlanOptions {
                total: protocol.and(Some(n)),
                noise,
                security,
                trees: if trees == "half" { Trees::Half } else { Trees::Ggm },
                protocol: protocol.unwrap_or_default(),
                set: protocol.is_none().then_some(set),
                instances: protocol.is_none().then(|| instances.parse().unwrap()),
                ..PlanOptions::default()
            };
            Plan::new(kind, &wishes).unwrap()
        }
    };
    assert_eq!(plan.trees().to_string(), trees);
    (plan, n as usize)
}

pub(super) fn run(row: &str) -> [String; 2] {
    let words: Vec<_> = row.split(' ').collect();
    let (plan, n) = plan(&words);
    match words[0] {
        "cot" => seeded(
            |rng, channel| {
                let mut sender = cot::Sender::setup(&plan, None, SESSION, rng, channel).unwrap();
                sender.extend(&mut vec![Block::ZERO; n], channel).unwrap();
            },
            |rng, channel| {
                let mut receiver = cot::Receiver::setup(&plan, SESSION, rng, channel).unwrap();
                let (mut u, mut w) = (vec![0; bits::bytes_for(n)], vec![Block::ZERO; n]);
                receiver.extend(&mut u, &mut w, channel).unwrap();
            },
        ),
        "fp61" => of_vole::<Fp61>(&plan, n),
        "z64" => of_vole::<Z64>(&plan, n),
        _ => of_vole::<Gf128>(&plan, n),
    }
}

fn of_vole<R: VoleRing>(plan: &Plan, n: usize) -> [String; 2] {
    seeded(
        |rng, channel| {
            let mut sender = vole::Sender::<R>::setup(plan, SESSION, rng, channel).unwrap();
            let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
            sender.extend(&mut u, &mut v, channel).unwrap();
        },
        |rng, channel| {
            let mut receiver =
                vole::Receiver::<R>::setup(plan, None, SESSION, rng, channel).unwrap();
            receiver.extend(&mut vec![R::ZERO; n], channel).unwrap();
        },
    )
}
