//! The picture of docs/low-communication.md is the one that the plans give.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../examples/low_communication.rs"]
#[allow(dead_code, reason = "the example has a main of its own")]
mod example;

#[test]
fn the_picture_is_as_the_plans_are() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let committed = std::fs::read_to_string(format!("{docs}/low-communication.svg")).unwrap();
    assert!(
        committed == example::picture(),
        "draw it again: cargo run -p volery-bench --example low_communication > docs/low-communication.svg"
    );
    let page = std::fs::read_to_string(format!("{docs}/low-communication.md")).unwrap();
    assert!(page.contains("](low-communication.svg)"), "it is shown");
}
