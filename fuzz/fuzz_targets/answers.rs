#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pluralis_fuzz::answers(data));
