//! Correlated OT in a ring: additive shares of the product of one party's bit with the other
//! party's value.
//!
//! ```text
//! P1: d_1, d_2, ..                        P2: bits s_1, s_2, ..
//! 1. h_i0, h_i1   <------ random OT on s_i, for a batch of i ------>   h_i(s_i)
//! 2.              ---- c_i = h_i0 - h_i1 + d_i, for the batch ---->
//! 3. p_i = -h_i0                          q_i = h_i(s_i) + s_i*c_i
//! ```
//!
//! so that `p_i + q_i = s_i*d_i`: a correlated OT in the ring. P1 knows `p_i` before it fixes
//! `d_(i+1)`, so a value may depend on the shares of earlier products, and a whole circuit in which
//! P2 knows all the bits takes one message from each party. [`crate::switching`] is built on this.
//!
//! Security: semi-honest. P1 sees the OTs only; for P2 each `c_i` is masked by the message that it
//! did not choose. A P1 that sends another `c_i` adds an error to the product if the bit is one,
//! and learns nothing by it. Over fp61 the masks are 64 random bits modulo `p`: each product is
//! within 2^-61 of a uniform mask, and `N` of them within `N * 2^-61`. After a failed call nothing
//! more is sent or returned.
//!
//! Cost: for each product one random OT with a chosen bit (beside the source of correlated OTs, one
//! bit from P2), and a ring element from P1. 2 messages for each 2^20 products.

use subtle::Choice;
use volery_channel::{Channel, Error, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_pcg::wire;
use volery_primitives::{Block, bits, prg::Prg};
use zeroize::Zeroizing;

/// Products whose OTs are computed at once: bounds the memory at 64 bytes for each.
const BATCH: usize = 1 << 20;

/// A nearly uniform element, of a message of an OT: [`Ring::from_block`] need not give one.
fn mask<R: Ring>(pad: Block) -> R {
    match R::WORDS {
        0..=2 => R::from_words(&[pad.low(), pad.high()][..R::WORDS]),
        _ => R::random(&mut Prg::new(pad)),
    }
}

/// P1, the holder of the values.
pub struct Sender<'a, R: Ring, C> {
    ot: &'a mut convert::Sender<C>,
    channel: &'a mut Channel,
    /// Number of products that have no OT yet.
    left: usize,
    /// `h_0, h_1` of the batch.
    pads: Zeroizing<Vec<[Block; 2]>>,
    /// `c` of the products of the batch so far.
    corrections: Vec<R>,
    /// Whether a call failed: then there are no pads.
    failed: bool,
}

/// P2, the holder of the bits.
pub struct Receiver<'a, R: Ring, C> {
    ot: &'a mut convert::Receiver<C>,
    channel: &'a mut Channel,
    /// `s`, packed, low bit first.
    bits: &'a [u8],
    count: usize,
    /// Number of returned products.
    done: usize,
    /// `h(s)` of the batch.
    pads: Zeroizing<Vec<Block>>,
    /// `c` of the batch.
    corrections: Vec<R>,
    /// Whether a call failed.
    failed: bool,
}

impl<'a, R: Ring, C: CotSender> Sender<'a, R, C> {
    /// For `count` products.
    pub fn new(count: usize, ot: &'a mut convert::Sender<C>, channel: &'a mut Channel) -> Self {
        Self {
            ot,
            channel,
            left: count,
            pads: Zeroizing::default(),
            corrections: Vec::new(),
            failed: false,
        }
    }

    /// P1's share of the product of `d` with P2's next bit.
    ///
    /// # Panics
    /// If all announced products have been requested.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails; [`Error::Broken`] if a call failed before.
    pub fn multiply(&mut self, d: R) -> Result<R> {
        if self.corrections.len() == self.pads.len() {
            self.next_batch()?;
        }
        let [zero, one] = self.pads[self.corrections.len()].map(mask::<R>);
        self.corrections.push(zero - one + d);
        Ok(-zero)
    }

    /// Sends the rest of step 2.
    ///
    /// # Panics
    /// If fewer products were requested than announced: P2 would wait for them.
    ///
    /// # Errors
    /// If the channel fails; [`Error::Broken`] if a call failed before.
    pub fn finish(mut self) -> Result<()> {
        // mutant(products-finish-failed): false
        if self.failed {
            return Err(Error::Broken);
        }
        assert!(
            self.left == 0 && self.corrections.len() == self.pads.len(),
            "fewer products requested than announced"
        );
        self.send()
    }

    #[cold]
    fn next_batch(&mut self) -> Result<()> {
        if self.failed {
            return Err(Error::Broken);
        }
        assert!(self.left > 0, "more products requested than announced");
        // Set until the batch is complete: unfilled pads must not serve as masks.
        self.failed = true;
        self.pads = Zeroizing::default();
        self.send()?;
        let batch = self.left.min(BATCH);
        let mut pads = Zeroizing::new(vec![[Block::ZERO; 2]; batch]);
        self.ot.random_chosen(&mut pads, self.channel)?; // step 1
        self.pads = pads;
        self.left -= batch;
        self.failed = false;
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        let sent = wire::send(&self.corrections, self.channel); // step 2
        self.corrections.clear();
        sent?;
        self.channel.flush()
    }
}

impl<'a, R: Ring, C: CotReceiver> Receiver<'a, R, C> {
    /// For `count` products with the bits of `bits`, packed, low bit first.
    ///
    /// # Panics
    /// If `bits` has fewer than `count` bits.
    pub fn new(
        bits: &'a [u8],
        count: usize,
        ot: &'a mut convert::Receiver<C>,
        channel: &'a mut Channel,
    ) -> Self {
        assert!(bits::bytes_for(count) <= bits.len(), "fewer bits than products");
        Self {
            ot,
            channel,
            bits,
            count,
            done: 0,
            pads: Zeroizing::default(),
            corrections: Vec::new(),
            failed: false,
        }
    }

    /// P2's share of the product of its next bit with the sum of P1's value and its own value `d`.
    ///
    /// # Panics
    /// If all products have been requested.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails, or P1 sent a value that is not an element of the
    /// ring; [`Error::Broken`] if a call failed before.
    pub fn multiply(&mut self, d: R) -> Result<R> {
        assert!(self.done < self.count, "more products requested than bits given");
        let place = self.done % BATCH;
        if place == 0 {
            self.next_batch()?;
        }
        let bit = Choice::from((self.bits[self.done / 8] >> (self.done % 8)) & 1);
        self.done += 1;
        let chosen = R::conditional_select(&R::ZERO, &(self.corrections[place] + d), bit); // step 3
        Ok(mask::<R>(self.pads[place]) + chosen)
    }

    #[cold]
    fn next_batch(&mut self) -> Result<()> {
        // mutant(products-receiver-failed): false
        if self.failed {
            return Err(Error::Broken);
        }
        self.failed = true;
        self.pads = Zeroizing::default();
        let batch = (self.count - self.done).min(BATCH);
        let mut pads = Zeroizing::new(vec![Block::ZERO; batch]);
        // A batch starts at a whole byte.
        let mut bits =
            Zeroizing::new(self.bits[self.done / 8..][..bits::bytes_for(batch)].to_vec());
        bits::clear_from(&mut bits, batch);
        self.ot.random_chosen(&bits, &mut pads, self.channel)?; // step 1
        self.corrections.resize(batch, R::ZERO);
        // mutant(products-canonical): ignore
        wire::recv(
            &mut self.corrections,
            "the correction of a product is not in canonical form",
            self.channel,
        )?; // step 2
        self.pads = pads;
        self.failed = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use volery_channel::run_two_unchecked;
    use volery_field::{F2, Fp31x4, Fp61, Fp64, Gf128, Z64};

    use super::*;
    use crate::testing::{ots, over_ots};

    /// Checks a chain of products, in which each value is the previous product plus one: P1's
    /// shares feed its values.
    fn chain<R: Ring>(count: usize) {
        let mut rng = Prg::new(Block::from(count as u128));
        let mut bits = vec![0; bits::bytes_for(count)];
        rng.fill_bytes(&mut bits);
        let mut fresh = [vec![R::ZERO; count], vec![R::ZERO; count]];
        fresh.iter_mut().for_each(|fresh| R::random_slice(&mut rng, fresh));
        let (left, right, _) = over_ots(
            |ot, channel| {
                let mut products = Sender::new(count, ot, channel);
                let mut last = R::ZERO;
                let shares = fresh[0].iter().map(|fresh| {
                    last = products.multiply(last + *fresh).unwrap();
                    last
                });
                let shares: Vec<_> = shares.collect();
                products.finish().unwrap();
                shares
            },
            |ot, channel| {
                let mut products = Receiver::new(&bits, count, ot, channel);
                let mut last = R::ZERO;
                let shares = fresh[1].iter().map(|fresh| {
                    last = products.multiply(last + *fresh).unwrap();
                    last
                });
                shares.collect::<Vec<_>>()
            },
        );
        let mut last = R::ZERO;
        for i in 0..count {
            let value = last + fresh[0][i] + fresh[1][i];
            last = if bits::bit(&bits, i) { value } else { R::ZERO };
            assert!(left[i] + right[i] == last, "product {i} of {count}");
        }
    }

    /// A pad of 64 bits for an element of 64 would be some elements twice as often as others.
    #[test]
    fn masks_are_of_all_of_a_pad() {
        let pads = [Block::from(7), Block::from(7 | 1 << 64)];
        assert!(mask::<Fp64>(pads[0]) != mask(pads[1]));
        assert!(mask::<Fp31x4>(pads[0]) != Fp31x4::from_block(pads[0]));
    }

    #[test]
    fn shares_add_up_to_the_product() {
        for count in [0, 1, 2, 7, 8, 9, 1009] {
            chain::<Fp61>(count);
            chain::<Z64>(count);
            chain::<Gf128>(count);
            chain::<F2>(count);
        }
        chain::<Z64>(BATCH + 3);
    }

    /// A P2 whose message is refused gets nothing, even if P1 requests more products.
    #[test]
    fn nothing_is_sent_after_a_refused_difference() {
        let (mut ot, _) = ots();
        run_two_unchecked(
            |channel| {
                let mut products = Sender::<Z64, _>::new(3, &mut ot, channel);
                let first = products.multiply(Z64::ONE);
                assert!(matches!(first, Err(Error::PeerMisbehaved(_))));
                for _ in 0..3 {
                    let next = products.multiply(Z64::ONE);
                    assert!(matches!(next, Err(Error::Broken)));
                }
                assert!(matches!(products.finish(), Err(Error::Broken)));
                assert_eq!(channel.stats().bytes_sent, 0);
            },
            |channel| {
                // One bit for each product, and one more that belongs to no product.
                channel.send(&[0b1000]).unwrap();
                channel.flush().unwrap();
                assert!(channel.recv(&mut [0; 1]).is_err());
            },
        );
    }

    #[test]
    fn nothing_is_handed_out_after_a_refused_correction() {
        let (_, mut ot) = ots();
        run_two_unchecked(
            |channel| {
                channel.recv(&mut [0; 1]).unwrap();
                channel.send(&[0xff; 16]).unwrap();
                channel.flush().unwrap();
            },
            |channel| {
                let mut products = Receiver::<Fp61, _>::new(&[3], 2, &mut ot, channel);
                let first = products.multiply(Fp61::ONE);
                assert!(matches!(first, Err(Error::PeerMisbehaved(_))));
                for _ in 0..3 {
                    let next = products.multiply(Fp61::ONE);
                    assert!(matches!(next, Err(Error::Broken)));
                }
            },
        );
    }
}
