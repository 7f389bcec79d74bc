#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cpbpe_fuzz::columns(data));
