//! Multiplication triples over F2, as in GMW: shares of random bits `a`, `b` and of `c = a*b`.
//!
//! ```text
//! Sender                                  Receiver
//! 1. m_0, m_1  <------------- random OT ------------->  u, m_u
//! 2. u', m'_u' <------------- random OT ------------->  m'_0, m'_1
//! 3. both, with the lowest bits of all messages:
//!    a = m_0 + m_1,   b = u',   c = a*b + m_0 + m'_u'      (sender; the receiver likewise)
//! ```
//!
//! `a_0*b_1 = (m_0 + m_1)*u = m_0 + m_u`, and likewise in the other direction: Asharov, Lindell,
//! Schneider, Zohner, CCS 2013, section 5.1.
//!
//! Security: semi-honest, also over malicious-secure OTs: nothing ties a party's share to what it
//! opens later. [`crate::tinyot`] is secure against a malicious peer.
//!
//! Cost: that of one correlated OT in each direction for each triple, and no message.

use volery_channel::{Channel, Result, Role};
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::{Block, bits};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::in_order;

/// OTs made at a time; whole bytes of bits.
const BATCH: usize = 1 << 14;

/// A party's shares of triples: packed bits, low bit first, unused bits of the last byte zero.
/// Wiped when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Triples {
    /// Number of triples.
    pub len: usize,
    /// Shares of the first factors.
    pub a: Vec<u8>,
    /// Shares of the second factors.
    pub b: Vec<u8>,
    /// Shares of the products.
    pub c: Vec<u8>,
}

/// `n` random triples.
pub fn triples(
    n: usize,
    role: Role,
    mut ots: (&mut convert::Sender<impl CotSender>, &mut convert::Receiver<impl CotReceiver>),
    channel: &mut Channel,
) -> Result<Triples> {
    let zeros = || vec![0; bits::bytes_for(n)];
    let mut out = Triples { len: n, a: zeros(), b: zeros(), c: zeros() };
    let mut pairs = Zeroizing::new(vec![[Block::ZERO; 2]; n.min(BATCH)]);
    let mut chosen = Zeroizing::new(vec![Block::ZERO; n.min(BATCH)]);
    let parts = out.a.chunks_mut(BATCH / 8).zip(out.b.chunks_mut(BATCH / 8));
    for (start, ((a, b), c)) in (0..).step_by(BATCH).zip(parts.zip(out.c.chunks_mut(BATCH / 8))) {
        let count = BATCH.min(n - start);
        let (pairs, chosen) = (&mut pairs[..count], &mut chosen[..count]);
        in_order(
            role,
            &mut ots,
            channel,
            |ots, channel| ots.0.random(pairs, channel), // step 1
            |ots, channel| ots.1.random(b, chosen, channel), // step 2
        )?;
        bits::lowest_bits(chosen, c);
        for (i, pairs) in pairs.chunks(8).enumerate() {
            let (mut zero, mut sum) = (0, 0);
            for (k, [m_0, m_1]) in pairs.iter().enumerate() {
                zero |= (m_0.low() as u8 & 1) << k;
                sum |= ((*m_0 ^ *m_1).low() as u8 & 1) << k;
            }
            a[i] = sum;
            c[i] ^= sum & b[i] ^ zero; // step 3
        }
    }
    Ok(out)
}
