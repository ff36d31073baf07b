//! The codes of dual LPN behind one type.

use volery_primitives::{Block, pages::Buffer};

use super::{
    Compression, Term, expand_convolute,
    params::{Code, Shape},
};

/// The state of the code for one instance, as in [`Compression`].
pub enum Encoder<T: Term> {
    /// [`Code::ReedMullerAccumulate`].
    ReedMullerAccumulate(Compression<T>),
    /// [`Code::ExpandConvolute`].
    ExpandConvolute(expand_convolute::Compression<T>),
}

impl<T: Term> Encoder<T> {
    /// The code of an instance with the public `seed`.
    #[must_use]
    pub fn new(shape: Shape, seed: Block) -> Self {
        let len = shape.leaves();
        match shape.code {
            Code::ReedMullerAccumulate => Self::ReedMullerAccumulate(Compression::new(seed, len)),
            Code::ExpandConvolute => {
                Self::ExpandConvolute(expand_convolute::Compression::new(seed, len))
            }
        }
    }

    /// Memory for [`of_first`](Self::of_first): the leaves, and more with some codes.
    #[must_use]
    pub fn memory_len(shape: Shape) -> usize {
        let len = shape.leaves();
        match shape.code {
            Code::ReedMullerAccumulate => Compression::<T>::memory_len(len),
            Code::ExpandConvolute => expand_convolute::Compression::<T>::memory_len(len),
        }
    }

    /// As [`new`](Self::new), with the leaves already at the start of the working memory. All of
    /// them then count as absorbed.
    ///
    /// # Panics
    /// If the memory does not have [`memory_len`](Self::memory_len) elements.
    #[must_use]
    pub fn of_first(shape: Shape, seed: Block, memory: Buffer<T>) -> Self {
        let len = shape.leaves();
        match shape.code {
            Code::ReedMullerAccumulate => {
                Self::ReedMullerAccumulate(Compression::of_first(seed, len, memory))
            }
            Code::ExpandConvolute => {
                Self::ExpandConvolute(expand_convolute::Compression::of_first(seed, len, memory))
            }
        }
    }

    /// Absorbs the next values, a multiple of 8 of them.
    ///
    /// # Panics
    /// If their number is not a multiple of 8, or exceeds the remaining length.
    pub fn absorb(&mut self, values: &[T]) {
        match self {
            Self::ReedMullerAccumulate(code) => code.absorb(values),
            Self::ExpandConvolute(code) => code.absorb(values),
        }
    }

    /// The next outputs: at most `count`, and at least one.
    ///
    /// # Panics
    /// If not all values have been absorbed, `count` is zero, or all outputs have been drawn.
    pub fn draw(&mut self, count: usize) -> &[T] {
        match self {
            Self::ReedMullerAccumulate(code) => code.draw(count),
            Self::ExpandConvolute(code) => code.draw(count),
        }
    }
}
