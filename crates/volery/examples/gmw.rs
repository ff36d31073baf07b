//! A Boolean circuit of 100 layers of 1000 ANDs between two parties over TCP, by GMW with
//! authenticated bits: a party that changes a share is caught when it is opened.
//!
//! ```text
//! cargo run --release -p volery --features mpc --example gmw
//! ```

use volery::channel::run_two_parties_tcp;
use volery::field::Ring as _;
use volery::mpc::tinyot;
use volery::prelude::*;

const WIDTH: usize = 1000;
const LAYERS: usize = 100;

/// A party with the input `own`: `x` of the sender, `y` of the receiver. Each layer takes `x` and
/// `y` to `y` and `x*y + x`. With `cheats` the party opens other shares than it has.
fn run(role: Role, own: &[F2], cheats: bool, channel: &mut Channel) -> Result<Vec<F2>, Error> {
    let total = tinyot::cots(WIDTH * LAYERS) + 2 * WIDTH;
    let plan = cot::plan(Some(total as u64), Link::default(), Security::Malicious);
    let mut session = Session::begin(channel, &plan.hello(role))?;
    let mut party = tinyot::start(&plan, role, &mut session)?;
    let mut triples = tinyot::triples(WIDTH * LAYERS, &mut party, &mut session)?;
    let [x, y] = role.sides([own, &[F2::ZERO; WIDTH]]);
    let (mut x, mut y) = (party.input(x, &mut session)?, party.input(y, &mut session)?);
    for layer in (0..LAYERS).rev() {
        let triples = triples.each_mut().map(|part| part.split_off(WIDTH * layer));
        let mut z = party.multiply([&x, &y], triples, &mut session)?;
        z.add(&x);
        (x, y) = (y, z);
    }
    if cheats {
        y.add(&x);
    }
    let output = party.open(&y, &mut session)?;
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
    let [mut x, mut y] = inputs;
    for _ in 0..LAYERS {
        (x, y) = (y.clone(), x.iter().zip(&y).map(|(x, y)| *x * *y + *x).collect());
    }
    ([left, right], y)
}

fn main() -> Result<(), Error> {
    let ([left, right], expected) = both(None);
    assert!(left? == expected && right? == expected);
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
