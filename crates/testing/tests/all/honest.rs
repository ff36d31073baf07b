//! Every protocol of the registry succeeds between honest parties, and always exchanges the same
//! messages.

use volery_testing::{honest, registry};

#[test]
fn honest_parties_agree_and_repeat_themselves() {
    honest::assert_agreement(&registry());
}
