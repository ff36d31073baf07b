//! Lists of elements of the group Ristretto255 (RFC 9496), and the operations on them that base OT
//! needs.
//!
//! Operations work on whole lists: the kernels process four elements at once with AVX2, and eight
//! with AVX-512 IFMA. On other processors everything is `curve25519-dalek`. All of it is constant
//! time except [`Points::decode`], which reveals whether encodings are valid, and
//! [`Points::any_identity`].

use curve25519_dalek::Scalar;
use curve25519_dalek::constants::{RISTRETTO_BASEPOINT_COMPRESSED, RISTRETTO_BASEPOINT_TABLE};
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::traits::IsIdentity;
use zeroize::{ZeroizeOnDrop, Zeroizing};

#[cfg(target_arch = "x86_64")]
use crate::arch::x86_64::curve25519::ristretto::{x4, x8};
use crate::cpu::Cpu;

/// Bytes of one encoded element.
pub const ENCODED: usize = 32;

/// Number of multiplications of one element from which on a table of its multiples pays, without
/// the kernels.
const TABLE_FROM: usize = 64;

/// Elements of the group, wiped on drop.
///
/// Two lists that are used together have the same length and were made at the same level of the
/// processor.
pub struct Points {
    form: Form,
    len: usize,
}

/// A variant other than `Portable` exists only on a processor that can run its kernels.
enum Form {
    Portable(Zeroizing<Vec<RistrettoPoint>>),
    #[cfg(target_arch = "x86_64")]
    Four(Zeroizing<Vec<x4::Points>>),
    #[cfg(target_arch = "x86_64")]
    Eight(Zeroizing<Vec<x8::Points>>),
}

/// One of two expressions on the points of a list, the second one with the kernels of its form.
macro_rules! on {
    ($form:expr, $points:ident => $portable:expr, $kernels:ident => $vectors:expr) => {
        match $form {
            Form::Portable($points) => $portable,
            #[cfg(target_arch = "x86_64")]
            Form::Four($points) => {
                use x4 as $kernels;
                // SAFETY: this variant exists only where `Cpu::AES_NI` is available, and with it
                // AVX2.
                unsafe { $vectors }
            }
            #[cfg(target_arch = "x86_64")]
            Form::Eight($points) => {
                use x8 as $kernels;
                // SAFETY: this variant exists only where `Cpu::IFMA` is available, and with it
                // AVX-512 F, DQ and IFMA.
                unsafe { $vectors }
            }
        }
    };
}

impl Points {
    /// The images of uniform bytes: section 4.3.4 of RFC 9496.
    pub fn from_uniform(strings: &[[u8; 64]]) -> Self {
        Self::from_uniform_on(Cpu::detect(), strings)
    }

    /// [`Points::from_uniform`] with the kernels of one level.
    pub fn from_uniform_on(cpu: Cpu, strings: &[[u8; 64]]) -> Self {
        cpu.assert_available();
        let form = match cpu {
            #[cfg(target_arch = "x86_64")]
            cpu if cpu.has(Cpu::IFMA) => Form::Eight(Zeroizing::new(
                // SAFETY: the level is available, and with it AVX-512 F, DQ and IFMA.
                unsafe { x8::from_uniform(strings) },
            )),
            #[cfg(target_arch = "x86_64")]
            cpu if cpu.has(Cpu::AES_NI) => Form::Four(Zeroizing::new(
                // SAFETY: the level is available, and with it AVX2.
                unsafe { x4::from_uniform(strings) },
            )),
            _ => Form::Portable(Zeroizing::new(
                strings.iter().map(RistrettoPoint::from_uniform_bytes).collect(),
            )),
        };
        let len = strings.len();
        Self { form, len }
    }

    /// Decodes these canonical encodings, which are public; `None` if one of them is invalid.
    #[must_use]
    pub fn decode(encodings: &[[u8; ENCODED]]) -> Option<Self> {
        Self::decode_on(Cpu::detect(), encodings)
    }

    /// [`Points::decode`] with the kernels of one level.
    #[must_use]
    pub fn decode_on(cpu: Cpu, encodings: &[[u8; ENCODED]]) -> Option<Self> {
        cpu.assert_available();
        let form = match cpu {
            #[cfg(target_arch = "x86_64")]
            cpu if cpu.has(Cpu::IFMA) => Form::Eight(Zeroizing::new(
                // SAFETY: the level is available, and with it AVX-512 F, DQ and IFMA.
                unsafe { x8::decode(encodings) }?,
            )),
            #[cfg(target_arch = "x86_64")]
            cpu if cpu.has(Cpu::AES_NI) => Form::Four(Zeroizing::new(
                // SAFETY: the level is available, and with it AVX2.
                unsafe { x4::decode(encodings) }?,
            )),
            _ => {
                let points =
                    encodings.iter().map(|&encoding| CompressedRistretto(encoding).decompress());
                Form::Portable(Zeroizing::new(points.collect::<Option<_>>()?))
            }
        };
        let len = encodings.len();
        Some(Self { form, len })
    }

    /// The generator of RFC 9496 times each of the scalars.
    pub fn of_generator(scalars: &[Scalar]) -> Self {
        Self::of_generator_on(Cpu::detect(), scalars)
    }

    /// [`Points::of_generator`] with the kernels of one level.
    pub fn of_generator_on(cpu: Cpu, scalars: &[Scalar]) -> Self {
        cpu.assert_available();
        if cpu.has(Cpu::AES_NI) {
            let generator = Self::decode_on(cpu, &[RISTRETTO_BASEPOINT_COMPRESSED.to_bytes()]);
            return generator.expect("the generator's encoding is valid").multiples(scalars);
        }
        let points = scalars.iter().map(|scalar| scalar * RISTRETTO_BASEPOINT_TABLE);
        Self { form: Form::Portable(Zeroizing::new(points.collect())), len: scalars.len() }
    }

    /// The one element of this list times each of the scalars.
    ///
    /// # Panics
    /// If the list does not have exactly one element.
    pub fn multiples(&self, scalars: &[Scalar]) -> Self {
        assert_eq!(self.len, 1, "the list has exactly one element");
        let form = match &self.form {
            #[cfg(target_arch = "x86_64")]
            Form::Eight(points) => Form::Eight(Zeroizing::new(
                // SAFETY: this variant exists only where `Cpu::IFMA` is available, and with it
                // AVX-512 F, DQ and IFMA.
                unsafe { x8::multiples(&points[0], &bytes(scalars)) },
            )),
            #[cfg(target_arch = "x86_64")]
            Form::Four(points) => Form::Four(Zeroizing::new(
                // SAFETY: this variant exists only where `Cpu::AES_NI` is available, and with it
                // AVX2.
                unsafe { x4::multiples(&points[0], &bytes(scalars)) },
            )),
            Form::Portable(points) if scalars.len() >= TABLE_FROM => {
                let table = RistrettoBasepointTable::create(&points[0]);
                Form::Portable(Zeroizing::new(
                    scalars.iter().map(|scalar| scalar * &table).collect(),
                ))
            }
            Form::Portable(points) => Form::Portable(Zeroizing::new(
                scalars.iter().map(|scalar| scalar * points[0]).collect(),
            )),
        };
        let len = scalars.len();
        Self { form, len }
    }

    /// Each element times the scalar.
    pub fn multiply(&mut self, scalar: &Scalar) {
        on!(
            &mut self.form,
            points => points.iter_mut().for_each(|point| *point *= scalar),
            kernels => kernels::multiply(points, &bytes(&[*scalar])[0])
        );
    }

    /// Adds to each element the element of `other` at the same position.
    ///
    /// # Panics
    /// If the lists differ in length or level.
    pub fn add(&mut self, other: &Self) {
        assert_eq!(self.len, other.len, "lists of different lengths");
        match (&mut self.form, &other.form) {
            #[cfg(target_arch = "x86_64")]
            (Form::Eight(points), Form::Eight(other)) => {
                // SAFETY: this variant exists only where `Cpu::IFMA` is available, and with it
                // AVX-512 F, DQ and IFMA.
                unsafe { x8::add(points, other) }
            }
            #[cfg(target_arch = "x86_64")]
            (Form::Four(points), Form::Four(other)) => {
                // SAFETY: this variant exists only where `Cpu::AES_NI` is available, and with it
                // AVX2.
                unsafe { x4::add(points, other) }
            }
            (Form::Portable(points), Form::Portable(other)) => {
                for (point, other) in points.iter_mut().zip(other.iter()) {
                    *point += other;
                }
            }
            #[cfg(target_arch = "x86_64")]
            _ => panic!("the two lists are for different levels of the processor"),
        }
    }

    /// Subtracts from each element the element of `other` at the same position.
    ///
    /// # Panics
    /// If the lists differ in length or level.
    pub fn sub(&mut self, other: &Self) {
        self.negate();
        self.add(other);
        self.negate();
    }

    /// Each element's opposite.
    fn negate(&mut self) {
        on!(
            &mut self.form,
            points => points.iter_mut().for_each(|point| *point = -*point),
            kernels => kernels::negate(points)
        );
    }

    /// Whether any element is the identity.
    #[must_use]
    pub fn any_identity(&self) -> bool {
        on!(
            &self.form,
            points => points.iter().any(IsIdentity::is_identity),
            kernels => kernels::any_identity(points, self.len)
        )
    }

    /// Writes the encodings of the doubles of the elements. (Without the kernels, doubles are
    /// encoded in batches that share one inversion.)
    ///
    /// # Panics
    /// If the number of encodings is not the number of elements.
    pub fn encode_doubles(&self, encodings: &mut [[u8; ENCODED]]) {
        assert_eq!(self.len, encodings.len(), "one encoding for each element");
        on!(
            &self.form,
            points => {
                let doubles = RistrettoPoint::double_and_compress_batch(points.iter());
                let doubles = Zeroizing::new(doubles);
                for (encoding, double) in encodings.iter_mut().zip(doubles.iter()) {
                    *encoding = double.to_bytes();
                }
            },
            kernels => kernels::encode_doubles(points, encodings)
        );
    }
}

// The lists of all levels are wiped on drop.
impl ZeroizeOnDrop for Points {}

/// The scalars in little-endian bytes.
#[cfg(target_arch = "x86_64")]
fn bytes(scalars: &[Scalar]) -> Zeroizing<Vec<[u8; 32]>> {
    Zeroizing::new(scalars.iter().map(Scalar::to_bytes).collect())
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// As the table of `cpu` says.
    #[test]
    fn only_ifma_gives_eight_lanes() {
        for cpu in Cpu::available() {
            let lanes = match Points::from_uniform_on(cpu, &[[7; 64]]).form {
                Form::Portable(_) => 1,
                Form::Four(_) => 4,
                Form::Eight(_) => 8,
            };
            let expected = match cpu.name() {
                "portable" => 1,
                "aes-ni" | "vaes" | "avx512" | "avx512-no-ifma" => 4,
                "avx512-no-vaes" | "avx512-no-vbmi" | "avx512-vaes" => 8,
                _ => continue,
            };
            assert_eq!(lanes, expected, "{cpu}");
        }
    }
}
