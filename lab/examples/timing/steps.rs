//! The steps that work on slices.

use std::hint::black_box;

use subtle::ConstantTimeEq;
use volery_channel::SessionId;
use volery_field::{F2, Fp61, Gf128, Ring, Z64};
use volery_okvs::{Band, Preset, Rows, Shape as BandShape};
use volery_pcg::correlation::{Correlation, Cot};
use volery_pcg::ggm::{self, PuncturedSums, Scratch, Shape, TreePrgs};
use volery_primitives::aes::{Aes128, rekeyed};
use volery_primitives::cpu::Cpu;
use volery_primitives::{Block, bits, clmul, prg::Prg, transpose};

use crate::Promise::{Leaks, Nothing};
use crate::welch::Of;
use crate::{Step, bits as packed, blocks};

/// All steps; the two that prove that the run can detect differences come first.
pub(crate) fn all(samples: usize) -> Vec<Step> {
    let mut steps = vec![
        leaking_comparison(samples),
        random_against_random(samples),
        comparison::<Fp61>(samples),
        comparison::<Gf128>(samples),
    ];
    scalars::<Fp61>(samples, &mut steps);
    scalars::<Z64>(samples, &mut steps);
    scalars::<Gf128>(samples, &mut steps);
    for cpu in Cpu::available() {
        kernels(cpu, samples, &mut steps);
    }
    steps.extend([
        carried_bits(samples),
        packed_bits(samples),
        rebuilding::<Fp61>(samples / 10),
        rebuilding::<Gf128>(samples / 10),
        encoding(samples / 20),
        decoding(samples / 20),
        evaluation(samples / 5),
    ]);
    steps
}

/// Bytes of the comparisons.
const LENGTH: usize = 1024;

#[inline(never)]
fn ends_early(a: &[u8], b: &[u8]) -> bool {
    for (a, b) in a.iter().zip(b) {
        if black_box(*a) != *b {
            return false;
        }
    }
    true
}

/// A byte string and another that is equal, or differs at a random place.
fn equal_or_not(equal: bool, rng: &mut Prg) -> [Vec<u8>; 2] {
    let mut a = vec![0; LENGTH];
    rng.fill_bytes(&mut a);
    let mut b = a.clone();
    b[rng.below(LENGTH as u64) as usize] ^= u8::from(!equal);
    [a, b]
}

fn leaking_comparison(samples: usize) -> Step {
    let run = |[a, b]: &mut [Vec<u8>; 2]| {
        black_box(ends_early(a, b));
    };
    let bench = Of::new(equal_or_not, run);
    Step::new("a comparison that ends early", Leaks, samples, bench)
}

fn random_against_random(samples: usize) -> Step {
    let draw = |_, rng: &mut Prg| equal_or_not(false, rng);
    let run = |[a, b]: &mut [Vec<u8>; 2]| {
        black_box(a[..].ct_eq(&b[..]));
    };
    Step::constant("two classes of one kind", samples, draw, run)
}

/// The comparison at the end of a check, on a value that is equal or differs anywhere.
fn comparison<R: Ring>(samples: usize) -> Step {
    let draw = |equal, rng: &mut Prg| {
        let mut a = vec![R::ZERO; 64];
        R::random_slice(rng, &mut a);
        let mut b = a.clone();
        let (place, error) = (rng.below(64) as usize, R::random_noise(rng));
        b[place] += if equal { R::ZERO } else { error };
        [a, b]
    };
    let run = |[a, b]: &mut [Vec<R>; 2]| {
        black_box(a[..].ct_eq(&b[..]));
    };
    let name = format!("{}: the comparison of a check", R::NAME);
    Step::constant(name, samples, draw, run)
}

/// The operations on `x`, zero or random: products, and the selection by its bits.
fn scalars<R: Ring>(samples: usize, steps: &mut Vec<Step>) {
    const N: usize = 128;
    let draw = |zero: bool, rng: &mut Prg| {
        let x = R::random(rng);
        let x = if zero { R::ZERO } else { x };
        let (mut v, mut w) = (vec![R::ZERO; N], vec![R::ZERO; N]);
        R::random_slice(rng, &mut v);
        R::random_slice(rng, &mut w);
        (x, v, w)
    };
    let product = |(x, v, w): &mut (R, Vec<R>, Vec<R>)| {
        R::axpy(w, *x, v);
        black_box(w);
    };
    let select = |(x, v, w): &mut (R, Vec<R>, Vec<R>)| {
        for (i, (v, w)) in v.iter().zip(&mut *w).enumerate() {
            *w += R::conditional_select(&R::ZERO, v, x.bit(i as u32 % R::BITS));
        }
        black_box(w);
    };
    let values = |zero: bool, rng: &mut Prg| {
        let mut v = vec![R::ZERO; N];
        R::random_slice(rng, &mut v);
        if zero {
            v.fill(R::ZERO);
        }
        (v.clone(), v)
    };
    let arithmetic = |(v, w): &mut (Vec<R>, Vec<R>)| {
        R::add_slice(w, v);
        R::sub_slice(v, w);
        black_box(R::sum(v) + R::inner_product(v, w));
    };
    let name = |what| format!("{}: {what}", R::NAME);
    steps.extend([
        Step::constant(name("products with x"), samples, draw, product),
        Step::constant(name("selection by the bits of x"), samples, draw, select),
        Step::constant(name("sums and products of values"), samples, values, arithmetic),
    ]);
}

/// The kernels of one level, on blocks that are zero or random.
fn kernels(cpu: Cpu, samples: usize, steps: &mut Vec<Step>) {
    let draw = |zero, rng: &mut Prg| (blocks(129)(zero, rng), vec![Block::ZERO; 128]);
    type Input = (Vec<Block>, Vec<Block>);
    let aes = move |(x, out): &mut Input| {
        let aes = Aes128::with_cpu(x[128], cpu);
        aes.feed_forward(&x[..128], out);
        black_box(out);
    };
    let multiply = move |(x, out): &mut Input| {
        clmul::gf128_axpy_on(cpu, out, x[128], &x[..128]);
        black_box(out);
    };
    let transposed = move |(x, out): &mut Input| {
        transpose::transpose_128_on(cpu, &x[..128], out);
        black_box(out);
    };
    let lowest = move |(x, _): &mut Input| {
        let mut out = [0; 17];
        bits::lowest_bits_on(cpu, x, &mut out);
        black_box(out);
    };
    let step = |what: &str, run: Box<dyn FnMut(&mut Input) + Send>| {
        Step::constant(format!("{cpu}: {what}"), samples, draw, run)
    };
    steps.extend([
        step("AES, key and blocks", Box::new(aes)),
        step("products in GF(2^128)", Box::new(multiply)),
        step("transposition", Box::new(transposed)),
        step("lowest bits", Box::new(lowest)),
    ]);
}

/// Choice bits inserted into the blocks to which they belong.
fn carried_bits(samples: usize) -> Step {
    let draw = |zero, rng: &mut Prg| (packed(256)(zero, rng), vec![Gf128::ZERO; 256]);
    let run = |(u, v): &mut (Vec<u8>, Vec<Gf128>)| {
        for (i, v) in v.iter_mut().enumerate() {
            *v = Cot::pair(F2::new(bits::bit(u, i)), *v);
        }
        black_box(v);
    };
    Step::constant("choice bits into blocks", samples, draw, run)
}

/// Choice bits as whole bytes, and back.
fn packed_bits(samples: usize) -> Step {
    let run = |u: &mut Vec<u8>| {
        let apart = bits::unpack(u, 256);
        black_box(bits::pack(&apart));
    };
    Step::constant("choice bits packed and unpacked", samples, packed(256), run)
}

/// A tree that is rebuilt around `alpha`: it indexes the leaves, its owner's memory.
fn rebuilding<R: Ring>(samples: usize) -> Step {
    const LEAVES: usize = 1 << 10;
    let shape = Shape::new(LEAVES);
    let prgs = TreePrgs::new(SessionId::from_bytes([1; 32]), 0);
    let draw = move |zero: bool, rng: &mut Prg| {
        let alpha = rng.below(LEAVES as u64) as usize;
        let mut inner = vec![Block::ZERO; shape.depth() as usize - 1];
        rng.fill_blocks(&mut inner);
        PuncturedSums { alpha: if zero { 0 } else { alpha }, inner, leaf: R::random(rng) }
    };
    let mut scratch = Scratch::default();
    let mut leaves = vec![R::ZERO; LEAVES];
    let run = move |sums: &mut PuncturedSums<R>| {
        ggm::expand_punctured(&prgs.tree(0), shape, sums, &mut leaves, &mut scratch);
        black_box(&leaves);
    };
    let name = format!("{}: a tree around its missing leaf", R::NAME);
    Step::new(name, Nothing, samples, Of::new(draw, run))
}

/// Keys of a key-value store.
const KEYS: usize = 1 << 10;

/// A matrix of a set intersection, with the rows of some keys.
fn band() -> (Band, Rows) {
    let band = Band::new(BandShape::new(Preset::Band9, KEYS), Block::ONE);
    let rows = band.rows(&(0..KEYS as u128).map(Block::new).collect::<Vec<_>>());
    (band, rows)
}

/// An encoding of zeros or of random values under the same keys.
fn encoding(samples: usize) -> Step {
    let (band, rows) = band();
    let mut columns = vec![Block::ZERO; band.shape().columns];
    let run = move |values: &mut Vec<Block>| {
        let encoded = band.encode(&rows, values, &mut columns);
        encoded.expect("the rows are independent");
        black_box(&columns);
    };
    Step::constant("values: encoding them", samples, blocks(KEYS), run)
}

/// Decoding all keys from columns that are zero or random.
fn decoding(samples: usize) -> Step {
    let (band, rows) = band();
    let mut values = vec![Block::ZERO; KEYS];
    let columns = blocks(band.shape().columns);
    let run = move |columns: &mut Vec<Block>| {
        band.decode(&rows, columns, &mut values);
        black_box(&values);
    };
    Step::constant("values: decoding keys", samples, columns, run)
}

/// The steps on decoded values under `delta`, which is zero or random.
fn evaluation(samples: usize) -> Step {
    let draw = |zero: bool, rng: &mut Prg| {
        let delta = blocks(1)(zero, rng)[0];
        (delta, blocks(256)(false, rng), blocks(256)(false, rng))
    };
    let run = |(delta, values, digests): &mut (Block, Vec<Block>, Vec<Block>)| {
        clmul::gf128_axpy(values, *delta, digests);
        rekeyed(values, digests);
        black_box(&digests);
    };
    Step::constant("delta: outputs from decoded values", samples, draw, run)
}
