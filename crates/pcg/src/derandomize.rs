//! Vector-OLE with chosen inputs of the sender, from random vector-OLE.
//!
//! Boyle, Couteau, Gilboa, Ishai, *Compressing Vector OLE*, CCS 2018, Proposition 10 (section 7 of
//! the 2019 paper).
//!
//! ```text
//! Sender: u, v (chosen), u', v' (random)      Receiver: x, w' = u'*x + v' (random)
//! 1. d = u - u',  e = v - v'
//! 2.                  ---- d, e ---->
//! 3.                                          w = w' + d*x + e  =  u*x + v
//! ```
//!
//! The receiver's `x` is that of its random vector-OLE. Where only `u` is given and `v` may be
//! random ([`send_input`], [`receive_input`]), `e` is left out and `v = v'`: the parties then hold
//! `w` and `-v`, which are additive shares of `u*x`.
//!
//! Security: that of the random vector-OLE consumed, in either model: `u'` and `v'` mask the
//! sender's inputs, and a sender who sends other `d, e` has only chosen other inputs. Each random
//! vector-OLE may be consumed once.
//!
//! Cost: 1 message of `2n` ring elements (`n` for the input alone), sender to receiver.

use volery_channel::{Channel, Result};
use volery_field::{ExtensionOf, Ring};

use crate::wire;

/// Sender: consumes the random `(u_random, v_random)` for the chosen `(u, v)`.
pub fn send<B: Ring, R: ExtensionOf<B>>(
    (u, v): (&[B], &[R]),
    (u_random, v_random): (&[B], &[R]),
    channel: &mut Channel,
) -> Result<()> {
    assert_eq!(u.len(), v.len(), "u and v have one length");
    wire::send(&difference(u, u_random), channel)?; // step 2
    wire::send(&difference(v, v_random), channel)?;
    channel.flush()
}

/// Receiver: turns the random `w` into that of the sender's chosen inputs.
///
/// # Errors
/// If the channel fails, or the sender's message has a value that is not an element of the ring.
/// The caller must not use `w` then.
pub fn receive<B: Ring, R: ExtensionOf<B>>(x: R, w: &mut [R], channel: &mut Channel) -> Result<()> {
    receive_input::<B, R>(x, w, channel)?;
    let mut e = vec![R::ZERO; w.len()];
    // mutant(chosen-canonical-v): ignore
    wire::recv(&mut e, "the correction of v is not in canonical form", channel)?;
    R::add_slice(w, &e);
    Ok(())
}

/// Sender: consumes the random `u_random` for the chosen `u`; `v` does not change.
pub fn send_input<B: Ring>(u: &[B], u_random: &[B], channel: &mut Channel) -> Result<()> {
    wire::send(&difference(u, u_random), channel)?; // step 2
    channel.flush()
}

/// Receiver: turns the random `w` into that of the sender's chosen `u`.
///
/// # Errors
/// If the channel fails, or the sender's message has a value that is not an element of the ring.
/// The caller must not use `w` then.
pub fn receive_input<B: Ring, R: ExtensionOf<B>>(
    x: R,
    w: &mut [R],
    channel: &mut Channel,
) -> Result<()> {
    let mut d = vec![B::ZERO; w.len()];
    // mutant(chosen-canonical-u): ignore
    wire::recv(&mut d, "the correction of u is not in canonical form", channel)?; // step 2
    R::axpy_base(w, x, &d); // step 3
    Ok(())
}

/// Step 1.
fn difference<R: Ring>(chosen: &[R], random: &[R]) -> Vec<R> {
    let mut difference = chosen.to_vec();
    R::sub_slice(&mut difference, random);
    difference
}

#[cfg(test)]
mod tests {
    use volery_channel::run_two_parties;
    use volery_field::{F2, Fp61, Gf128, Z64};
    use volery_primitives::{Block, prg::Prg};

    use super::*;

    fn check<B: Ring, R: ExtensionOf<B>>(n: usize) {
        let mut dealer = Prg::new(Block::from(n as u128));
        let mut base = || {
            let mut out = vec![B::ZERO; n];
            B::random_slice(&mut dealer, &mut out);
            out
        };
        let (u, u_random) = (base(), base());
        let mut extension = || {
            let mut out = vec![R::ZERO; n];
            R::random_slice(&mut dealer, &mut out);
            out
        };
        let (v, v_random) = (extension(), extension());
        let x = R::random(&mut dealer);
        let mut w_random = v_random.clone();
        R::axpy_base(&mut w_random, x, &u_random);
        let ((), (w, shares)) = run_two_parties(
            |channel| {
                send((&u, &v), (&u_random, &v_random), channel).unwrap();
                send_input(&u, &u_random, channel).unwrap();
            },
            |channel| {
                let mut w = w_random.clone();
                receive::<B, R>(x, &mut w, channel).unwrap();
                let mut shares = w_random.clone();
                receive_input::<B, R>(x, &mut shares, channel).unwrap();
                (w, shares)
            },
        );
        for i in 0..n {
            assert!(w[i] == x.mul_base(u[i]) + v[i]);
            assert!(shares[i] == x.mul_base(u[i]) + v_random[i]);
        }
    }

    #[test]
    fn the_receiver_gets_the_chosen_line() {
        for n in [0, 1, 2, 63, 64, 65, 1009] {
            check::<Fp61, Fp61>(n);
            check::<Z64, Z64>(n);
            check::<Gf128, Gf128>(n);
            check::<F2, Gf128>(n);
        }
    }
}
