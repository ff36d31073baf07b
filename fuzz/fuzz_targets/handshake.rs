//! See `volery_hostile::fuzz::handshake`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| volery_hostile::fuzz::handshake(data));
