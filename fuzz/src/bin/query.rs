#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rocewatch_fuzz::targets::query::check(data));
