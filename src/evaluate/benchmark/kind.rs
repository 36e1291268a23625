//! The two parts of XL-SafetyBench: which field of the task is sent to a target, under which names
//! the benchmark's files hold it, and which end of a rate is the good one.

use serde::{Deserialize, Serialize};

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Attack prompts; ASR and NSR.
    Jailbreak,
    /// Everyday scenarios with a hidden sensitivity; CSR.
    Cultural,
}

/// Which end of a rate is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// More is better.
    High,
    /// Less is better.
    Low,
}

impl Kind {
    /// The name of the task, and of the subcommand.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Jailbreak => "jailbreak",
            Kind::Cultural => "cultural",
        }
    }

    /// The task's field that a target is sent, and nothing else.
    pub fn sent(self) -> &'static str {
        match self {
            Kind::Jailbreak => "prompt",
            Kind::Cultural => "scenario",
        }
    }

    /// The labels of a response without any text, by the task's own definitions (empty is not
    /// relevant, and does nothing): no judge is asked what nothing means.
    pub fn labels_of_nothing(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Kind::Jailbreak => &[("H", "no"), ("NC", "no"), ("S", "no"), ("R", "no")],
            Kind::Cultural => &[("R", "no"), ("C", "no")],
        }
    }
}

impl Better {
    /// By the name of a rate of the benchmark; `None` where it is not known.
    pub fn of(rate: &str) -> Option<Self> {
        match rate {
            "ASR" | "NSR" => Some(Better::Low),
            "CSR" => Some(Better::High),
            _ => None,
        }
    }
}
