//! Owns experiments: TOML -> a checked plan, and the run folder that a plan is executed in.
//! Must not know how a run works inside.

mod config;
mod endpoints;
mod plan;
mod run;
mod summary;

pub use config::{
    BudgetConfig, Config, ConfigError, DataConfig, EndpointConfig, SplitConfig, TaskConfig,
};
pub use endpoints::open as open_endpoint;
pub use plan::{Plan, PlanError, load_task};
pub use run::{Progress, RunError, RunOptions, tune};
pub use summary::{Arm, Figure, Gain, People, SplitFigures, Summary};
