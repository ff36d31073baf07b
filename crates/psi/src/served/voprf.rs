//! The verifiable oblivious pseudorandom function ristretto255-SHA512 of RFC 9497, in its mode
//! VOPRF. Computes only.
//!
//! `F(k, x) = SHA512(x, k * H(x))`, where the client learns `F(k, x)` from `k` times the element
//! `r * H(x)`. The server proves in zero knowledge that it used the `k` of its public key `k * G`,
//! with one proof for all elements of a batch. Names are those of the RFC.

use std::sync::{Mutex, TryLockError};

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_TABLE;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::traits::{IsIdentity, VartimeMultiscalarMul};
use curve25519_dalek::{RistrettoPoint as Element, Scalar};
use rayon::prelude::*;
use sha2::{Digest, Sha512};
use volery_primitives::prg::Prg;
use volery_primitives::ristretto::{ENCODED, Points};
use volery_primitives::ro::RandomOracle;
use zeroize::{Zeroize, Zeroizing};

pub(super) type EncodedElement = [u8; ENCODED];

/// Bytes of a proof: two scalars.
pub(super) const PROOF: usize = 64;

/// The longest input, in bytes: its length is hashed as two bytes.
pub(super) const MAX_INPUT: usize = (1 << 16) - 1;

/// The largest batch of one proof: the number of an element is hashed as two bytes.
pub(super) const MAX_BATCH: usize = 1 << 14;

/// Elements that one thread works on at a time.
const TASK: usize = 256;

/// The context of the suite and the mode.
const CONTEXT: &[u8] = b"OPRFV1-\x01-ristretto255-SHA512";

/// Bytes of a block of SHA-512.
const BLOCK: usize = 128;

/// `expand_message_xmd` of RFC 9380, section 5.3.1, with SHA-512, for 64 bytes: a single block of
/// output. The tag is `label` and the context.
fn expand(label: &[u8], message: &[&[u8]], out: &mut [u8; 64]) {
    let mut tag = Sha512::new();
    let length = [(label.len() + CONTEXT.len()) as u8];
    tag.update([0; BLOCK]);
    for part in message {
        tag.update(part);
    }
    tag.update([0, 64, 0]);
    for part in [label, CONTEXT, &length] {
        tag.update(part);
    }
    let mut first = tag.finalize();
    let mut hash = Sha512::new();
    hash.update(first);
    hash.update([1]);
    for part in [label, CONTEXT, &length] {
        hash.update(part);
    }
    let mut second = hash.finalize();
    out.copy_from_slice(&second);
    first.as_mut_slice().zeroize();
    second.as_mut_slice().zeroize();
}

/// The uniform bytes that `HashToGroup` maps to the group.
fn uniform(input: &[u8], out: &mut [u8; 64]) {
    expand(b"HashToGroup-", &[input], out);
}

/// `HashToScalar`.
fn scalar(label: &[u8], message: &[&[u8]]) -> Scalar {
    let mut bytes = Zeroizing::new([0; 64]);
    expand(label, message, &mut bytes);
    Scalar::from_bytes_mod_order_wide(&bytes)
}

/// A scalar other than zero.
pub(super) fn random(rng: &mut Prg) -> Scalar {
    let mut bytes = Zeroizing::new([0; 64]);
    loop {
        rng.fill_bytes(&mut bytes[..]);
        let scalar = Scalar::from_bytes_mod_order_wide(&bytes);
        if scalar != Scalar::ZERO {
            return scalar;
        }
    }
}

/// The nonce of a proof: from fresh randomness, and from all that the proof depends on, so that two
/// copies of one process, as of a restored machine, do not prove different statements with one
/// nonce, which would give the key away.
pub(super) fn nonce(
    (secret, public): (&Scalar, &EncodedElement),
    blinded: &[EncodedElement],
    evaluated: &[EncodedElement],
    rng: &mut Prg,
) -> Scalar {
    let mut fresh = Zeroizing::new([0; 32]);
    rng.fill_bytes(&mut fresh[..]);
    let seed = RandomOracle::new("volery served: nonce of a proof")
        .absorb(&fresh[..])
        .absorb(secret.as_bytes())
        .absorb(public)
        .absorb(blinded.as_flattened())
        .absorb(evaluated.as_flattened())
        .finish32();
    let seed = Zeroizing::new(seed);
    let (seed, _) = seed.split_first_chunk().expect("32 bytes");
    random(&mut Prg::new(volery_primitives::Block::from_bytes(*seed)))
}

/// A scalar in its only encoding, other than zero.
pub(super) fn decode_scalar(bytes: [u8; 32]) -> Option<Scalar> {
    Option::from(Scalar::from_canonical_bytes(bytes))
}

/// An element in its only encoding, other than the identity.
pub(super) fn decode(encoding: EncodedElement) -> Option<Element> {
    let point = CompressedRistretto(encoding).decompress();
    // mutant(psi-voprf-decoded): `!point.is_identity()` => `true`
    point.filter(|point| !point.is_identity())
}

/// `skS * G`.
pub(super) fn public(secret: &Scalar) -> EncodedElement {
    (secret * RISTRETTO_BASEPOINT_TABLE).compress().to_bytes()
}

/// `Finalize` without the inverse of the blind: the output for an input and `k * H(input)`.
fn output(input: &[u8], element: &EncodedElement) -> Zeroizing<[u8; 64]> {
    let mut hash = Sha512::new();
    hash.update((input.len() as u16).to_be_bytes());
    hash.update(input);
    hash.update((ENCODED as u16).to_be_bytes());
    hash.update(element);
    hash.update(b"Finalize");
    let mut output = Zeroizing::new([0; 64]);
    let mut bytes = hash.finalize();
    output.copy_from_slice(&bytes);
    bytes.as_mut_slice().zeroize();
    output
}

/// `Evaluate`: the outputs for inputs of at most [`MAX_INPUT`] bytes, by whoever has the key.
pub(super) fn evaluate(
    secret: &Scalar,
    inputs: &[&[u8]],
    mut out: impl FnMut(usize, Zeroizing<[u8; 64]>),
) {
    let mut strings = Zeroizing::new(vec![[0; 64]; inputs.len()]);
    for (input, string) in inputs.iter().zip(strings.iter_mut()) {
        uniform(input, string);
    }
    let mut points = Points::from_uniform(&strings);
    points.multiply(&half(secret));
    let mut elements = Zeroizing::new(vec![[0; ENCODED]; inputs.len()]);
    points.encode_doubles(&mut elements);
    for (i, (input, element)) in inputs.iter().zip(elements.iter()).enumerate() {
        out(i, output(input, element));
    }
}

/// Half of a scalar: the kernels encode the doubles of elements.
fn half(scalar: &Scalar) -> Zeroizing<Scalar> {
    Zeroizing::new(scalar * Scalar::from(2_u8).invert())
}

/// The threads of `rayon`, for one call at a time.
///
/// A server answers many connections at once. A thread of `rayon` that waits for a part of one call
/// begins another call, and ends that one first: if new calls keep coming, some never end.
struct Pool(Mutex<()>);

static POOL: Pool = Pool(Mutex::new(()));

impl Pool {
    /// `f` of each number below `n`, in order: on all threads, or on the calling one while another
    /// call has them.
    fn map<T: Send>(&self, n: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
        match self.0.try_lock() {
            // mutant(psi-voprf-pool): `(0..n).map(f).collect()` =>
            //     `(0..n).into_par_iter().map(f).collect()`
            Err(TryLockError::WouldBlock) => (0..n).map(f).collect(),
            // Held until the end. It guards nothing that a panic could leave half done.
            Ok(_guard) => (0..n).into_par_iter().map(f).collect(),
            Err(TryLockError::Poisoned(_guard)) => (0..n).into_par_iter().map(f).collect(),
        }
    }
}

/// `Blind`: each input times its own scalar.
pub(super) fn blind(inputs: &[&[u8]], blinds: &[Scalar]) -> Vec<EncodedElement> {
    assert_eq!(inputs.len(), blinds.len(), "a blind for each input");
    POOL.map(inputs.len(), |i| {
        let mut string = Zeroizing::new([0; 64]);
        uniform(inputs[i], &mut string);
        let point = Zeroizing::new(RistrettoPoint::from_uniform_bytes(&string));
        (*point * blinds[i]).compress().to_bytes()
    })
}

/// `BlindEvaluate` without its proof: the elements are multiplied by the secret. `false` if one of
/// them is no element, or the identity.
#[must_use]
pub(super) fn multiply(secret: &Scalar, elements: &mut [EncodedElement]) -> bool {
    let half = half(secret);
    let tasks: Vec<_> = elements.chunks(TASK).collect();
    let products = POOL.map(tasks.len(), |task| {
        // mutant(psi-voprf-identity): `!points.any_identity()` => `true`
        let decoded = Points::decode(tasks[task]).filter(|points| !points.any_identity());
        let mut points = decoded?;
        points.multiply(&half);
        let mut products = vec![[0; ENCODED]; tasks[task].len()];
        points.encode_doubles(&mut products);
        Some(products)
    });
    let Some(products) = products.into_iter().collect::<Option<Vec<_>>>() else {
        return false;
    };
    elements.copy_from_slice(&products.concat());
    true
}

/// `Finalize`: the outputs, from the blinds and the evaluated elements, which are valid.
pub(super) fn finalize(
    inputs: &[&[u8]],
    blinds: &mut [Scalar],
    evaluated: &[Element],
) -> Vec<Zeroizing<[u8; 64]>> {
    // The product of all inverses that it returns has no use.
    Scalar::invert_batch_alloc(blinds).zeroize();
    let inverses = &*blinds;
    POOL.map(inputs.len(), |i| {
        let element = Zeroizing::new((evaluated[i] * inverses[i]).compress().to_bytes());
        output(inputs[i], &element)
    })
}

/// The weights of `ComputeComposites`, one for each pair of a blinded and an evaluated element.
fn weights(
    public: &EncodedElement,
    blinded: &[EncodedElement],
    evaluated: &[EncodedElement],
) -> Vec<Scalar> {
    const TAG: &[u8] = b"Seed-";
    let mut hash = Sha512::new();
    hash.update((ENCODED as u16).to_be_bytes());
    hash.update(public);
    hash.update(((TAG.len() + CONTEXT.len()) as u16).to_be_bytes());
    hash.update(TAG);
    hash.update(CONTEXT);
    let seed = hash.finalize();
    POOL.map(blinded.len(), |i| {
        let message: [&[u8]; 8] = [
            &64_u16.to_be_bytes(),
            &seed,
            &(i as u16).to_be_bytes(),
            &(ENCODED as u16).to_be_bytes(),
            &blinded[i],
            &(ENCODED as u16).to_be_bytes(),
            &evaluated[i],
            b"Composite",
        ];
        scalar(b"HashToScalar-", &message)
    })
}

/// The challenge of a proof.
fn challenge(public: &EncodedElement, elements: [&Element; 4]) -> Scalar {
    let length = (ENCODED as u16).to_be_bytes();
    let elements = elements.map(|element| element.compress().to_bytes());
    let mut message: Vec<&[u8]> = vec![&length, public];
    for element in &elements {
        message.extend([&length[..], element]);
    }
    message.push(b"Challenge");
    scalar(b"HashToScalar-", &message)
}

/// `GenerateProof` for at most [`MAX_BATCH`] elements, with this random scalar; `None` if one of
/// the blinded elements is none.
pub(super) fn prove(
    (secret, public): (&Scalar, &EncodedElement),
    blinded: &[EncodedElement],
    evaluated: &[EncodedElement],
    random: &Scalar,
) -> Option<[u8; PROOF]> {
    let weights = weights(public, blinded, evaluated);
    // Weights and elements are public.
    let points = blinded.iter().map(|&blinded| CompressedRistretto(blinded).decompress());
    let composite = Element::optional_multiscalar_mul(&weights, points)?;
    let times = secret * composite;
    let commitments = [random * RISTRETTO_BASEPOINT_TABLE, random * composite];
    let challenge = challenge(public, [&composite, &times, &commitments[0], &commitments[1]]);
    let response = random - challenge * secret;
    let mut proof = [0; PROOF];
    proof[..32].copy_from_slice(challenge.as_bytes());
    proof[32..].copy_from_slice(response.as_bytes());
    Some(proof)
}

/// `VerifyProof`: the evaluated elements, if they are elements other than the identity and the
/// secret of the public key times the blinded ones.
pub(super) fn verify(
    (public, encoded): (&Element, &EncodedElement),
    blinded: &[EncodedElement],
    evaluated: &[EncodedElement],
    proof: &[u8; PROOF],
) -> Option<Vec<Element>> {
    let (challenged, response) = proof.split_at(32);
    let challenged = decode_scalar(challenged.try_into().ok()?)?;
    let response = decode_scalar(response.try_into().ok()?)?;
    let decode_all = |encodings: &[EncodedElement]| {
        let points = POOL.map(encodings.len(), |i| decode(encodings[i]));
        points.into_iter().collect::<Option<Vec<_>>>()
    };
    let points = decode_all(evaluated)?;
    let weights = weights(encoded, blinded, evaluated);
    let composite = Element::vartime_multiscalar_mul(&weights, decode_all(blinded)?);
    let times = Element::vartime_multiscalar_mul(&weights, &points);
    let commitments = [
        Element::vartime_double_scalar_mul_basepoint(&challenged, public, &response),
        Element::vartime_multiscalar_mul([response, challenged], [composite, times]),
    ];
    let elements = [&composite, &times, &commitments[0], &commitments[1]];
    // mutant(psi-voprf-proof): `challenge(encoded, elements) == challenged` => `true`
    (challenge(encoded, elements) == challenged).then_some(points)
}

/// The generator, as the public key of tests.
#[cfg(test)]
pub(super) const GENERATOR: EncodedElement =
    curve25519_dalek::constants::RISTRETTO_BASEPOINT_COMPRESSED.0;

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().chunks(2);
        digits
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
            .collect()
    }

    fn bytes<const N: usize>(text: &str) -> [u8; N] {
        hex(text).try_into().unwrap()
    }

    const SECRET: &str = "e6f73f344b79b379f1a0dd37e07ff62e38d9f71345ce62ae3a9bc60b04ccd909";
    const PUBLIC: &str = "c803e2cc6b05fc15064549b5920659ca4a77b2cca6f04f6b357009335476ad4e";
    /// RFC 9497, appendix A.1.2.3, a batch of two inputs.
    const INPUTS: [&str; 2] = ["00", "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"];
    const BLINDS: [&str; 2] = [
        "64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706",
        "222a5e897cf59db8145db8d16e597e8facb80ae7d4e26d9881aa6f61d645fc0e",
    ];
    const BLINDED: [&str; 2] = [
        "863f330cc1a1259ed5a5998a23acfd37fb4351a793a5b3c090b642ddc439b945",
        "90a0145ea9da29254c3a56be4fe185465ebb3bf2a1801f7124bbbadac751e654",
    ];
    const EVALUATED: [&str; 2] = [
        "aa8fa048764d5623868679402ff6108d2521884fa138cd7f9c7669a9a014267e",
        "cc5ac221950a49ceaa73c8db41b82c20372a4c8d63e5dded2db920b7eee36a2a",
    ];
    const RANDOM: &str = "419c4f4f5052c53c45f3da494d2b67b220d02118e0857cdbcf037f9ea84bbe0c";
    const PROOF_OF_BOTH: [&str; 2] = [
        "cc203910175d786927eeb44ea847328047892ddf8590e723c37205cb74600b0a",
        "5ab5337c8eb4ceae0494c2cf89529dcf94572ed267473d567aeed6ab873dee08",
    ];
    const OUTPUTS: [[&str; 2]; 2] = [
        [
            "b58cfbe118e0cb94d79b5fd6a6dafb98764dff49c14e1770b566e42402da1a7d",
            "a4d8527693914139caee5bd03903af43a491351d23b430948dd50cde10d32b3c",
        ],
        [
            "8a9a2f3c7f085b65933594309041fc1898d42d0858e59f90814ae90571a6df60",
            "356f4610bf816f27afdd84f47719e480906d27ecd994985890e5f539e7ea74b6",
        ],
    ];

    fn secret() -> Scalar {
        decode_scalar(bytes(SECRET)).unwrap()
    }

    #[test]
    fn a_call_beside_another_runs_on_its_own_thread() {
        let pool = Pool(Mutex::new(()));
        let here = || thread::current().id();
        let held = pool.0.lock();
        assert!((0..100).map(|i| (i, here())).eq(pool.map(100, |i| (i, here()))));
        drop(held);
        // Alone, on the threads of `rayon`, of which this is none.
        let alone = pool.map(100, |i| (i, here()));
        assert!(alone.iter().map(|(i, _)| *i).eq(0..100));
        assert!(alone.iter().all(|(_, thread)| *thread != here()));
    }

    /// `DeriveKeyPair`, whose first candidate is the key.
    #[test]
    fn the_key_of_the_rfc() {
        let info = b"test key";
        let length = (info.len() as u16).to_be_bytes();
        let message: [&[u8]; 4] = [&[0xa3; 32], &length, info, &[0]];
        assert_eq!(scalar(b"DeriveKeyPair", &message), secret());
        assert_eq!(public(&secret()), bytes(PUBLIC));
        assert_eq!(public(&Scalar::ONE), GENERATOR);
    }

    #[test]
    fn the_vectors_of_the_rfc() {
        let (secret, key) = (secret(), bytes(PUBLIC));
        let inputs = INPUTS.map(hex);
        let inputs = inputs.each_ref().map(|input| &input[..]);
        let mut blinds = BLINDS.map(|text| decode_scalar(bytes(text)).unwrap());
        let blinded = blind(&inputs, &blinds);
        assert_eq!(blinded, BLINDED.map(bytes));
        let mut evaluated = blinded.clone();
        assert!(multiply(&secret, &mut evaluated));
        assert_eq!(evaluated, EVALUATED.map(bytes));
        let random = decode_scalar(bytes(RANDOM)).unwrap();
        let proof = prove((&secret, &key), &blinded, &evaluated, &random).unwrap();
        assert_eq!(proof.to_vec(), hex(&PROOF_OF_BOTH.concat()));
        let point = decode(key).unwrap();
        let points = verify((&point, &key), &blinded, &evaluated, &proof).unwrap();
        let outputs = finalize(&inputs, &mut blinds, &points);
        for (output, expected) in outputs.iter().zip(OUTPUTS) {
            assert_eq!(output[..], hex(&expected.concat()));
        }
        let mut evaluated_at_once = Vec::new();
        evaluate(&secret, &inputs, |_, output| evaluated_at_once.push(output));
        assert_eq!(evaluated_at_once, outputs);
    }

    /// A proof holds for one key, one batch in one order, and as it is.
    #[test]
    fn other_proofs_are_refused() {
        let key = secret();
        let public_key = public(&key);
        let point = decode(public_key).unwrap();
        let inputs: [&[u8]; 3] = [b"a", b"b", b"c"];
        let blinds = [Scalar::from(3_u8), Scalar::from(5_u8), Scalar::from(7_u8)];
        let blinded = blind(&inputs, &blinds);
        let mut evaluated = blinded.clone();
        assert!(multiply(&key, &mut evaluated));
        let random = Scalar::from(99_u8);
        let pair = (&key, &public_key);
        let proof = prove(pair, &blinded, &evaluated, &random).unwrap();
        let check =
            |blinded: &[EncodedElement], evaluated: &[EncodedElement], proof: &[u8; PROOF]| {
                verify((&point, &public_key), blinded, evaluated, proof).is_some()
            };
        assert!(check(&blinded, &evaluated, &proof));
        for bit in 0..8 * PROOF {
            let mut changed = proof;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!check(&blinded, &evaluated, &changed), "bit {bit}");
        }
        let mut swapped = evaluated.clone();
        swapped.swap(0, 1);
        assert!(!check(&blinded, &swapped, &proof));
        let both = [blinded[1], blinded[0], blinded[2]];
        assert!(!check(&both, &swapped, &proof), "the order is proven too");
        assert!(!check(&blinded[..2], &evaluated[..2], &proof));
        let other = Scalar::from(2_u8) * key;
        let mut twice = blinded.clone();
        assert!(multiply(&other, &mut twice));
        let own = prove((&other, &public_key), &blinded, &twice, &random).unwrap();
        assert!(!check(&blinded, &twice, &own), "another key");
        let mut one = evaluated.clone();
        one[2] = twice[2];
        let own = prove(pair, &blinded, &one, &random).unwrap();
        assert!(!check(&blinded, &one, &own), "another key for one element");
        let zero = [0; ENCODED];
        assert!(!check(&blinded, &[zero; 3], &proof));
        // A proof of nothing for the identity: all are zero times what they are.
        let none = public(&Scalar::ZERO);
        let zeros = prove((&Scalar::ZERO, &none), &blinded, &[zero; 3], &random).unwrap();
        assert!(verify((&Element::default(), &none), &blinded, &[zero; 3], &zeros).is_none());
    }

    #[test]
    fn a_scalar_has_one_encoding() {
        let mut order =
            bytes::<32>("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
        assert!(decode_scalar(order).is_none());
        order[0] -= 1;
        assert!(decode_scalar(order).is_some());
    }
}
