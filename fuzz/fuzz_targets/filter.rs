//! See `volery_testing::fuzz::filter`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| volery_testing::fuzz::filter(data));
