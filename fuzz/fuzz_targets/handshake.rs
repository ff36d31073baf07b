//! See `volery_testing::fuzz::handshake`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| volery_testing::fuzz::handshake(data));
