//! A Boolean circuit of 100 layers of 1000 ANDs between two parties over TCP, by GMW with
//! authenticated bits: a party that changes a share is caught when it is opened.
//!
//! ```text
//! cargo run --release -p volery --features mpc --example gmw
//! ```

use std::time::Instant;

use volery::channel::run_two_parties_tcp;
use volery::field::Ring as _;
use volery::mpc::authenticated::{Party, Values};
use volery::mpc::tinyot;
use volery::prelude::*;
use volery::vole::{VoleReceiver, VoleSender};

const WIDTH: usize = 1000;
const LAYERS: usize = 100;

/// The circuit over shares: its layers take `x` and `y` to `y` and `x*y + x`.
///
/// It runs over any sources; with `cheats` this party opens other shares than it has.
fn evaluate(
    [mut x, mut y]: [Values<Gf128, F2>; 2],
    cheats: bool,
    party: &mut Party<impl VoleSender<Gf128, F2>, impl VoleReceiver<Gf128>, Gf128, F2>,
    channel: &mut Channel,
) -> Result<Vec<F2>, Error> {
    let mut triples = tinyot::triples(WIDTH * LAYERS, party, channel)?;
    for layer in (0..LAYERS).rev() {
        let triples = triples.each_mut().map(|part| part.split_off(WIDTH * layer));
        let mut z = party.multiply([&x, &y], triples, channel)?;
        z.add(&x);
        (x, y) = (y, z);
    }
    if cheats {
        y.add(&x);
    }
    party.open(&y, channel)
}

/// The circuit in the clear.
fn plain([mut x, mut y]: [Vec<F2>; 2]) -> Vec<F2> {
    for _ in 0..LAYERS {
        let z = x.iter().zip(&y).map(|(x, y)| *x * *y + *x).collect();
        (x, y) = (y, z);
    }
    y
}

/// A party with the input `own`: `x` of the sender, `y` of the receiver.
fn run(role: Role, own: &[F2], cheats: bool, channel: &mut Channel) -> Result<Vec<F2>, Error> {
    let total = tinyot::cots(WIDTH * LAYERS) + 2 * WIDTH;
    let plan = cot::plan(Some(total as u64), Link::default(), Security::Malicious);
    let mut session = Session::begin(channel, &plan.hello(role))?;
    let mut party = tinyot::start(&plan, role, &mut session)?;
    let nothing = vec![F2::ZERO; WIDTH];
    let [x, y] = role.sides([own, &nothing]);
    let inputs = [party.input(x, &mut session)?, party.input(y, &mut session)?];
    let output = evaluate(inputs, cheats, &mut party, &mut session)?;
    session.flush()?;
    Ok(output)
}

/// Both parties' outputs, and that of the circuit in the clear.
fn both(cheat: Option<Role>) -> ([Result<Vec<F2>, Error>; 2], Vec<F2>) {
    let mut rng = Prg::new(Block::from(7));
    let mut inputs = [vec![F2::ZERO; WIDTH], vec![F2::ZERO; WIDTH]];
    inputs.iter_mut().for_each(|input| F2::random_slice(&mut rng, input));
    let party = |role: Role| {
        let own = &inputs[role as usize];
        move |channel: &mut Channel| run(role, own, cheat == Some(role), channel)
    };
    let (left, right) = run_two_parties_tcp(party(Role::Sender), party(Role::Receiver));
    ([left, right], plain(inputs))
}

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Error> {
    let start = Instant::now();
    let ([left, right], expected) = both(None);
    assert!(left? == expected && right? == expected);
    println!("{} ANDs in {LAYERS} layers: {:.2?}", WIDTH * LAYERS, start.elapsed());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parties_get_the_output_of_the_circuit() {
        main().expect("the protocol succeeds");
    }

    #[test]
    fn a_party_that_changes_a_share_is_caught() {
        let ([_, honest], _) = both(Some(Role::Sender));
        let Err(Error::PeerMisbehaved(why)) = honest else { panic!("not caught") };
        assert_eq!(why, "an opened value is not the authenticated one");
    }
}
