//! Two-party matrix products: `Y = A*B` for an `n x m` matrix `A` of one party and an `m x p`
//! matrix `B` of the other (`p` = 1: a vector). The result is additively shared or revealed to one
//! side.
//!
//! Section 7.1 of the 2019 paper: column `k` of `Y` is the sum over `i` of column `i` of `A`, times
//! the scalar `B_ik`. Each of these `m*p` products is a vector-OLE of length `n` whose `x` is the
//! scalar.
//!
//! ```text
//! Sender: A; u_j, v_j for j = (k, i)      Receiver: B; x_j, w_j = u_j*x_j + v_j
//! 1.                  <---- delta_j = B_ik - x_j, for each j ----
//! 2. D_j = A_i - u_j  ---- D_j, for each j ---->
//! 3. s_k = sum over i of delta_j*u_j - v_j    t_k = sum over i of w_j + B_ik*D_j
//! 4. shared: nothing; to the receiver: ---- s ---->; to the sender: <---- t ----
//! ```
//!
//! `s_k + t_k` is column `k` of `Y`: `A_i*B_ik = (u_j + D_j)*(x_j + delta_j)`, minus `u_j*delta_j`,
//! is `u_j*x_j + B_ik*D_j`.
//!
//! [`Sender`] and [`Receiver`] are these two parties, the holders of `A` and of `B`. [`Left`] and
//! [`Right`] choose between this and the transposed product `B^T * A^T`, in which the holder of `B`
//! is the sender: `m*n` vector-OLEs of length `p`. They take the product with fewer vector-OLEs;
//! both send `n*m*p` elements online.
//!
//! # Security
//!
//! That of the vector-OLEs. Shapes are public.
//!
//! *Columns.* The information about `A` in a revealed product grows with the columns of `B`: with
//! as many as `A` has, and `B` the unit matrix, the product is `A` itself; likewise for the rows of
//! `A` and the information about `B`. So accepting the other's size is a decision about privacy,
//! not about memory alone. [`Shape::agree`] accepts the other's size; [`Shape::agree_vector`]
//! accepts one column only.
//!
//! *Receiver.* `u_j` is pseudorandom given `x_j` and `w_j`, so `D` is uniform; `s` is the result
//! minus `t`, which the receiver can compute itself. Another `delta` is another `B`. *Sender.*
//! `x_j` is uniform to it, so `delta` is too (except for guesses of a malicious sender about `x_j`
//! offline, at the risk of detection). `t` is the result minus `s`. Another `D` is another `A`,
//! which may differ from column to column of `B`. *Output.* Shares are not authenticated: a party
//! that sends its share can add an error of its choice to the result, without learning anything by
//! it.
//!
//! # Cost
//!
//! Online: `m*p` ring elements from the receiver in one message, then `n*m*p` from the sender in
//! one; a revealed result adds `n*p` elements from the party that does not learn it (the sender's
//! are in its one message). Offline: [`crate::offline`] for each of the `m*p` vector-OLEs, and a
//! message of 48 bytes in both directions that compares ring, security, shape and output. Memory:
//! the sender keeps `n*m*p + n*p` elements, the receiver `m*p + n*p`, and pieces of 2^14 and 2^16.
//!
//! # Examples
//!
//! ```
//! use volery_apps::Result;
//! use volery_apps::linear::{Left, Matrix, Output, Right, Shape, Side};
//! use volery_channel::{SessionId, run_two_parties};
//! use volery_field::Z64;
//! use volery_pcg::Security;
//! use volery_primitives::prg::Prg;
//!
//! # fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! let session = SessionId::from_bytes([0; 32]); // from the handshake, never twice the same
//! let (rng_l, rng_r) = (Prg::from_os()?, Prg::from_os()?);
//! let (output, security) = (Output::Right, Security::SemiHonest); // z64 has no more
//! let (left, right) = run_two_parties(
//!     |channel| -> Result<Option<Matrix<Z64>>> {
//!         let a = Matrix::from_rows(2, 3, &[1, 2, 3, 4, 5, 6].map(Z64::new))?;
//!         let shape = Shape::agree(Side::Left, (2, 3), channel)?;
//!         Left::offline(shape, output, security, session, rng_l, channel)?.online(&a, channel)
//!     },
//!     |channel| -> Result<Option<Matrix<Z64>>> {
//!         let b = Matrix::from_columns(3, 1, [1, 10, 100].map(Z64::new).to_vec())?;
//!         let shape = Shape::agree(Side::Right, (3, 1), channel)?;
//!         Right::offline(shape, output, security, session, rng_r, channel)?.online(&b, channel)
//!     },
//! );
//! assert!(left?.is_none());
//! assert_eq!(right?.ok_or("the right party's result")?.entries(), [321, 654].map(Z64::new));
//! # Ok(()) }
//! ```

mod matrix;
mod product;
mod shape;

use volery_channel::Channel;
use volery_field::Ring;
use volery_pcg::{Security, vole::VoleRing, wire};
use volery_primitives::pages::Buffer;
use zeroize::Zeroizing;

pub use matrix::Matrix;
pub use product::{FactorHolder, Left, Right};
pub use shape::{Output, Shape, Side};

use crate::{agree, error::Result, offline};

/// Elements drawn from a vector-OLE at once.
const PIECE: usize = 1 << 16;

/// Elements masked and sent at once.
const CHUNK: usize = 1 << 14;

/// The holder of the left factor, with random vector-OLEs.
pub struct Sender<R: VoleRing> {
    shape: Shape,
    output: Output,
    /// `u_j`, one after the other.
    u: Buffer<R>,
    /// Minus the sum of the `v_j` of each column of the product; becomes `s`.
    share: Zeroizing<Vec<R>>,
}

/// The holder of the right factor, with random vector-OLEs.
pub struct Receiver<R: VoleRing> {
    shape: Shape,
    output: Output,
    /// `x_j`.
    x: Zeroizing<Vec<R>>,
    /// The sum of the `w_j` of each column of the product; becomes `t`.
    share: Zeroizing<Vec<R>>,
}

impl<R: VoleRing> Sender<R> {
    /// The offline phase.
    ///
    /// # Errors
    /// If the peer gives another shape, output, ring or security; if the channel fails or the peer
    /// misbehaves.
    pub fn offline(
        shape: Shape,
        output: Output,
        source: &mut offline::Sender,
        channel: &mut Channel,
    ) -> Result<Self> {
        agree::<R>(shape, output, source.security(), channel)?;
        let mut u = Buffer::zeroed(shape.rows * shape.scalars());
        let mut share = Zeroizing::new(vec![R::ZERO; shape.entries()]);
        let mut v = Buffer::zeroed(shape.rows.min(PIECE));
        let of_column = shape.rows * shape.inner;
        for (u, share) in u.chunks_mut(of_column).zip(share.chunks_mut(shape.rows)) {
            for u in u.chunks_mut(shape.rows) {
                let mut stream = source.stream(shape.rows, channel)?;
                for (u, share) in u.chunks_mut(PIECE).zip(share.chunks_mut(PIECE)) {
                    let v = &mut v[..u.len()];
                    stream.extend(u, v, channel)?;
                    R::sub_slice(share, v);
                }
            }
        }
        Ok(Self { shape, output, u, share })
    }

    /// Steps 1 to 4: this party's share, or the result, or nothing, depending on the output.
    ///
    /// # Errors
    /// If the matrix does not have the shape of the left factor; if the channel fails, or the
    /// receiver sent a value that is not an element of the ring.
    pub fn online(mut self, a: &Matrix<R>, channel: &mut Channel) -> Result<Option<Matrix<R>>> {
        self.shape.check(Side::Left, a.rows(), a.columns())?;
        let Shape { rows, inner, .. } = self.shape;
        let mut deltas = vec![R::ZERO; self.shape.scalars()];
        let what = "a masked factor is not in canonical form";
        // mutant(linear-canonical-factor): ignore
        wire::recv(&mut deltas, what, channel)?; // step 1
        let mut d = Zeroizing::new(vec![R::ZERO; CHUNK.min(rows)]);
        let lines = self.u.chunks(rows).zip(&deltas).enumerate();
        for (j, (u, delta)) in lines {
            let share = &mut self.share[j / inner * rows..][..rows];
            let parts = a.column(j % inner).chunks(CHUNK).zip(u.chunks(CHUNK));
            for ((a, u), share) in parts.zip(share.chunks_mut(CHUNK)) {
                let d = &mut d[..u.len()];
                d.copy_from_slice(a);
                R::sub_slice(d, u);
                wire::send(d, channel)?; // step 2
                R::axpy(share, *delta, u); // step 3
            }
        }
        let (shape, share) = (self.shape, self.share);
        finish(shape, share, Side::Left, self.output, channel) // step 4
    }
}

impl<R: VoleRing> Receiver<R> {
    /// The offline phase, as the peer of [`Sender::offline`], errors included.
    pub fn offline(
        shape: Shape,
        output: Output,
        source: &mut offline::Receiver,
        channel: &mut Channel,
    ) -> Result<Self> {
        agree::<R>(shape, output, source.security(), channel)?;
        let mut x = Zeroizing::new(Vec::with_capacity(shape.scalars()));
        let mut share = Zeroizing::new(vec![R::ZERO; shape.entries()]);
        let mut w = Buffer::zeroed(shape.rows.min(PIECE));
        for share in share.chunks_mut(shape.rows) {
            for _ in 0..shape.inner {
                let mut stream = source.stream(None, shape.rows, channel)?;
                for share in share.chunks_mut(PIECE) {
                    let w = &mut w[..share.len()];
                    stream.extend(w, channel)?;
                    R::add_slice(share, w);
                }
                x.push(stream.x());
            }
        }
        Ok(Self { shape, output, x, share })
    }

    /// Steps 1 to 4: this party's share, or the result, or nothing, depending on the output.
    ///
    /// # Errors
    /// If the matrix does not have the shape of the right factor; if the channel fails, or the
    /// sender sent a value that is not an element of the ring.
    pub fn online(mut self, b: &Matrix<R>, channel: &mut Channel) -> Result<Option<Matrix<R>>> {
        self.shape.check(Side::Right, b.rows(), b.columns())?;
        let Shape { rows, inner, .. } = self.shape;
        let mut deltas = b.entries().to_vec();
        R::sub_slice(&mut deltas, &self.x);
        wire::send(&deltas, channel)?; // step 1
        let mut d = vec![R::ZERO; CHUNK.min(rows)];
        for (j, factor) in b.entries().iter().enumerate() {
            let share = &mut self.share[j / inner * rows..][..rows];
            for share in share.chunks_mut(CHUNK) {
                let d = &mut d[..share.len()];
                // mutant(linear-canonical-entry): ignore
                wire::recv(d, "a masked entry is not in canonical form", channel)?; // step 2
                R::axpy(share, *factor, d); // step 3
            }
        }
        let (shape, share) = (self.shape, self.share);
        finish(shape, share, Side::Right, self.output, channel) // step 4
    }
}

/// Step 4, for the party on the given side.
fn finish<R: Ring>(
    shape: Shape,
    mut share: Zeroizing<Vec<R>>,
    side: Side,
    output: Output,
    channel: &mut Channel,
) -> Result<Option<Matrix<R>>> {
    match (output, side) {
        (Output::Shared, _) => {}
        (Output::Left, Side::Left) | (Output::Right, Side::Right) => {
            let mut other = vec![R::ZERO; CHUNK.min(share.len())];
            for share in share.chunks_mut(CHUNK) {
                let other = &mut other[..share.len()];
                // mutant(linear-canonical-share): ignore
                wire::recv(other, "a share is not in canonical form", channel)?;
                R::add_slice(share, other);
            }
        }
        (Output::Left, Side::Right) | (Output::Right, Side::Left) => {
            wire::send(&share, channel)?;
            channel.flush()?;
            return Ok(None);
        }
    }
    channel.flush()?;
    let entries = std::mem::take(&mut *share);
    Matrix::from_columns(shape.rows, shape.columns, entries).map(Some)
}

/// Compares the parameters of both parties.
fn agree<R: VoleRing>(
    shape: Shape,
    output: Output,
    security: Security,
    channel: &mut Channel,
) -> Result<()> {
    let output = match output {
        Output::Shared => 0,
        // mutant(linear-output-left): insert `Output::Left if $ON => 0,`
        Output::Left => 1,
        // mutant(linear-output-right): insert `Output::Right if $ON => 1,`
        Output::Right => 2,
    };
    // mutant(linear-rows): `shape.rows as u64` => `0`
    // mutant(linear-inner): `shape.inner as u64` => `0`
    // mutant(linear-columns): `shape.columns as u64` => `0`
    let numbers = [
        ("rows of the left matrix", shape.rows as u64),
        ("columns of the left matrix", shape.inner as u64),
        ("columns of the right matrix", shape.columns as u64),
        ("output (0: shared, 1: left, 2: right)", output),
    ];
    Ok(agree::same_over::<R>(Some(security), &numbers, channel)?)
}

#[cfg(test)]
mod tests;
