//! Progress on stderr: a bar of calls against the budget where it is a terminal, plain lines where not.

use std::io::IsTerminal;
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::out;
use crate::experiment::Progress;
use crate::optimize::Event;
use crate::report::percent;
use crate::text::visible_lines;

/// Shows a run.
pub struct Display {
    bar: ProgressBar,
    terminal: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    best: Option<f64>,
    last_line: u64,
}

/// Without a terminal, a line is printed each time so many calls were made.
const EVERY: u64 = 100;

impl Display {
    /// A display of a run with so many calls at most.
    pub fn new(calls: Option<u64>) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = match calls {
            Some(n) => ProgressBar::new(n),
            None => ProgressBar::new_spinner(),
        };
        bar.set_draw_target(if terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        });
        let template = if calls.is_some() {
            "{bar:24} {pos}/{len} calls  {elapsed} (left {eta})  {wide_msg}"
        } else {
            "{spinner} {pos} calls  {elapsed}  {wide_msg}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        Self {
            bar,
            terminal,
            state: Mutex::default(),
        }
    }

    fn line(&self, text: &str) {
        if self.terminal {
            self.bar.println(visible_lines(text));
        } else {
            out::note(text);
        }
    }

    /// Shows an update.
    pub fn show(&self, update: Progress<'_>) {
        // Nothing behind the lock can panic half-way; a poisoned one is as good.
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match update {
            Progress::Folder(dir) => self.line(&format!("run in {}", dir.display())),
            Progress::Note(text) => self.line(&format!("note: {text}")),
            Progress::Test => {
                self.line("reading test, once, with the seed version and the chosen one")
            }
            Progress::Spent(spent) => {
                self.bar.set_position(spent.calls);
                if !self.terminal && spent.calls >= state.last_line + EVERY {
                    state.last_line = spent.calls - spent.calls % EVERY;
                    out::note(&format!(
                        "{} calls, {} from the cache",
                        spent.calls, spent.cached
                    ));
                }
            }
            Progress::Event(event) => self.event(event, &mut state),
        }
    }

    fn event(&self, event: &Event, state: &mut State) {
        let text = match event {
            Event::Started {
                items: [tune, validation, test],
                seed,
                ..
            } => format!(
                "{tune} tune, {validation} validation and {test} test items; seed version {seed}"
            ),
            Event::Scored {
                version,
                n,
                disagreement,
                loss,
            } => {
                if state.best.is_none_or(|b| *disagreement < b) {
                    state.best = Some(*disagreement);
                }
                format!(
                    "{version} on tune: disagreement {}, loss {loss:.3} (n={n})",
                    percent(*disagreement)
                )
            }
            Event::Embedded { n, of, why } => match why {
                Some(why) => {
                    format!("{n} of {of} tuning items embedded, so n-grams are used: {why}")
                }
                None => format!("{n} tuning items embedded"),
            },
            Event::Clustered {
                cards,
                language_purity,
                ..
            } => format!(
                "{} clusters of disagreement (language purity {language_purity:.2})",
                cards.len()
            ),
            Event::Proposed {
                step, kind, child, ..
            } => {
                let best = state
                    .best
                    .map_or_else(String::new, |b| format!(", best {}", percent(b)));
                self.bar
                    .set_message(format!("step {step}: {kind} -> {child}{best}"));
                format!("step {step}: {kind} -> {child}")
            }
            Event::Refused { step, kind, why } => format!("step {step}: {kind} refused: {why}"),
            Event::Raced {
                child,
                n,
                gain,
                outcome,
                ..
            } => format!(
                "  {child} after {n} items: loss {} {:.3}, {outcome}",
                if *gain > 0.0 { "down" } else { "up" },
                gain.abs()
            ),
            Event::Looked(look) => format!(
                "look {} at validation: {} disagrees {} (upper bound {}, n={})",
                look.look,
                look.version,
                percent(look.disagreement),
                percent(look.upper),
                look.n
            ),
            Event::Compared {
                version,
                n,
                disagreement,
                ..
            } => format!(
                "{version}, the seed version, disagrees {} on validation (n={n}): the leader's gain \
                 over it may be chance",
                percent(*disagreement)
            ),
            Event::Stopped { best, .. } => format!("stopped; chosen version {best}"),
            Event::TestRead { .. } => return,
        };
        self.line(&text);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
