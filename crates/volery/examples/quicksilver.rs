//! QuickSilver (Yang, Sarkar, Weng, Wang, CCS 2021, ePrint 2021/076): a prover shows that it knows
//! `a` and `b` with a public inner product, over F2, fp61 and the integers modulo 2^31 - 1.
//!
//! ```text
//! cargo run --release -p volery --features mpc --example quicksilver
//! ```
//!
//! The prover has values and MACs `m`, the verifier keys `k = value*x + m`. A product `c = a*b`
//! holds if `k_a*k_b - k_c*x` is linear in `x`: `(a*m_b + b*m_a - m_c)*x + m_a*m_b`. A random
//! combination of all products is compared, masked by one more correlation.

use volery::mpc::wire;
use volery::prelude::*;

const N: usize = 100_000;

/// The correlations of a proof: three for each product, and those of the mask.
const fn draws<R: ExtensionOf<B>, B: Ring>() -> usize {
    3 * N + R::DEGREE
}

fn random<R: Ring>(seed: Block) -> Vec<R> {
    let mut out = vec![R::ZERO; N];
    R::random_slice(&mut Prg::new(seed), &mut out);
    out
}

/// The prover, with its claims `c` for the products. Returns the inner product.
fn prove<R: ExtensionOf<B>, B: Ring>(
    [a, b, c]: [&[B]; 3],
    source: &mut impl VoleSender<R, B>,
    channel: &mut Channel,
) -> Result<B, Error> {
    let (mut u, mut m) = (vec![B::ZERO; draws::<R, B>()], vec![R::ZERO; draws::<R, B>()]);
    source.extend(&mut u, &mut m, channel)?;
    let mut difference = [a, b, c].concat();
    B::sub_slice(&mut difference, &u[..3 * N]);
    wire::send(&difference, channel)?;
    channel.flush()?;
    let chi = random::<R>(channel.recv_block()?);
    let (m_a, m_b, m_c) = (&m[..N], &m[N..2 * N], &m[2 * N..3 * N]);
    let u: Vec<R> = u[3 * N..].iter().map(|u| R::embed(*u)).collect();
    let (mut linear, mut constant) = (R::combine(&u), R::combine(&m[3 * N..]));
    for i in 0..N {
        linear += chi[i] * (m_b[i].mul_base(a[i]) + m_a[i].mul_base(b[i]) - m_c[i]);
        constant += chi[i] * m_a[i] * m_b[i];
    }
    wire::send(&[linear, constant, R::sum(m_c)], channel)?;
    wire::send(&[B::sum(c)], channel)?;
    channel.flush()?;
    Ok(B::sum(c))
}

/// The verifier. Returns the inner product.
fn verify<R: ExtensionOf<B>, B: Ring>(
    rng: &mut Prg,
    source: &mut impl VoleReceiver<R>,
    channel: &mut Channel,
) -> Result<B, Error> {
    let (mut k, mut difference) = (vec![R::ZERO; draws::<R, B>()], vec![B::ZERO; 3 * N]);
    source.extend(&mut k, channel)?;
    let x = source.try_x()?;
    wire::recv(&mut difference, "a committed value is not canonical", channel)?;
    R::axpy_base(&mut k[..3 * N], x, &difference);
    let seed = rng.block();
    channel.send_block(seed)?;
    channel.flush()?;
    let chi = random::<R>(seed);
    let (k_a, k_b, k_c) = (&k[..N], &k[N..2 * N], &k[2 * N..3 * N]);
    let mut expected = R::combine(&k[3 * N..]);
    for i in 0..N {
        expected += chi[i] * (k_a[i] * k_b[i] - k_c[i] * x);
    }
    let (mut proof, mut sum) = ([R::ZERO; 3], [B::ZERO]);
    wire::recv(&mut proof, "the proof is not canonical", channel)?;
    wire::recv(&mut sum, "the inner product is not canonical", channel)?;
    let [linear, constant, mac] = proof;
    if !bool::from((linear * x + constant).ct_eq(&expected)) {
        return Err(Error::PeerMisbehaved("a product is wrong"));
    }
    if !bool::from((x.mul_base(sum[0]) + mac).ct_eq(&R::sum(k_c))) {
        return Err(Error::PeerMisbehaved("the inner product is wrong"));
    }
    Ok(sum[0])
}

/// A witness; `wrong` is added to its first product.
fn witness<B: Ring>(wrong: B) -> [Vec<B>; 3] {
    let (a, b, mut c) = (random(Block::from(3)), random(Block::from(4)), vec![B::ZERO; N]);
    B::add_products([&a], [&b], &mut c);
    c[0] += wrong;
    [a, b, c]
}

/// Over F2, by correlated OT.
fn over_f2(wrong: F2) -> [Result<F2, Error>; 2] {
    let [a, b, c] = witness(wrong);
    let total = Some(draws::<Gf128, F2>() as u64);
    let plan = cot::plan(total, Link::default(), Security::Malicious);
    let (prover, verifier) = run_two_parties(
        |channel| {
            let mut session = Session::begin(channel, &plan.hello(Role::Receiver))?;
            let mut source = vole::bits::Sender::start(&plan, &mut session)?;
            prove([&a, &b, &c], &mut source, &mut session)
        },
        |channel| {
            let mut session = Session::begin(channel, &plan.hello(Role::Sender))?;
            let mut source = vole::bits::Receiver::start(&plan, None, &mut session)?;
            verify(&mut session.rng(), &mut source, &mut session)
        },
    );
    [prover, verifier]
}

/// Over the field `B`, with MACs in `R`.
fn over_field<R: VoleRing<B>, B: Ring>(wrong: B) -> [Result<B, Error>; 2] {
    let [a, b, c] = witness(wrong);
    let total = Some(draws::<R, B>() as u64);
    let plan = vole::subfield_plan::<R, B>(total, Link::default(), Security::Malicious);
    let plan = plan.expect("a field has a plan");
    let (prover, verifier) = run_two_parties(
        |channel| {
            let mut session = Session::begin(channel, &plan.hello(Role::Sender))?;
            let mut source = vole::Sender::<R, B>::start(&plan, &mut session)?;
            prove([&a, &b, &c], &mut source, &mut session)
        },
        |channel| {
            let mut session = Session::begin(channel, &plan.hello(Role::Receiver))?;
            let mut source = vole::Receiver::<R, B>::start(&plan, None, &mut session)?;
            verify(&mut session.rng(), &mut source, &mut session)
        },
    );
    [prover, verifier]
}

fn main() -> Result<(), Error> {
    let [prover, verifier] = over_f2(F2::ZERO);
    assert!(prover? == verifier?);
    let [prover, verifier] = over_field::<Fp61, _>(Fp61::ZERO);
    assert!(prover? == verifier?);
    let [prover, verifier] = over_field::<Fp31x4, _>(Fp31::ZERO);
    assert!(prover? == verifier?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_true_statement_is_proved() {
        main().expect("all proofs are accepted");
    }

    #[test]
    fn a_wrong_product_is_caught() {
        let caught = |error: &Error| matches!(error, Error::PeerMisbehaved("a product is wrong"));
        assert!(caught(over_f2(F2::ONE)[1].as_ref().map(drop).unwrap_err()));
        let [_, verifier] = over_field::<Fp61, _>(Fp61::ONE);
        assert!(caught(verifier.as_ref().map(drop).unwrap_err()));
        let [_, verifier] = over_field::<Fp31x4, _>(Fp31::ONE);
        assert!(caught(verifier.as_ref().map(drop).unwrap_err()));
    }
}
