//! Convolutions: one party has an image of several channels, the other the kernels.
//!
//! Section 7.1 of the 2019 paper. With `C` input channels, kernels of `a x b` and `O` output
//! channels,
//!
//! ```text
//! out[o][y][x] = sum over c, i, j of  kernel[o][c][i][j] * image[c][y + i - top][x + j - left],
//! ```
//!
//! the convolution of neural networks (the kernel is not mirrored). There is an output where the
//! whole kernel is inside the image ([`Padding::Valid`], `top = left = 0`), or at every pixel, with
//! zeros around the image ([`Padding::Same`], `top = (a - 1)/2` and `left = (b - 1)/2`, rounded
//! down).
//!
//! Each entry of a kernel multiplies a window of one channel, as large as the output. So the holder
//! of the image is the sender of [`linear`], with a matrix whose columns are these `C*a*b` windows,
//! generated piece by piece; the kernels are the right factor, one column for each output channel:
//! `C*O*a*b` vector-OLEs of the length of an output channel.
//!
//! Images and kernels are given as their entries in the order of the formula above:
//! `[channel][row][column]`, and `[output channel][input channel][row][column]`.
//!
//! Security and output: [`linear`]; the holder of the image is its left side. The other party gets
//! no proof that the columns of the matrix are windows of one image: a malicious sender may use any
//! others. Cost: that of [`linear`] with `n` the pixels of an output channel, `m = C*a*b`, `p = O`,
//! and a message of 72 bytes in both directions that compares ring, security and shapes. For 255 x
//! 255 pixels and one channel each, `Same`: 9 vector-OLEs of length 65,025 for 3 x 3, 25 for 5 x 5,
//! 81 for 9 x 9; online 0.5 MB for each.

use volery_channel::Channel;
use volery_field::Ring;
use volery_pcg::{Security, vole::VoleRing};
use zeroize::Zeroizing;

use crate::{
    agree,
    error::{Error, Result},
    linear::{self, Matrix, Output},
    offline,
};

/// The maximum number of entries of an image or of kernels: a limit of the counters, not of memory.
const LARGEST: u64 = 1 << 40;

/// The positions of the outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// Positions where the kernel is inside the image: `(h - a + 1) x (w - b + 1)`.
    #[default]
    Valid,
    /// Every pixel: `h x w`, with zeros around the image.
    Same,
}

/// The public shape of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    inputs: usize,
    height: usize,
    width: usize,
    outputs: usize,
    kernel_height: usize,
    kernel_width: usize,
    padding: Padding,
}

/// The holder of the image, with random vector-OLEs.
pub struct Sender<R: VoleRing> {
    shape: Shape,
    product: linear::Sender<R>,
}

/// The holder of the kernels, with random vector-OLEs.
pub struct Receiver<R: VoleRing> {
    shape: Shape,
    product: linear::Receiver<R>,
}

impl Shape {
    /// The shape of an image of `inputs` channels with `height x width` pixels, and kernels of
    /// `kernel_height x kernel_width` for `outputs` output channels.
    ///
    /// # Errors
    /// If a size is zero; if a kernel is larger than the image, with [`Padding::Valid`]; if the
    /// total number of entries is too large.
    pub fn new(
        (inputs, height, width): (usize, usize, usize),
        (outputs, kernel_height, kernel_width): (usize, usize, usize),
        padding: Padding,
    ) -> Result<Self> {
        if inputs == 0 || height == 0 || width == 0 {
            return Err(Error::Empty("an image without channels or pixels"));
        }
        if outputs == 0 || kernel_height == 0 || kernel_width == 0 {
            return Err(Error::Empty("kernels without channels or entries"));
        }
        if padding == Padding::Valid && (kernel_height > height || kernel_width > width) {
            return Err(Error::Input(format!(
                "a kernel of {kernel_height} x {kernel_width} does not fit into an image of \
                 {height} x {width}: pad the image, or choose the same-size output"
            )));
        }
        let shape = Self { inputs, height, width, outputs, kernel_height, kernel_width, padding };
        let image = [inputs, height, width];
        let kernels = [inputs, outputs, kernel_height, kernel_width];
        let countable = |sizes: &[usize]| {
            let product = |all: Option<u64>, size: &usize| all?.checked_mul(*size as u64);
            sizes.iter().fold(Some(1), product).is_some_and(|all| all <= LARGEST)
        };
        if !countable(&image) || !countable(&kernels) {
            return Err(Error::TooLarge {
                what: "the entries of an image or of kernels",
                bits: LARGEST.ilog2(),
            });
        }
        shape.product()?;
        Ok(shape)
    }

    /// Height and width of an output channel.
    pub fn output_size(&self) -> (usize, usize) {
        match self.padding {
            Padding::Same => (self.height, self.width),
            Padding::Valid => {
                (self.height - self.kernel_height + 1, self.width - self.kernel_width + 1)
            }
        }
    }

    /// The shape of the matrix product.
    fn product(&self) -> Result<linear::Shape> {
        let (height, width) = self.output_size();
        let window = self.inputs * self.kernel_height * self.kernel_width;
        linear::Shape::new(height * width, window, self.outputs)
    }

    /// Compares the shapes of both parties.
    fn agree<R: Ring>(&self, security: Security, channel: &mut Channel) -> Result<()> {
        // mutant(convolution-inputs): `self.inputs as u64` => `0`
        // mutant(convolution-height): `self.height as u64` => `0`
        // mutant(convolution-width): `self.width as u64` => `0`
        // mutant(convolution-outputs): `self.outputs as u64` => `0`
        // mutant(convolution-kernel-height): `self.kernel_height as u64` => `0`
        // mutant(convolution-kernel-width): `self.kernel_width as u64` => `0`
        // mutant(convolution-padding): `u64::from(self.padding == Padding::Same)` => `0`
        Ok(agree::same_over::<R>(
            Some(security),
            &[
                ("channels of the image", self.inputs as u64),
                ("height of the image", self.height as u64),
                ("width of the image", self.width as u64),
                ("output channels of the kernels", self.outputs as u64),
                ("height of a kernel", self.kernel_height as u64),
                ("width of a kernel", self.kernel_width as u64),
                ("padding (0: valid, 1: same)", u64::from(self.padding == Padding::Same)),
            ],
            channel,
        )?)
    }

    fn check_image(&self, given: usize) -> Result<()> {
        match self.inputs * self.height * self.width {
            wanted if wanted == given => Ok(()),
            wanted => Err(Error::Entries { what: "the image", given, wanted }),
        }
    }

    fn check_kernels(&self, given: usize) -> Result<()> {
        match self.outputs * self.inputs * self.kernel_height * self.kernel_width {
            wanted if wanted == given => Ok(()),
            wanted => Err(Error::Entries { what: "the kernels", given, wanted }),
        }
    }

    /// The entries of window `number`, which the kernel entry of that number multiplies, for the
    /// outputs from `first` on.
    fn window<R: Ring>(&self, image: &[R], number: usize, first: usize, out: &mut [R]) {
        let (top, left) = match self.padding {
            Padding::Valid => (0, 0),
            Padding::Same => ((self.kernel_height - 1) / 2, (self.kernel_width - 1) / 2),
        };
        let (j, number) = (number % self.kernel_width, number / self.kernel_width);
        let (i, channel) = (number % self.kernel_height, number / self.kernel_height);
        let image = &image[channel * self.height * self.width..][..self.height * self.width];
        let width = self.output_size().1;
        let mut place = first;
        let mut out = out;
        while !out.is_empty() {
            let (y, x) = (place / width, place % width);
            let line;
            (line, out) = out.split_at_mut(out.len().min(width - x));
            place += line.len();
            line.fill(R::ZERO);
            let Some(row) = (y + i).checked_sub(top).filter(|row| *row < self.height) else {
                continue;
            };
            // The part of the line whose pixels lie inside the image.
            let from = left.saturating_sub(x + j).min(line.len());
            let column = x + from + j;
            let count = (self.width + left).saturating_sub(column).min(line.len() - from);
            if count > 0 {
                let pixels = &image[row * self.width + column - left..][..count];
                line[from..][..count].copy_from_slice(pixels);
            }
        }
    }
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
        shape.agree::<R>(source.security(), channel)?;
        let product = linear::Sender::offline(shape.product()?, output, source, channel)?;
        Ok(Self { shape, product })
    }

    /// The online phase: this party's share of `[output channel][row][column]`, or the result, or
    /// nothing, depending on the output.
    ///
    /// # Errors
    /// If the image does not have the agreed size; if the channel fails, or the receiver sent a
    /// value that is not an element of the ring.
    pub fn online(self, image: &[R], channel: &mut Channel) -> Result<Option<Zeroizing<Vec<R>>>> {
        let shape = self.shape;
        shape.check_image(image.len())?;
        let window = |number: usize, first: usize, out: &mut [R]| {
            shape.window(image, number, first, out);
        };
        Ok(self.product.online_with(window, channel)?.map(entries))
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
        shape.agree::<R>(source.security(), channel)?;
        let product = linear::Receiver::offline(shape.product()?, output, source, channel)?;
        Ok(Self { shape, product })
    }

    /// The online phase: this party's share of `[output channel][row][column]`, or the result, or
    /// nothing, depending on the output.
    ///
    /// # Errors
    /// If the kernels do not have the agreed size; if the channel fails, or the sender sent a value
    /// that is not an element of the ring.
    pub fn online(self, kernels: &[R], channel: &mut Channel) -> Result<Option<Zeroizing<Vec<R>>>> {
        self.shape.check_kernels(kernels.len())?;
        let product = self.shape.product()?;
        let kernels = Matrix::from_columns(product.inner(), product.columns(), kernels.to_vec())?;
        Ok(self.product.online(&kernels, channel)?.map(entries))
    }
}

/// The convolution in the clear.
///
/// # Errors
/// If the image or the kernels do not have the sizes of the shape.
pub fn plain<R: Ring>(shape: Shape, image: &[R], kernels: &[R]) -> Result<Vec<R>> {
    shape.check_image(image.len())?;
    shape.check_kernels(kernels.len())?;
    let (height, width) = shape.output_size();
    let mut window = vec![R::ZERO; height * width];
    let mut out = vec![R::ZERO; shape.outputs * window.len()];
    let windows = kernels.len() / shape.outputs;
    for (out, kernels) in out.chunks_mut(window.len()).zip(kernels.chunks(windows)) {
        for (number, factor) in kernels.iter().enumerate() {
            shape.window(image, number, 0, &mut window);
            R::axpy(out, *factor, &window);
        }
    }
    Ok(out)
}

/// The columns of the product: one output channel after the other.
fn entries<R: Ring>(product: Matrix<R>) -> Zeroizing<Vec<R>> {
    Zeroizing::new(product.entries().to_vec())
}

#[cfg(test)]
mod tests;
