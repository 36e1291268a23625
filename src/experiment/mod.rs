//! Owns experiments and evaluations: TOML -> a checked plan, and the run folder that a plan is executed
//! in, resumed and replayed.
//! Must not know how a run works inside.

mod ancestry;
mod config;
mod dry_run;
mod endpoints;
pub mod evaluation;
mod evidence;
mod execute;
mod finish;
mod folder;
mod gate;
mod plan;
mod register;
mod replay;
mod reproduce;
mod run;
mod score;
mod settings;
mod spending;
mod summary;
mod targets;
mod values;

pub use config::{
    BudgetConfig, Config, ConfigError, DataConfig, EndpointConfig, SplitConfig, TaskConfig,
};
pub use dry_run::{BYTES_PER_TOKEN, DryRun, Step, dry_run};
pub use endpoints::open as open_endpoint;
pub use gate::{GatePlan, run_gate};
pub use plan::{Plan, PlanError, load_task};
pub use register::{Registered, RunRecord, base_of, register};
pub use replay::{Difference, Replay, ReplayError, ReplayOptions, replay};
pub use reproduce::{ReproduceOptions, Reproduced, reproduce, start_of};
pub use run::{Progress, RunError, RunOptions, tune};
pub use score::{ScoreOptions, Scored, score};
pub use summary::{Arm, Figure, Gain, People, SplitFigures, Summary};
pub use targets::{Asked, Reach, ask_targets, load_endpoint};
