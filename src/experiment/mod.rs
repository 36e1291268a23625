//! Owns experiments: TOML -> a checked plan, and the run folder that a plan is executed in, resumed
//! and replayed.
//! Must not know how a run works inside.

mod config;
mod dry_run;
mod endpoints;
mod execute;
mod finish;
mod folder;
mod plan;
mod replay;
mod run;
mod spending;
mod summary;
mod values;

pub use config::{
    BudgetConfig, Config, ConfigError, DataConfig, EndpointConfig, SplitConfig, TaskConfig,
};
pub use dry_run::{BYTES_PER_TOKEN, DryRun, Step, dry_run};
pub use endpoints::open as open_endpoint;
pub use plan::{Plan, PlanError, load_task};
pub use replay::{Difference, Replay, ReplayError, ReplayOptions, replay};
pub use run::{Progress, RunError, RunOptions, tune};
pub use summary::{Arm, Figure, Gain, People, SplitFigures, Summary};
