//! Evaluations of target models, leaderboards, human validation, corrected rates.

mod commands;
mod corrected;
mod leaderboard;
mod rates;
mod reading;
mod server;
mod validate;

use std::path::Path;

use crate::harness::root;

/// A task of the checkout.
pub fn task(name: &str) -> pluralis::task::Task {
    let path = root().join("judge-prompts").join(name).join("task.toml");
    pluralis::task::parse_task(&std::fs::read_to_string(path).unwrap(), None).unwrap()
}

/// A number in [0, 1) that depends on both alone: the same draws on every machine.
pub fn draw(seed: u64, index: u64) -> f64 {
    let mut x = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(index.wrapping_mul(0xbf58_476d_1ce4_e5b9))
        .wrapping_add(0x94d0_49bb_1331_11eb);
    for _ in 0..2 {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
    }
    (x >> 11) as f64 / (1u64 << 53) as f64
}

/// Writes a file and the folders above it.
pub fn put(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
