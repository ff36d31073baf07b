//! See `volery_hostile::fuzz::wire`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| volery_hostile::fuzz::wire(data));
