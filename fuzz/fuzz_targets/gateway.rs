//! See `volery_testing::fuzz::gateway`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| volery_testing::fuzz::gateway(data));
