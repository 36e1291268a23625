//! `pluralis prompt verify`.

use std::path::PathBuf;

use super::{ItemArgs, RegistryArgs, locales};
use crate::cli::cache::CacheArgs;
use crate::cli::{Failure, out};
use crate::data::{Item, Split, Votes};
use crate::experiment::{self, Plan, RunError, RunRecord, ScoreOptions};
use crate::prompt::{Fence, RenderError, Renderer};
use crate::registry::{Found, Measured, find};

/// Arguments of `verify`.
#[derive(clap::Args)]
pub struct Args {
    /// The versions [default: all]
    versions: Vec<String>,
    #[command(flatten)]
    from: ItemArgs,
    /// Score the items of --config again, from the cache alone, and compare with the evidence
    #[arg(long, requires = "config")]
    rescore: bool,
    #[command(flatten)]
    cache: CacheArgs,
}

/// What is said in the end.
#[derive(Default)]
struct Tally {
    versions: usize,
    prompts: usize,
    figures: usize,
    wrong: usize,
}

impl Tally {
    fn wrong(&mut self, what: &str) {
        self.wrong += 1;
        out::note(&format!("wrong: {what}"));
    }
}

pub fn run(registry: &RegistryArgs, args: &Args) -> Result<(), Failure> {
    let mut tally = Tally::default();
    let mut found = Vec::new();
    if args.versions.is_empty() {
        all(registry, &mut tally, &mut found)?;
    }
    for name in &args.versions {
        match registry.find(name) {
            Ok(one) => found.push(one),
            Err(e) => return Err(e),
        }
    }
    // One experiment is one task; the versions of others are not compared with its items.
    let plan = args
        .from
        .config
        .as_ref()
        .map(|c| Plan::load(c, &[]))
        .transpose()?;
    for one in &found {
        tally.versions += 1;
        let fits = plan
            .as_ref()
            .is_none_or(|p| p.start.task_digest == one.version.task_digest);
        if !fits && !args.versions.is_empty() {
            super::same_task(
                one,
                plan.as_ref()
                    .unwrap_or_else(|| unreachable!("it does not fit a plan")),
            )?;
        }
        let source = if fits { args.from.load(one)? } else { None };
        match rendered(one, source.as_ref()) {
            Ok(n) => tally.prompts += n,
            Err(e) => tally.wrong(&format!("{}: {e}", one.version.short())),
        }
        if let Some(plan) = plan.as_ref().filter(|_| args.rescore && fits) {
            rescore(plan, one, args, &mut tally)?;
        }
    }
    let mut line = format!(
        "{} versions are what their digests say, {} prompts render",
        tally.versions, tally.prompts
    );
    if args.rescore {
        line += &format!(", {} figures are those of the cache", tally.figures);
    }
    out::line(&line)?;
    match tally.wrong {
        0 if args.rescore && tally.figures == 0 => Err(Failure::differs(
            "no figure could be compared; the lines above say why",
        )),
        0 => Ok(()),
        n => Err(Failure::differs(format!(
            "{n} things are wrong, named above"
        ))),
    }
}

/// Every version of the registry, with what only the whole of it shows: tags that lead nowhere.
fn all(registry: &RegistryArgs, tally: &mut Tally, found: &mut Vec<Found>) -> Result<(), Failure> {
    let root = registry.root()?;
    for one in registry.all()? {
        let mut digests = Vec::new();
        for listed in one.list()? {
            let read = listed
                .read
                .and_then(|_| find(&root, &listed.dir.display().to_string(), None));
            match read {
                Ok(version) => {
                    digests.push(version.version.digest());
                    found.push(version);
                }
                Err(e) => tally.wrong(&e.to_string()),
            }
        }
        match one.tags().list() {
            Err(e) => tally.wrong(&e.to_string()),
            Ok(tags) => {
                for tag in tags {
                    if !digests.iter().any(|d| d == tag.version()) {
                        let short = &tag.version()[..12];
                        tally.wrong(&format!(
                            "the tag {} names {short}, which is not here or damaged",
                            tag.name
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Renders every item, or where there are none one made-up item for each locale, with and without
/// its optional texts. Returns how many prompts.
fn rendered(found: &Found, source: Option<&(Vec<Item>, Fence)>) -> Result<usize, RenderError> {
    let made_up;
    let (items, fence) = match source {
        Some((items, fence)) => (items, fence),
        None => {
            made_up = (stand_ins(found), Fence::draw(0, std::iter::empty()));
            (&made_up.0, &made_up.1)
        }
    };
    let renderer = Renderer::new(&found.task, &found.version, fence)?;
    let mut n = 0;
    for item in items {
        for criterion in (0..found.task.criteria.len()).map(Some).chain([None]) {
            renderer.prompt(item, criterion)?;
            n += 1;
        }
    }
    Ok(n)
}

fn stand_ins(found: &Found) -> Vec<Item> {
    let mut out = Vec::new();
    for locale in locales(found, &[]) {
        for all in [true, false] {
            let text = |f: &crate::task::Field| match all || f.required {
                true => "x".to_owned(),
                false => String::new(),
            };
            out.push(Item {
                id: "x".into(),
                locale: locale.clone(),
                fields: found.task.fields.iter().map(text).collect(),
                group: String::new(),
                votes: vec![Votes::default(); found.task.criteria.len()],
                meta: Default::default(),
                split: None,
            });
        }
    }
    out
}

/// Scores again what the evidence is of, split by split, and compares.
fn rescore(plan: &Plan, found: &Found, args: &Args, tally: &mut Tally) -> Result<(), Failure> {
    let short = found.version.short();
    let record = match &found.dir {
        Some(dir) => RunRecord::read(dir)?,
        None => None,
    };
    for recorded in &found.evidence.measured {
        if recorded.data != plan.data_digest {
            out::note(&format!(
                "{short}: its figures of {} are of other items, and are not compared",
                recorded.experiment
            ));
            continue;
        }
        for (name, split) in [
            ("tune", Split::Tune),
            ("validation", Split::Validation),
            ("test", Split::Test),
        ] {
            let Some(figures) = recorded.splits.get(name) else {
                continue;
            };
            let options = ScoreOptions {
                splits: vec![split],
                cache: cache(args, plan),
                offline: true,
                record: record.clone(),
                ..ScoreOptions::default()
            };
            let again =
                crate::cli::block_on(experiment::score(plan, &found.version, &options, &|_| ()))?;
            let again = match again {
                Ok(scored) => scored.measured,
                Err(RunError::Endpoint(_)) if figures.n < size(plan, split) => {
                    let (n, all) = (figures.n, size(plan, split));
                    out::note(&format!(
                        "{short}, {name}: the search judged {n} of {all} items; not compared"
                    ));
                    continue;
                }
                Err(RunError::Endpoint(e)) => {
                    out::note(&format!("{short}, {name}: not compared: {e}"));
                    continue;
                }
                Err(e) => return Err(e.into()),
            };
            compare(&short, name, recorded, figures, &again, tally);
        }
    }
    Ok(())
}

/// Items of a split.
fn size(plan: &Plan, split: Split) -> usize {
    match split {
        Split::Tune => plan.tune.len(),
        Split::Validation => plan.validation.len(),
        Split::Test => plan.test.len(),
    }
}

fn cache(args: &Args, plan: &Plan) -> Option<PathBuf> {
    let base = args.from.config.as_ref().and_then(|c| c.parent());
    let configured = plan.config.cache.as_ref().zip(base).map(|(c, b)| b.join(c));
    args.cache.file(configured)
}

fn compare(
    short: &str,
    name: &str,
    recorded: &Measured,
    figures: &crate::registry::SplitEvidence,
    again: &Measured,
    tally: &mut Tally,
) {
    let Some(now) = again.splits.get(name) else {
        return tally.wrong(&format!("{short}, {name}: nothing could be scored"));
    };
    if !again.is_of(recorded) {
        out::note(&format!(
            "{short}, {name}: the figures are of the judge {} {}, and the experiment's is {} {}; not compared",
            recorded.judge.model, recorded.fingerprint, again.judge.model, again.fingerprint
        ));
    } else if now.n != figures.n {
        out::note(&format!(
            "{short}, {name}: the search judged {} of its {} items; not compared",
            figures.n, now.n
        ));
    } else if now == figures {
        tally.figures += 1;
    } else {
        tally.wrong(&format!(
            "{short}, {name}: evidence.toml says {}, and the cache gives {}",
            super::percent(figures.disagreement),
            super::percent(now.disagreement)
        ));
    }
}
