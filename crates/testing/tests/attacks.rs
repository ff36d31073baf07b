//! Attacks on every protocol of the registry, by `volery_testing::attacks`.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use peak_alloc::PeakAlloc;
use volery_os::world;
use volery_testing::{attacks, registry};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// In a world of its own.
fn within(body: &mut (dyn FnMut() + Send)) {
    let root = tempfile::tempdir().unwrap();
    world::run(root.path(), 0, &[], |_| body()).result.unwrap();
}

#[test]
fn no_tampered_message_does_harm() {
    let summary = attacks::withstand(registry(), &HEAP, within);
    for stage in summary.stages() {
        let count: usize = stage.values().sum();
        assert!(count > 50, "{count} attacks: {summary:?}");
    }
    let [refused, wrong] = ["refused", "wrong"].map(|end| summary.changed[end]);
    assert!(refused > 100 && wrong > 20, "{summary:?}");
}
