//! Correlated OT and vector OLE, as a user draws them.

use volery_field::{Fp61, Gf128, Z64};
use volery_pcg::vole::{self, VoleRing};
use volery_pcg::{Kind, Noise, Plan, PlanOptions, Protocol as By, Security, Trees, cot};

use super::super::ot::{draw_received, draw_sent, is_cot};
use super::{is_vole, random};
use crate::fixtures::{SEEDS, SESSION, rng};
use crate::{Model, Protocol};

/// Correlations of a stream: those of one small round.
const N: usize = 3000;

/// Correlations that come directly from the base.
const FEW: usize = 50;

pub(super) fn all() -> Vec<Protocol> {
    let (malicious, semi_honest) = (Security::Malicious, Security::SemiHonest);
    let (regular, uniform) = (Noise::Regular, Noise::Uniform);
    vec![
        cot(malicious, regular, Trees::Half),
        cot(malicious, regular, Trees::Ggm),
        cot(malicious, uniform, Trees::Half),
        cot(semi_honest, regular, Trees::Half),
        cot(semi_honest, uniform, Trees::Ggm),
        few_cots(malicious),
        few_cots(semi_honest),
        vole::<Fp61>(malicious, regular, Trees::Half),
        vole::<Fp61>(malicious, regular, Trees::Ggm),
        vole::<Fp61>(malicious, uniform, Trees::Half),
        vole::<Fp61>(semi_honest, regular, Trees::Half),
        vole::<Gf128>(malicious, regular, Trees::Half),
        vole::<Gf128>(semi_honest, uniform, Trees::Ggm),
        vole::<Z64>(semi_honest, regular, Trees::Half),
        vole::<Z64>(semi_honest, uniform, Trees::Half),
        few_voles::<Fp61>(malicious),
        few_voles::<Gf128>(malicious),
        few_voles::<Z64>(semi_honest),
        dual_cots(malicious),
        dual_cots(semi_honest),
        dual_voles::<Fp61>(malicious),
        dual_voles::<Gf128>(malicious),
        dual_voles::<Z64>(semi_honest),
    ]
}

fn model(security: Security) -> Model {
    match security {
        Security::SemiHonest => Model::SemiHonest,
        _ => Model::Malicious,
    }
}

/// A plan of one round of the smallest set, or without rounds.
fn plan(kind: Kind, options: PlanOptions<'static>, in_rounds: bool) -> Plan {
    let set = match options.noise {
        Noise::Regular => "r14",
        _ => "u14",
    };
    let options = PlanOptions {
        total: Some(if in_rounds { N } else { FEW } as u64),
        set: in_rounds.then_some(set),
        ..options
    };
    let plan = Plan::new(kind, &options).expect("the set exists and suits this kind");
    assert_eq!(plan.schedule().is_empty(), !in_rounds, "{plan:?}");
    plan
}

/// A plan of one instance of dual LPN.
fn dual(kind: Kind, security: Security) -> Plan {
    let options = PlanOptions {
        total: Some(N as u64),
        security,
        protocol: By::LowCommunication,
        ..PlanOptions::default()
    };
    Plan::new(kind, &options).expect("a dual LPN plan exists for these options")
}

fn dual_cots(security: Security) -> Protocol {
    let name = format!("cot, {security}, low-communication");
    cots(name, security, dual(Kind::Cot, security), N)
}

fn dual_voles<R: VoleRing>(security: Security) -> Protocol {
    let name = format!("vole {}, {security}, low-communication", R::NAME);
    let plan = dual(Kind::Vole(R::FIELD), security);
    voles::<R>(name, security, plan, N)
}

fn cots(name: String, security: Security, plan: Plan, n: usize) -> Protocol {
    let senders = plan.clone();
    Protocol::new(
        name,
        model(security),
        move |channel| {
            let mut sender = cot::Sender::setup(&senders, None, SESSION, rng(SEEDS[0]), channel)?;
            sender.prepare(channel)?;
            draw_sent(&mut sender, n, channel)
        },
        move |channel| {
            let mut receiver = cot::Receiver::setup(&plan, SESSION, rng(SEEDS[1]), channel)?;
            receiver.prepare(channel)?;
            draw_received(&mut receiver, n, channel)
        },
        is_cot,
    )
}

fn cot(security: Security, noise: Noise, trees: Trees) -> Protocol {
    let options = PlanOptions { security, noise, trees, ..PlanOptions::default() };
    let plan = plan(Kind::Cot, options, true);
    cots(format!("cot, {security}, {noise}, {trees}"), security, plan, N)
}

fn few_cots(security: Security) -> Protocol {
    let options = PlanOptions { security, ..PlanOptions::default() };
    let plan = plan(Kind::Cot, options, false);
    cots(format!("cot, {security}, few"), security, plan, FEW)
}

fn voles<R: VoleRing>(name: String, security: Security, plan: Plan, n: usize) -> Protocol {
    let senders = plan.clone();
    Protocol::new(
        name,
        model(security),
        move |channel| {
            let rng = rng(SEEDS[0]);
            let mut sender = vole::Sender::<R>::setup(&senders, SESSION, rng, channel)?;
            sender.prepare(channel)?;
            let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
            sender.extend(&mut u, &mut v, channel)?;
            Ok((u, v))
        },
        move |channel| {
            let (x, rng) = (random::<R>(1, 3)[0], rng(SEEDS[1]));
            let mut receiver = vole::Receiver::setup(&plan, Some(x), SESSION, rng, channel)?;
            receiver.prepare(channel)?;
            let mut w = vec![R::ZERO; n];
            receiver.extend(&mut w, channel)?;
            Ok((x, w))
        },
        is_vole::<R>,
    )
}

fn vole<R: VoleRing>(security: Security, noise: Noise, trees: Trees) -> Protocol {
    let options = PlanOptions { security, noise, trees, ..PlanOptions::default() };
    let plan = plan(Kind::Vole(R::FIELD), options, true);
    let name = format!("vole {}, {security}, {noise}, {trees}", R::NAME);
    voles::<R>(name, security, plan, N)
}

fn few_voles<R: VoleRing>(security: Security) -> Protocol {
    let options = PlanOptions { security, ..PlanOptions::default() };
    let plan = plan(Kind::Vole(R::FIELD), options, false);
    let name = format!("vole {}, {security}, few", R::NAME);
    voles::<R>(name, security, plan, FEW)
}
