//! Sessions, seeds and checkers shared by the tests of this crate.

use volery_channel::SessionId;
use volery_ot::{CotReceiver, CotSender};
use volery_primitives::Block;
use volery_primitives::prg::Prg;

/// Lengths around every rounding: bytes, blocks of 128, batches of 2^15, and primes.
pub(crate) const LENGTHS: [usize; 17] =
    [0, 1, 2, 7, 8, 9, 127, 128, 129, 251, 1023, 1024, 1025, 4099, 32767, 32768, 32769];

pub(crate) const SESSION: SessionId = SessionId::from_bytes([0x5a; 32]);

pub(crate) fn rng(seed: u128) -> Prg {
    Prg::new(Block::from(seed))
}

pub(crate) fn bit(bits: &[u8], i: usize) -> bool {
    (bits[i / 8] >> (i % 8)) & 1 == 1
}

pub(crate) fn random_bits(n: usize, seed: u128) -> Vec<u8> {
    let mut bits = vec![0; n.div_ceil(8)];
    rng(seed).fill_bytes(&mut bits);
    bits
}

/// The sender's state after some calls of `extend`.
pub(crate) struct SenderOutput {
    pub(crate) delta: Block,
    pub(crate) v: Vec<Vec<Block>>,
}

/// The receiver's state after some calls of `extend`.
pub(crate) struct ReceiverOutput {
    pub(crate) u: Vec<Vec<u8>>,
    pub(crate) w: Vec<Vec<Block>>,
}

/// One call for each length.
pub(crate) fn extend_sender(
    cot: &mut impl CotSender,
    lengths: &[usize],
    channel: &mut volery_channel::Channel,
) -> volery_ot::Result<SenderOutput> {
    let mut v = Vec::new();
    for &n in lengths {
        v.push(vec![Block::ZERO; n]);
        let last = v.len() - 1;
        cot.extend(&mut v[last], channel)?;
    }
    Ok(SenderOutput { delta: cot.delta(), v })
}

/// One call for each length.
pub(crate) fn extend_receiver(
    cot: &mut impl CotReceiver,
    lengths: &[usize],
    channel: &mut volery_channel::Channel,
) -> volery_ot::Result<ReceiverOutput> {
    let (mut u, mut w) = (Vec::new(), Vec::new());
    for &n in lengths {
        let mut bits = vec![0xff; n.div_ceil(8)];
        let mut values = vec![Block::ZERO; n];
        cot.extend(&mut bits, &mut values, channel)?;
        u.push(bits);
        w.push(values);
    }
    Ok(ReceiverOutput { u, w })
}

/// `w = v + u*delta` everywhere.
pub(crate) fn is_cot(delta: Block, v: &[Block], u: &[u8], w: &[Block]) -> bool {
    v.len() == w.len() && (0..v.len()).all(|i| w[i] == if bit(u, i) { v[i] ^ delta } else { v[i] })
}

/// Checks `w = v + u*delta` everywhere, that no value repeats, that unused bits are zero, and that
/// `u` looks random.
pub(crate) fn assert_cot(sent: &SenderOutput, received: &ReceiverOutput) {
    assert_ne!(sent.delta, Block::ZERO);
    assert_eq!(sent.v.len(), received.w.len());
    let mut seen = std::collections::HashSet::new();
    let (mut ones, mut total) = (0u64, 0u64);
    let mut bytes = [0u64; 256];
    for ((v, w), u) in sent.v.iter().zip(&received.w).zip(&received.u) {
        assert!(is_cot(sent.delta, v, u, w), "w = v + u*delta for {} of them", v.len());
        assert!(v.iter().all(|&v| seen.insert(u128::from(v))), "no value twice");
        assert!((v.len()..8 * u.len()).all(|i| !bit(u, i)), "unused bits are zero");
        ones += u.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
        total += v.len() as u64;
        for &byte in &u[..v.len() / 8] {
            bytes[usize::from(byte)] += 1;
        }
    }
    // Six standard deviations: an honest run fails with probability 2^-28.
    let deviation = (2.0 * ones as f64 - total as f64).abs();
    assert!(deviation <= 6.0 * (total as f64).sqrt() + 1.0, "{ones} ones of {total}");
    let count = bytes.iter().sum::<u64>() as f64;
    if count >= 2560.0 {
        let expected = count / 256.0;
        let chi_square: f64 = bytes.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
        // 255 degrees of freedom: mean 255, standard deviation 22.6.
        assert!((120.0..420.0).contains(&chi_square), "chi-square of the bytes of u: {chi_square}");
    }
}
