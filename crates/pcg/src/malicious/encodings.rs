//! Values that are not ring elements, at every place where one is read: rejected by name.

use std::sync::atomic::Ordering;

use volery_channel::{Error, Result, memory, run_two_channels, tamper::Tampered};
use volery_field::{Fp61, Ring};

use super::{Ends, FEW, Setup, Stage, channel, counted, honest, plan};
use crate::{Link, Noise, Plan, Security, Trees, check, correlation::Vole, derandomize, vole};

/// Bytes of an element; the highest bit of the last one is above the prime.
const SIZE: u64 = Fp61::BYTES as u64;

type Fields = Vole<Fp61>;

/// All bytes of the honest parties: the key holder's, and the value holder's.
fn lengths(setup: Setup, plan: &Plan, n: usize) -> [u64; 2] {
    let (key, value) = memory::pair();
    let ((key, by_key), (value, by_value)) = (counted(key), counted(value));
    honest::<Fields>(setup, plan, &[n], key, value).assert_right("honest");
    [by_key, by_value].map(|sent| sent.load(Ordering::Relaxed))
}

/// Changes the key holder's message at an element that begins at this byte, or the value holder's.
fn changed(setup: Setup, plan: &Plan, n: usize, by_key: bool, at: u64) -> Ends<Fields> {
    let (key, value) = memory::pair();
    let at = at + SIZE - 1;
    if by_key {
        honest(setup, plan, &[n], Tampered::flip(key, at, 0x80), value)
    } else {
        honest(setup, plan, &[n], key, Tampered::flip(value, at, 0x80))
    }
}

fn assert_refused(result: &Result<()>, what: &str) {
    let Err(Error::PeerMisbehaved(text)) = result else {
        panic!("{what}: {result:?}");
    };
    assert_eq!(*text, format!("{what} is not in canonical form"));
}

/// In the trees and in the check, first and last of each.
#[test]
fn elements_of_a_round() {
    let elements = SIZE * check::repetitions::<Fp61>() as u64;
    for trees in [Trees::Ggm, Trees::Half] {
        let plan = plan(Fields::KIND, trees, Noise::Regular, FEW);
        let setup = Setup::Dealt(1);
        let [key, value] = lengths(setup, &plan, FEW);
        let refuses = |by_key: bool, at: u64, what: &str| {
            let ends = changed(setup, &plan, FEW, by_key, at);
            assert_refused(if by_key { &ends.value } else { &ends.key }, what);
        };
        let values = SIZE * plan.step(0, 0).trees as u64;
        for at in [0, values - SIZE] {
            refuses(false, at, "the correction of u");
        }
        let said = key - (32 + 32 + elements);
        for at in [said - values, said - SIZE] {
            refuses(true, at, "the masked sum of a tree");
        }
        for last in [SIZE, elements] {
            let coefficient = value - elements - last;
            refuses(false, coefficient, "the masked coefficient of the check");
            refuses(false, value - last, "the value of the check");
            refuses(true, key - last, "the opened value of the check");
        }
    }
}

#[test]
fn elements_of_a_product() {
    let plan = vole::plan::<Fp61>(Some(100), Link::default(), Security::Malicious).expect("a plan");
    assert!(plan.schedule().is_empty());
    let [_, end] = lengths(Setup::Real, &plan, 100);
    let answer = end - 2 * SIZE * check::repetitions::<Fp61>() as u64;
    for (at, what) in [
        (answer - SIZE, "a product's correction"),
        (answer, "a value of the product's check"),
        (end - SIZE, "a value of the product's check"),
    ] {
        let ends = changed(Setup::Real, &plan, 100, false, at);
        assert_refused(&ends.key, what);
    }
}

#[test]
fn elements_of_chosen_inputs() {
    let sizes = [0, 2, 3, 5].map(|element| SIZE * element);
    for (at, what) in sizes.into_iter().zip(["u", "u", "v", "v"]) {
        let (left, right) = memory::pair();
        let left = Tampered::flip(left, at + SIZE - 1, 0x80);
        let (_, (received, _)) = run_two_channels(
            channel(left),
            channel(right),
            |channel| {
                let zeros = [Fp61::ZERO; 3];
                derandomize::send((&zeros, &zeros), (&zeros, &zeros), channel)
            },
            |channel| derandomize::receive::<Fp61, _>(Fp61::ONE, &mut [Fp61::ZERO; 3], channel),
        );
        assert_refused(&received, &format!("the correction of {what}"));
    }
}
