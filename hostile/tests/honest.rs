//! Between honest parties every protocol of the cast works, and always exchanges the same messages.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::HashSet;

use volery_channel::run_two_parties_with_stats;
use volery_hostile::{Side, cast};

#[test]
fn honest_parties_agree_and_repeat_themselves() {
    let mut names = HashSet::new();
    for protocol in cast() {
        assert!(
            names.insert(protocol.name.clone()),
            "{} is there twice",
            protocol.name
        );
        let run = || {
            run_two_parties_with_stats(
                |channel| protocol.run(Side::Left, channel).unwrap(),
                |channel| protocol.run(Side::Right, channel).unwrap(),
            )
        };
        let ((left, sent), (right, received)) = run();
        assert!(protocol.agree(&left, &right), "{protocol:?}");
        let ((_, sent_again), (_, received_again)) = run();
        let again = (sent_again, received_again);
        assert_eq!((sent, received), again, "{protocol:?}");
    }
}
