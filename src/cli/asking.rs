//! The options of commands that ask models: which cache, how many at a time and how long to wait;
//! and, for models without an experiment, the caps.

use std::time::Duration;

use super::Failure;
use super::cache::CacheArgs;
use crate::evaluate::target::Asking;
use crate::experiment::Reach;
use crate::ledger::Caps;

/// What changes no result: where answers are kept, how many requests are under way, and how long a
/// silent endpoint is waited for.
#[derive(clap::Args)]
pub struct PaceArgs {
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Requests in flight at most, in place of what the file says; changes no result
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: Option<u16>,
    /// Seconds for which an endpoint may be unreachable before the command stops
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    patience: u64,
}

impl PaceArgs {
    pub fn concurrency(&self) -> Option<usize> {
        self.concurrency.map(usize::from)
    }

    pub fn patience(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.patience))
    }
}

/// How free text is asked for; `--temperature` is checked here.
pub fn asking(max_tokens: u32, temperature: f32) -> Result<Asking, Failure> {
    if !(0.0..=10.0).contains(&temperature) {
        return Err(Failure::input("--temperature lies between 0 and 10"));
    }
    Ok(Asking {
        max_tokens,
        temperature,
        ..Asking::default()
    })
}

/// How models are reached.
#[derive(clap::Args)]
pub struct ReachArgs {
    /// Calls at most, retries included, over all models together
    #[arg(long, value_name = "N")]
    pub calls: Option<u64>,
    /// Tokens that models may read at most
    #[arg(long, value_name = "N")]
    prompt_tokens: Option<u64>,
    /// Tokens that models may write at most
    #[arg(long, value_name = "N")]
    completion_tokens: Option<u64>,
    /// Make no call: answer from the cache alone
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    pace: PaceArgs,
}

impl ReachArgs {
    /// As the experiment room takes it.
    pub fn reach(&self) -> Reach {
        Reach {
            caps: Caps {
                calls: self.calls,
                prompt_tokens: self.prompt_tokens,
                completion_tokens: self.completion_tokens,
                money: None,
            },
            cache: self.pace.cache.file(None),
            offline: self.offline,
            concurrency: self.pace.concurrency(),
            patience: self.pace.patience(),
        }
    }
}
