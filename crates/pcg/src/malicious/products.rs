//! A malicious value holder where the base of a vector OLE is made.

use std::sync::atomic::Ordering;

use volery_channel::{Channel, Error, Result, memory, run_two_channels, tamper::Tampered};
use volery_field::{ExtensionOf, Fp31, Fp31x4, Fp61, Gf128, Ring};
use volery_ot::base;
use volery_primitives::prg::Prg;

use super::{SESSION, Setup, channel, counted, honest, rng};
use crate::{
    Link, Plan, Security, check,
    correlation::Vole,
    gilboa,
    vole::{self, VoleRing},
    wire,
};

const N: usize = 5;

/// The differences that the sender of a product with `u` in `B` adds, and their places.
#[derive(Clone, Copy)]
struct SenderErrors<B, R> {
    /// To the entry of `u` with that number, in the correction for that bit of `x`.
    u: Option<(usize, u32, B)>,
    /// To `v'`, for each coefficient of that entry: compensates if the bit is set.
    made_up: bool,
    /// To `u'` and `v'` of the repetition with that number.
    combined: (usize, [R; 2]),
}

impl<B, R: Ring> SenderErrors<B, R> {
    const NOTHING: Self = Self { u: None, made_up: false, combined: (0, [R::ZERO; 2]) };
}

/// A sender who follows the protocol but for `wrong`. Returns its `u` and `v`.
fn sender<B: Ring, R: ExtensionOf<B>>(
    wrong: SenderErrors<B, R>,
    channel: &mut Channel,
) -> Result<(Vec<B>, Vec<R>)> {
    let repetitions = check::repetitions::<R>();
    let mut rng = rng(1);
    let keys = base::send(R::BITS as usize, SESSION, &mut rng, channel)?;
    let mut seeds: Vec<_> = keys.iter().map(|keys| keys.map(Prg::new)).collect();
    let mut u = vec![B::ZERO; N + repetitions * R::DEGREE];
    B::random_slice(&mut rng, &mut u);
    let mut v = vec![R::ZERO; u.len()];
    // The random entries of the check are a separate vector.
    for part in [0..N, N..u.len()] {
        for (i, seeds) in (0..).zip(&mut seeds) {
            let mut columns = [vec![B::ZERO; part.len()], vec![B::ZERO; part.len()]];
            for (seed, column) in seeds.iter_mut().zip(&mut columns) {
                B::random_slice(seed, column);
            }
            let mut tau = Vec::new();
            for (row, j) in part.clone().enumerate() {
                v[j] += R::power_of_two(i).mul_base(columns[0][row]);
                let error = match wrong.u {
                    Some((entry, bit, error)) if (entry, bit) == (j, i) => error,
                    _ => B::ZERO,
                };
                tau.push(columns[0][row] - columns[1][row] + u[j] + error);
            }
            wire::send(&tau, channel)?;
        }
    }
    let mut coefficients = Prg::new(channel.recv_block()?);
    let mut combined = Vec::new();
    for repetition in 0..repetitions {
        let mut chi = vec![R::ZERO; u.len()];
        R::random_slice(&mut coefficients, &mut chi[..N]);
        for i in 0..R::DEGREE {
            chi[N + repetition * R::DEGREE + i] = R::basis(i);
        }
        let mut v_sum = R::inner_product(&chi, &v);
        if let Some((entry, bit, error)) = wrong.u
            && wrong.made_up
        {
            v_sum += (chi[entry] * R::power_of_two(bit)).mul_base(error);
        }
        let u_sum = chi.iter().zip(&u).fold(R::ZERO, |sum, (chi, u)| sum + chi.mul_base(*u));
        combined.extend([u_sum, v_sum]);
    }
    let (repetition, errors) = wrong.combined;
    for (combined, error) in combined[2 * repetition..].iter_mut().zip(errors) {
        *combined += error;
    }
    wire::send(&combined, channel)?;
    channel.flush()?;
    Ok((u, v))
}

/// Whether the honest receiver with `x` goes on; then `w = u*x + v`, up to the sender's guess.
fn passes<B: Ring, R: ExtensionOf<B>>(x: R, wrong: SenderErrors<B, R>) -> bool {
    let (left, right) = memory::pair();
    let ((sent, _), (received, _)) = run_two_channels(
        channel(left),
        channel(right),
        |channel| sender(wrong, channel),
        |channel| {
            let mut rng = rng(2);
            let mut receiver = gilboa::Receiver::setup(x, SESSION, &mut rng, channel)?;
            let mut w = vec![R::ZERO; N];
            receiver.multiply_checked::<B>(&mut w, &mut rng, channel)?;
            Ok::<_, Error>(w)
        },
    );
    let (u, v) = sent.expect("the sender goes on after a failed check");
    let w = match received {
        Ok(w) => w,
        Err(Error::PeerMisbehaved(_)) => return false,
        Err(error) => panic!("{error}"),
    };
    for j in 0..N {
        let mut expected = x.mul_base(u[j]) + v[j];
        if let Some((entry, bit, error)) = wrong.u
            && entry == j
            && wrong.made_up
        {
            expected += R::power_of_two(bit).mul_base(error);
        }
        assert!(w[j] == expected, "entry {j}");
    }
    true
}

/// A wrong correction matters only where its bit of `x` is set: going on undetected means guessing
/// the bit, in either direction.
#[test]
fn another_u_in_one_correction() {
    fn run<B: Ring, R: ExtensionOf<B>>(bits: impl Iterator<Item = u32>) {
        let x = R::random(&mut rng(3));
        assert!(passes(x, SenderErrors::<B, R>::NOTHING), "honest");
        let (mut ones, mut runs) = (0, 0);
        for bit in bits {
            let is_set = x.bit(bit).unwrap_u8() == 1;
            let error = B::random(&mut rng(4));
            let last = N + check::repetitions::<R>() * R::DEGREE - 1;
            let entries = [(0, false), (3, true), (N, bit % 2 == 0), (last, bit % 2 == 1)];
            for (entry, made_up) in entries {
                let wrong =
                    SenderErrors { u: Some((entry, bit, error)), made_up, ..SenderErrors::NOTHING };
                assert_eq!(passes(x, wrong), is_set == made_up, "bit {bit} of x");
            }
            ones += u32::from(is_set);
            runs += 1;
        }
        assert!(ones > 0 && ones < runs, "both happen");
    }
    run::<Fp61, Fp61>((0..Fp61::BITS).step_by(3));
    run::<Gf128, Gf128>((0..Gf128::BITS).step_by(29));
    run::<Fp31, Fp31x4>((0..Fp31x4::BITS).step_by(13));
}

/// In each repetition alone, and in both values of it or in one.
#[test]
fn a_wrong_answer_to_the_challenge() {
    fn run<B: Ring, R: ExtensionOf<B>>() {
        let mut random = rng(5);
        let x = R::random(&mut random);
        let passes = |repetition: usize, errors: [R; 2]| {
            let combined = (repetition, errors);
            passes(x, SenderErrors::<B, R> { combined, ..SenderErrors::NOTHING })
        };
        for repetition in 0..check::repetitions::<R>() {
            for errors in [[R::ONE, R::ZERO], [R::ZERO, R::ONE], [R::ONE, R::ONE]] {
                assert!(!passes(repetition, errors), "repetition {repetition}");
            }
            // A sender who knows x passes with certainty.
            assert!(passes(repetition, [R::ONE, -x]), "repetition {repetition}");
        }
    }
    run::<Fp61, Fp61>();
    run::<Gf128, Gf128>();
    run::<Fp31, Fp31x4>();
}

/// Plans without a round, whose base is the output: the user's object returns nothing and is
/// unusable.
fn direct<R: VoleRing>() -> Plan {
    let plan = vole::plan::<R>(Some(100), Link::default(), Security::Malicious).expect("a plan");
    assert!(plan.schedule().is_empty());
    plan
}

/// Bytes that the value holder sends.
fn length<R: VoleRing<Kind = Vole<R>>>(plan: &Plan) -> u64 {
    let (key, value) = memory::pair();
    let (value, sent) = counted(value);
    honest::<Vole<R>>(Setup::Real, plan, &[100], key, value).assert_right("honest");
    sent.load(Ordering::Relaxed)
}

#[test]
fn the_key_holder_aborts() {
    fn run<R: VoleRing<Kind = Vole<R>>>(places: impl Fn(u64) -> Vec<u64>) {
        let plan = direct::<R>();
        let end = length::<R>(&plan);
        for place in places(end) {
            let (key, value) = memory::pair();
            let value = Tampered::flip(value, place, 2);
            let ends = honest::<Vole<R>>(Setup::Real, &plan, &[100], key, value);
            let what = format!("byte {place} of {end} over {}", R::NAME);
            assert!(matches!(ends.key, Err(Error::PeerMisbehaved(_))), "{what}");
            assert!(ends.w.is_empty(), "{what}");
        }
    }
    // u' and v', twice
    run::<Fp61>(|end| vec![end - 32, end - 24, end - 16, end - 8, end - 2]);
    // Corrections and answer of an OT extension with x as its difference: a batch of 100*128 OTs
    run::<Gf128>(|end| {
        let answer = end - 48;
        vec![answer - 1000, answer - 5, answer, answer + 20, answer + 47]
    });
}

/// No two parties each complete half of a plan.
#[test]
fn nothing_is_drawn_after_an_abort() {
    let plan = direct::<Fp61>();
    let end = length::<Fp61>(&plan);
    let (key, value) = memory::pair();
    let value = Tampered::flip(value, end - 8, 1);
    run_two_channels(
        channel(key),
        channel(value),
        |channel| {
            let mut receiver = vole::Receiver::<Fp61>::setup(&plan, None, SESSION, rng(3), channel)
                .expect("setup");
            let mut w = vec![Fp61::ZERO; 100];
            assert!(receiver.extend(&mut w, channel).is_err());
            assert!(w.iter().all(|w| *w == Fp61::ZERO), "nothing is given");
            // Not because of a missing channel
            let (mut other, _peer) = Channel::memory_pair();
            for n in [0, 1, 100] {
                let again = receiver.extend(&mut w[..n], &mut other);
                assert!(matches!(again, Err(Error::Broken)));
            }
        },
        |channel| {
            let mut sender =
                vole::Sender::<Fp61>::setup(&plan, SESSION, rng(4), channel).expect("setup");
            let (mut u, mut v) = (vec![Fp61::ZERO; 100], vec![Fp61::ZERO; 100]);
            let _ = sender.extend(&mut u, &mut v, channel);
        },
    );
}
