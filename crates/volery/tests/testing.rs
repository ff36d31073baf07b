//! The assertions for tests: that protocols run over ideal and real sources, `volery-mpc` tests.

use std::panic::catch_unwind;

use volery::prelude::*;
use volery::testing::{cot::assert_cot, vole::assert_vole};

/// The message names the place, and no value.
#[test]
fn assertions_name_the_first_wrong_place() {
    let (v, mut w) = ([Block::ZERO; 20], [Block::ZERO; 20]);
    [w[7], w[9]] = [Block::ONE; 2];
    let wrong = catch_unwind(|| assert_cot(Block::ZERO, &v, &[0; 3], &w));
    let text = *wrong.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("Some(7)") && text.contains("of 20"), "{text}");
    let (v, w) = ([Fp61::ZERO; 2], [Fp61::ZERO, Fp61::ONE]);
    let wrong = catch_unwind(|| assert_vole(Fp61::ONE, &v, &v, &w));
    assert!(wrong.unwrap_err().downcast::<String>().unwrap().contains("Some(1)"));
}
