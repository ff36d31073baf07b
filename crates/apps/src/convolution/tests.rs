//! Comparison with the defining sum; invalid shapes.

use volery_field::{Fp61, Z64};

use super::*;
use crate::testing::{assert_offline_differ, random, sources};

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
    (random(image, 1), random(kernels, 2))
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
    let large = Shape::new((1, 5, 5), (1, 6, 3), Padding::Valid).unwrap_err().to_string();
    assert!(large.starts_with("a kernel of 6 x 3 does not fit into an image of 5 x 5"), "{large}");
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
fn each_setting_is_compared() {
    let shape = |image, kernels, padding| Shape::new(image, kernels, padding).unwrap();
    let ours = shape((1, 5, 6), (2, 3, 1), Padding::Valid);
    // The last two pairs of shapes have the same product.
    for (ours, theirs, name) in [
        (ours, shape((2, 5, 6), (2, 3, 1), Padding::Valid), "channels of the image"),
        (ours, shape((1, 7, 6), (2, 3, 1), Padding::Valid), "height of the image"),
        (ours, shape((1, 5, 7), (2, 3, 1), Padding::Valid), "width of the image"),
        (ours, shape((1, 5, 6), (3, 3, 1), Padding::Valid), "output channels"),
        (ours, shape((1, 5, 6), (2, 1, 1), Padding::Valid), "height of a kernel"),
        (ours, shape((1, 5, 6), (2, 3, 3), Padding::Valid), "width of a kernel"),
        (ours, shape((1, 5, 6), (2, 3, 1), Padding::Same), "padding"),
        (
            shape((1, 5, 6), (2, 3, 1), Padding::Same),
            shape((1, 6, 5), (2, 3, 1), Padding::Same),
            "height of the image",
        ),
        (
            shape((1, 5, 6), (2, 1, 1), Padding::Valid),
            shape((1, 5, 6), (2, 1, 1), Padding::Same),
            "padding",
        ),
    ] {
        let output = Output::Shared;
        assert_offline_differ(
            name,
            |source, channel| Sender::<Fp61>::offline(ours, output, source, channel).map(drop),
            |source, channel| Receiver::<Fp61>::offline(theirs, output, source, channel).map(drop),
        );
    }
}
