//! See `volery_testing::fuzz::csv`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| volery_testing::fuzz::csv(data));
