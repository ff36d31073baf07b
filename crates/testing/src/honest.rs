//! Honest parties.

use std::collections::HashSet;

use volery_channel::{Role, run_two_parties_with_stats};

use crate::Protocol;

/// Checks that every protocol succeeds between honest parties and always exchanges the same
/// messages, and that no two have the same name.
///
/// # Panics
/// If one does not.
pub fn assert_agreement(protocols: &[Protocol]) {
    let mut names = HashSet::new();
    for protocol in protocols {
        assert!(names.insert(&protocol.name), "the registry has {} twice", protocol.name);
        let finish = |side| {
            move |channel: &mut volery_channel::Channel| {
                protocol.run(side, channel).expect("honest parties finish")
            }
        };
        let run = || run_two_parties_with_stats(finish(Role::Sender), finish(Role::Receiver));
        let ((left, sent), (right, received)) = run();
        assert!(protocol.agree(&left, &right), "{protocol:?}");
        let ((_, sent_again), (_, received_again)) = run();
        let again = (sent_again, received_again);
        assert_eq!((sent, received), again, "{protocol:?}");
    }
}
