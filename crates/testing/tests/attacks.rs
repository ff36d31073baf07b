//! Attacks on every protocol of the registry, by `volery_testing::attacks`.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use peak_alloc::PeakAlloc;
use volery_testing::{attacks, registry};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

#[test]
fn no_tampered_message_does_harm() {
    let summary = attacks::withstand(registry(), &HEAP);
    for stage in summary.stages() {
        let count: usize = stage.values().sum();
        assert!(count > 50, "{count} attacks: {summary:?}");
    }
    let [refused, wrong] = ["refused", "wrong"].map(|end| summary.changed[end]);
    assert!(refused > 100 && wrong > 20, "{summary:?}");
}
