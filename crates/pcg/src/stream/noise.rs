//! The noise of a round: its positions and values.
//!
//! The places are the value holder's secret. They index its own memory and are sorted there, in
//! time that depends on them; the values take part in arithmetic only.

use volery_field::Ring;
use volery_primitives::{bits, prg::Prg};
use zeroize::{Zeroize, Zeroizing};

use crate::{Noise, correlation::Correlation, mpcot::Layout};

/// The noise of a round, wiped when dropped: places, in ascending order, with their values.
pub(super) struct Noises<B: Ring>(pub(super) Vec<(usize, B)>);

/// Setup, step 1: the places of the noise, one in each block or anywhere, all different, in
/// ascending order, with their values.
pub(super) fn sample_noise<K: Correlation>(
    layout: &Layout,
    t: usize,
    rng: &mut Prg,
) -> Noises<K::Base> {
    let mut places = Zeroizing::new(Vec::with_capacity(t));
    match layout.noise() {
        Noise::Regular => places.extend((0..layout.batch().trees()).map(|block| {
            let places = layout.batch().leaves_of(block);
            places.start + rng.below(places.len() as u64) as usize
        })),
        Noise::Uniform => {
            let mut taken = Zeroizing::new(vec![0; bits::bytes_for(layout.n())]);
            while places.len() < t {
                let place = rng.below(layout.n() as u64) as usize;
                if !bits::bit(&taken, place) {
                    bits::set(&mut taken, place, true);
                    places.push(place);
                }
            }
            places.sort_unstable();
        }
    }
    Noises(places.iter().map(|place| (*place, K::noise(rng))).collect())
}

impl<B: Ring> Noises<B> {
    /// Removes the points without a tree.
    pub(super) fn drop_points(&mut self, dropped: &[usize]) {
        for point in dropped {
            self.0[*point].1 = B::ZERO;
        }
    }
}

impl<B: Ring> Drop for Noises<B> {
    fn drop(&mut self) {
        for (place, value) in &mut self.0 {
            place.zeroize();
            value.zeroize();
        }
    }
}
