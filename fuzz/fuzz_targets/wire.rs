//! See `volery_testing::fuzz::wire`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| volery_testing::fuzz::wire(data));
