//! Comparison with the defining sum; invalid shapes.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use volery_channel::{Error as ChannelError, run_two_parties};
use volery_field::{Fp61, Z64};
use volery_primitives::{Block, prg::Prg};

use super::*;
use crate::testing::{difference, sources};

fn random<R: Ring>(seed: u128, n: usize) -> Vec<R> {
    let mut entries = vec![R::ZERO; n];
    R::random_slice(&mut Prg::new(Block::from(seed)), &mut entries);
    entries
}

/// The sum as documented, pixel by pixel.
fn defining_sum<R: Ring>(shape: Shape, image: &[R], kernels: &[R]) -> Vec<R> {
    let (height, width) = shape.output_size();
    let (a, b) = (shape.kernel_height, shape.kernel_width);
    let (top, left) = match shape.padding {
        Padding::Valid => (0, 0),
        Padding::Same => ((a - 1) / 2, (b - 1) / 2),
    };
    let mut out = Vec::new();
    for o in 0..shape.outputs {
        for y in 0..height {
            for x in 0..width {
                let mut sum = R::ZERO;
                for c in 0..shape.inputs {
                    for i in 0..a {
                        for j in 0..b {
                            let (row, column) = (y + i, x + j);
                            if row < top || column < left {
                                continue;
                            }
                            let (row, column) = (row - top, column - left);
                            if row < shape.height && column < shape.width {
                                let pixel = (c * shape.height + row) * shape.width + column;
                                let entry = ((o * shape.inputs + c) * a + i) * b + j;
                                sum += kernels[entry] * image[pixel];
                            }
                        }
                    }
                }
                out.push(sum);
            }
        }
    }
    out
}

fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for padding in [Padding::Valid, Padding::Same] {
        for (image, kernels) in [
            ((1, 1, 1), (1, 1, 1)),
            ((2, 5, 7), (3, 3, 3)),
            ((1, 7, 5), (2, 2, 4)),
            ((3, 4, 9), (1, 4, 1)),
            ((1, 3, 3), (1, 3, 3)),
        ] {
            shapes.push(Shape::new(image, kernels, padding).unwrap());
        }
    }
    // A kernel larger than the image covers all of it.
    for kernels in [(1, 5, 7), (2, 9, 1), (1, 4, 8)] {
        shapes.push(Shape::new((2, 3, 2), kernels, Padding::Same).unwrap());
    }
    shapes
}

fn inputs<R: Ring>(shape: Shape) -> (Vec<R>, Vec<R>) {
    let image = shape.inputs * shape.height * shape.width;
    let kernels = shape.outputs * shape.inputs * shape.kernel_height * shape.kernel_width;
    (random(1, image), random(2, kernels))
}

#[test]
fn the_plain_one_is_the_defining_sum() {
    for shape in shapes() {
        let (image, kernels) = inputs::<Z64>(shape);
        assert_eq!(
            plain(shape, &image, &kernels).unwrap(),
            defining_sum(shape, &image, &kernels),
            "{shape:?}"
        );
    }
}

/// Windows are the same in pieces of any length.
#[test]
fn windows_in_pieces() {
    for shape in shapes() {
        let (image, _) = inputs::<Z64>(shape);
        let (height, width) = shape.output_size();
        for number in 0..shape.product().unwrap().inner() {
            let mut whole = vec![Z64::ZERO; height * width];
            shape.window(&image, number, 0, &mut whole);
            for length in [1, 2, 3, 8] {
                let mut pieces = vec![Z64::ONE; whole.len()];
                for (piece, out) in pieces.chunks_mut(length).enumerate() {
                    shape.window(&image, number, piece * length, out);
                }
                assert_eq!(pieces, whole, "{shape:?}");
            }
        }
    }
}

fn check<R: VoleRing>(shape: Shape, output: Output, security: Security) {
    let (image, kernels) = inputs::<R>(shape);
    let (left, right) = sources(
        security,
        |source, channel| {
            let sender = Sender::offline(shape, output, source, channel).unwrap();
            sender.online(&image, channel).unwrap()
        },
        |source, channel| {
            let receiver = Receiver::offline(shape, output, source, channel).unwrap();
            receiver.online(&kernels, channel).unwrap()
        },
    );
    let expected = defining_sum(shape, &image, &kernels);
    match (output, left, right) {
        (Output::Shared, Some(mut left), Some(right)) => {
            R::add_slice(&mut left, &right);
            assert!(*left == expected);
        }
        (Output::Left, Some(result), None) | (Output::Right, None, Some(result)) => {
            assert!(*result == expected);
        }
        _ => panic!("{output:?}"),
    }
}

#[test]
fn two_parties_get_the_convolution() {
    for padding in [Padding::Valid, Padding::Same] {
        let shape = Shape::new((2, 9, 8), (2, 3, 2), padding).unwrap();
        for output in [Output::Shared, Output::Left, Output::Right] {
            check::<Fp61>(shape, output, Security::default());
        }
        check::<Z64>(shape, Output::Shared, Security::SemiHonest);
    }
}

/// The size of the paper, with its smallest kernel.
#[test]
fn an_image_of_255_x_255() {
    let shape = Shape::new((1, 255, 255), (1, 3, 3), Padding::Same).unwrap();
    check::<Fp61>(shape, Output::Right, Security::default());
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    for (image, kernels) in [
        ((0, 5, 5), (1, 3, 3)),
        ((1, 5, 0), (1, 3, 3)),
        ((1, 5, 5), (0, 3, 3)),
        ((1, 5, 5), (1, 3, 0)),
    ] {
        assert!(matches!(Shape::new(image, kernels, Padding::Same), Err(Error::Empty(_))));
    }
    let large = Shape::new((1, 5, 5), (1, 6, 3), Padding::Valid);
    assert!(matches!(large, Err(Error::Kernel { kernel: (6, 3), .. })));
    let sizes = (usize::MAX, 1 << 30, 1 << 30);
    assert!(matches!(Shape::new(sizes, (1, 1, 1), Padding::Same), Err(Error::TooLarge { .. })));
    let shape = Shape::new((1, 5, 5), (1, 3, 3), Padding::Same).unwrap();
    assert!(matches!(
        plain(shape, &[Z64::ONE; 24], &[Z64::ONE; 9]),
        Err(Error::Entries { given: 24, wanted: 25, .. })
    ));
    assert!(plain(shape, &[Z64::ONE; 25], &[Z64::ONE; 8]).is_err());
}

#[test]
fn settings_take_72_bytes_and_name_the_ring() {
    let shape = Shape::new((1, 5, 5), (1, 3, 3), Padding::Same).unwrap();
    let weak = Security::SemiHonest;
    let party = |channel: &mut Channel| {
        shape.agree::<Fp61>(weak, channel).unwrap();
        channel.stats()
    };
    let (left, right) = run_two_parties(party, party);
    for stats in [left, right] {
        assert_eq!((stats.bytes_sent, stats.bytes_received), (72, 72));
    }
    let ring = run_two_parties(
        |channel| shape.agree::<Fp61>(weak, channel),
        |channel| shape.agree::<Z64>(weak, channel),
    );
    let security = run_two_parties(
        |channel| shape.agree::<Fp61>(weak, channel),
        |channel| shape.agree::<Fp61>(Security::Malicious, channel),
    );
    for ((a, b), name) in [(ring, "bits of the ring"), (security, "security")] {
        for error in [a.unwrap_err(), b.unwrap_err()] {
            let named = matches!(
                error,
                Error::Channel(ChannelError::Mismatch { field, .. }) if field.starts_with(name)
            );
            assert!(named, "{name}");
        }
    }
}

#[test]
fn shapes_that_differ_are_named_at_both_sides() {
    let shape = |padding| Shape::new((1, 5, 5), (1, 3, 3), padding).unwrap();
    let (a, b) = sources(
        Security::Malicious,
        |source, channel| {
            let shape = shape(Padding::Same);
            Sender::<Fp61>::offline(shape, Output::Left, source, channel).map(|_| ())
        },
        |source, channel| {
            let shape = shape(Padding::Valid);
            Receiver::<Fp61>::offline(shape, Output::Left, source, channel).map(|_| ())
        },
    );
    for error in [a.unwrap_err(), b.unwrap_err()] {
        assert!(matches!(error, Error::Channel(ChannelError::Mismatch { .. })));
    }
}

#[test]
fn each_setting_is_compared() {
    let compare = |image, kernels, padding| {
        move |channel: &mut Channel| {
            let shape = Shape::new(image, kernels, padding).unwrap();
            shape.agree::<Fp61>(Security::Malicious, channel)
        }
    };
    for (image, kernels, padding, name) in [
        ((2, 5, 6), (2, 3, 1), Padding::Valid, "channels of the image"),
        ((1, 7, 6), (2, 3, 1), Padding::Valid, "height of the image"),
        ((1, 5, 7), (2, 3, 1), Padding::Valid, "width of the image"),
        ((1, 5, 6), (3, 3, 1), Padding::Valid, "output channels"),
        ((1, 5, 6), (2, 1, 1), Padding::Valid, "height of a kernel"),
        ((1, 5, 6), (2, 3, 3), Padding::Valid, "width of a kernel"),
        ((1, 5, 6), (2, 3, 1), Padding::Same, "padding"),
    ] {
        let ours = compare((1, 5, 6), (2, 3, 1), Padding::Valid);
        let field = difference(ours, compare(image, kernels, padding));
        assert!(field.contains(name), "{field}");
    }
}
