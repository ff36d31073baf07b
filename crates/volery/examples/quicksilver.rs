//! QuickSilver (Yang, Sarkar, Weng, Wang, CCS 2021, ePrint 2021/076): a prover shows that it knows
//! factors `a` and `b` of public products `c`, over F2 and over fp61.
//!
//! The prover has values and MACs `m`, the verifier keys `k = value*x + m`. If `a*b = c`, then
//! `k_a*k_b - c*x*x` is linear in `x`: `(a*m_b + b*m_a)*x + m_a*m_b`. A random combination of all
//! products is compared, masked by one more correlation.

use volery::field::{ExtensionOf, Ring};
use volery::mpc::wire;
use volery::prelude::*;
use volery::vole::{FromCot, VoleReceiver, VoleSender};

const N: usize = 100_000;

/// The correlations of a proof: two for each product, and those of the mask.
const fn draws<R: Ring, B: Ring>() -> usize {
    2 * N + (R::BITS / B::BITS) as usize
}

/// The sum of `values[i]*2^(i*B::BITS)`: an element of `R` from those of correlations in `B`.
fn pack<R: Ring, B: Ring>(values: &[R]) -> R {
    let terms = (0..).zip(values).map(|(i, value)| *value * R::power_of_two(i * B::BITS));
    terms.fold(R::ZERO, |sum, term| sum + term)
}

fn random<R: Ring>(seed: Block) -> Vec<R> {
    let mut out = vec![R::ZERO; N];
    R::random_slice(&mut Prg::new(seed), &mut out);
    out
}

fn prove<R: ExtensionOf<B>, B: Ring>(
    [a, b]: [&[B]; 2],
    source: &mut impl VoleSender<R, B>,
    channel: &mut Channel,
) -> Result<(), Error> {
    let (mut u, mut m) = (vec![B::ZERO; draws::<R, B>()], vec![R::ZERO; draws::<R, B>()]);
    source.extend(&mut u, &mut m, channel)?;
    let mut difference = [a, b].concat();
    B::sub_slice(&mut difference, &u[..2 * N]);
    wire::send(&difference, channel)?;
    channel.flush()?;
    let chi = random::<R>(channel.recv_block()?);
    let (m_a, m_b) = (&m[..N], &m[N..2 * N]);
    let u: Vec<R> = u[2 * N..].iter().map(|u| R::embed(*u)).collect();
    let (mut linear, mut constant) = (pack::<R, B>(&u), pack::<R, B>(&m[2 * N..]));
    for i in 0..N {
        linear += chi[i] * (m_b[i].mul_base(a[i]) + m_a[i].mul_base(b[i]));
        constant += chi[i] * m_a[i] * m_b[i];
    }
    wire::send(&[linear, constant], channel)?;
    channel.flush()
}

fn verify<R: ExtensionOf<B>, B: Ring>(
    c: &[B],
    source: &mut impl VoleReceiver<R>,
    channel: &mut Channel,
) -> Result<(), Error> {
    let (mut k, mut difference) = (vec![R::ZERO; draws::<R, B>()], vec![B::ZERO; 2 * N]);
    source.extend(&mut k, channel)?;
    let x = source.try_x()?;
    wire::recv(&mut difference, "a committed value is not canonical", channel)?;
    R::axpy_base(&mut k[..2 * N], x, &difference);
    let seed = Prg::from_os()?.block();
    channel.send_block(seed)?;
    channel.flush()?;
    let mut expected = pack::<R, B>(&k[2 * N..]);
    for (i, chi) in random::<R>(seed).into_iter().enumerate() {
        expected += chi * (k[i] * k[N + i] - (x * x).mul_base(c[i]));
    }
    let mut proof = [R::ZERO; 2];
    wire::recv(&mut proof, "the proof is not canonical", channel)?;
    if !bool::from((proof[0] * x + proof[1]).ct_eq(&expected)) {
        return Err(Error::PeerMisbehaved("a product is wrong"));
    }
    Ok(())
}

/// Factors and their products; `wrong` is added to the first product.
fn witness<B: Ring>(wrong: B) -> [Vec<B>; 3] {
    let (a, b, mut c) = (random(Block::from(3)), random(Block::from(4)), vec![B::ZERO; N]);
    B::add_products([&a], [&b], &mut c);
    c[0] += wrong;
    [a, b, c]
}

/// Over F2, by correlated OT with a `delta` that the verifier chooses.
fn over_f2(wrong: F2) -> [Result<(), Error>; 2] {
    let [a, b, c] = witness(wrong);
    let total = Some(draws::<Gf128, F2>() as u64);
    let plan = cot::plan(total, Link::default(), Security::Malicious);
    let (prover, verifier) = run_two_parties(
        |channel| {
            let mut session = Session::begin(channel, &plan.hello(Role::Receiver))?;
            let mut source = FromCot(cot::Receiver::start(&plan, &mut session)?);
            prove([&a, &b], &mut source, &mut session)
        },
        |channel| {
            let mut session = Session::begin(channel, &plan.hello(Role::Sender))?;
            let delta = Prg::from_os()?.block().with_lsb(true);
            let mut source = FromCot(cot::Sender::start(&plan, Some(delta), &mut session)?);
            verify(&c, &mut source, &mut session)
        },
    );
    [prover, verifier]
}

/// Over fp61, by vector OLE.
fn over_fp61(wrong: Fp61) -> [Result<(), Error>; 2] {
    let [a, b, c] = witness(wrong);
    let total = Some(draws::<Fp61, Fp61>() as u64);
    let plan = vole::plan::<Fp61>(total, Link::default(), Security::Malicious).expect("a plan");
    let (prover, verifier) = run_two_parties(
        |channel| {
            let mut session = Session::begin(channel, &plan.hello(Role::Sender))?;
            let mut source = vole::Sender::<Fp61>::start(&plan, &mut session)?;
            prove([&a, &b], &mut source, &mut session)
        },
        |channel| {
            let mut session = Session::begin(channel, &plan.hello(Role::Receiver))?;
            let mut source = vole::Receiver::<Fp61>::start(&plan, None, &mut session)?;
            verify(&c, &mut source, &mut session)
        },
    );
    [prover, verifier]
}

fn main() -> Result<(), Error> {
    over_f2(F2::ZERO).into_iter().chain(over_fp61(Fp61::ZERO)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_true_statement_is_proved() {
        main().expect("both proofs are accepted");
    }

    #[test]
    fn a_wrong_product_is_caught() {
        let caught = |error: &Error| matches!(error, Error::PeerMisbehaved("a product is wrong"));
        assert!(caught(over_f2(F2::ONE)[1].as_ref().unwrap_err()));
        assert!(caught(over_fp61(Fp61::ONE)[1].as_ref().unwrap_err()));
    }
}
