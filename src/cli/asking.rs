//! The options of commands that ask models without an experiment: caps, cache, patience.

use std::time::Duration;

use super::cache::CacheArgs;
use crate::experiment::Reach;
use crate::ledger::Caps;

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
    cache: CacheArgs,
    /// Requests in flight at most, in place of what the files say; changes no result
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: Option<u16>,
    /// Seconds for which an endpoint may be unreachable before the command stops
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    patience: u64,
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
            cache: self.cache.file(None),
            offline: self.offline,
            concurrency: self.concurrency.map(usize::from),
            patience: Some(Duration::from_secs(self.patience)),
        }
    }
}
