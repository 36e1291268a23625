//! `pluralis cache stats | prune | export | import`, and the options that choose a cache.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

use super::Failure;
use crate::ledger::attempts::AttemptLog;
use crate::ledger::cache::{Keep, Prune};
use crate::ledger::{Access, Cache, RequestDigest};

/// Which cache a command uses.
#[derive(clap::Args)]
pub struct CacheArgs {
    /// The cache file [default: answers.sqlite in $PLURALIS_CACHE or the user's cache folder]
    #[arg(long = "cache", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Use no cache
    #[arg(long, conflicts_with = "file")]
    no_cache: bool,
}

impl CacheArgs {
    /// The cache to use, where a config may name one.
    pub fn file(&self, configured: Option<PathBuf>) -> Option<PathBuf> {
        match self.no_cache {
            true => None,
            false => self.file.clone().or(configured).or_else(default_file),
        }
    }
}

fn default_file() -> Option<PathBuf> {
    let base = std::env::var_os("PLURALIS_CACHE")
        .map(PathBuf::from)
        .or_else(|| Some(dirs::cache_dir()?.join("pluralis")))?;
    Some(base.join("answers.sqlite"))
}

/// Arguments of `cache`.
#[derive(clap::Args)]
pub struct Args {
    /// The cache file [default: answers.sqlite in $PLURALIS_CACHE or the user's cache folder]
    #[arg(id = "cache_file", long = "file", value_name = "FILE", global = true)]
    file: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show what the cache holds
    Stats {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Drop answers: of a model, of an age, or the oldest until the rest fits a size
    #[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
    Prune {
        /// Drop answers that are older, as in 90d, 12h or 30m
        #[arg(long, value_name = "AGE", group = "what", value_parser = age)]
        older_than: Option<SignedDuration>,
        /// Drop answers of this model (with --older-than: only its old ones)
        #[arg(long, group = "what")]
        model: Option<String>,
        /// Then drop the oldest answers until their text fits, as in 500MB
        #[arg(long, value_name = "SIZE", group = "what", value_parser = size)]
        max_size: Option<u64>,
        /// Drop everything
        #[arg(long, group = "what", conflicts_with_all = ["older_than", "model", "max_size"])]
        all: bool,
    },
    /// Write answers as JSON lines, to share or to move them
    Export {
        /// Where to write them; `-` is standard output
        #[arg(long, short)]
        out: PathBuf,
        /// Only answers of this model
        #[arg(long)]
        model: Option<String>,
        /// Only answers that this run folder's ledger names
        #[arg(long, value_name = "RUN")]
        run: Option<PathBuf>,
    },
    /// Read what `export` wrote; an answer that is here already stays
    Import {
        /// The file; `-` is standard input
        // Not `file`: that is the cache of every subcommand.
        #[arg(value_name = "FILE")]
        answers: PathBuf,
    },
}

fn age(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("`{text}` is no age: write a number with d, h or m, as in 90d");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        'd' => 86_400,
        'h' => 3_600,
        'm' => 60,
        _ => return Err(wrong()),
    };
    let number: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    Ok(SignedDuration::from_secs(i64::from(number) * seconds))
}

fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size: write a number of bytes, or as in 500MB or 2GB");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

/// Runs a subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let file = args
        .file
        .clone()
        .or_else(default_file)
        .ok_or_else(|| Failure::input("no cache folder is known; name the file with --file"))?;
    let import = matches!(args.command, Command::Import { .. });
    if !import && !file.exists() {
        let help = "answers are kept there by `pluralis tune`; name another file with --file";
        return Err(Failure::input_help(
            format!("there is no cache at {}", file.display()),
            Some(help.to_owned()),
        ));
    }
    let cache = Cache::open(&file)?;
    match &args.command {
        Command::Stats { json } => stats(&cache, &file, *json),
        Command::Prune {
            older_than,
            model,
            max_size,
            all: _,
        } => prune(&cache, *older_than, model.clone(), *max_size),
        Command::Export { out, model, run } => {
            export(&cache, out, model.as_deref(), run.as_deref())
        }
        Command::Import { answers } => import_from(&cache, answers),
    }
}

fn stats(cache: &Cache, file: &Path, json: bool) -> Result<(), Failure> {
    let stats = cache.stats()?;
    if json {
        let text =
            serde_json::to_string_pretty(&stats).map_err(|e| Failure::machine(e.to_string()))?;
        return super::shell::print((text + "\n").as_bytes());
    }
    let on_disk = std::fs::metadata(file).map_or(0, |m| m.len());
    let mut out = format!(
        "{}\n  answers  {}\n  size     {} bytes of answers, {} on disk\n",
        file.display(),
        stats.answers,
        stats.bytes,
        on_disk
    );
    if let (Some(oldest), Some(newest)) = (&stats.oldest, &stats.newest) {
        out += &format!("  oldest   {oldest}\n  newest   {newest}\n");
    }
    for m in &stats.models {
        out += &format!(
            "  {:>9} answers  {:>12} bytes  {}  ({})\n",
            m.answers, m.bytes, m.model, m.endpoint
        );
    }
    super::shell::print(out.as_bytes())
}

fn prune(
    cache: &Cache,
    older_than: Option<SignedDuration>,
    model: Option<String>,
    max_bytes: Option<u64>,
) -> Result<(), Failure> {
    let before = older_than
        .map(|age| Timestamp::now().checked_sub(age))
        .transpose()
        .map_err(|e| Failure::input(format!("--older-than: {e}")))?;
    let only_size = before.is_none() && model.is_none() && max_bytes.is_some();
    let mut dropped = 0;
    if !only_size {
        dropped += cache.prune(&Prune {
            before,
            model,
            max_bytes: None,
        })?;
    }
    if max_bytes.is_some() {
        dropped += cache.prune(&Prune {
            max_bytes,
            ..Prune::default()
        })?;
    }
    let left = cache.stats()?;
    let line = format!(
        "{dropped} answers dropped, {} left ({} bytes)\n",
        left.answers, left.bytes
    );
    super::shell::print(line.as_bytes())
}

fn export(
    cache: &Cache,
    out: &Path,
    model: Option<&str>,
    run: Option<&Path>,
) -> Result<(), Failure> {
    let digests = run.map(digests_of).transpose()?;
    let keep = Keep {
        model,
        digests: digests.as_ref(),
    };
    if out == Path::new("-") {
        let mut text = Vec::new();
        cache.export(&mut text, &keep)?;
        return super::shell::print(&text);
    }
    // Under another name first, so that a failure leaves no half of an export.
    let part = out.with_extension("part");
    let failed = |e: std::io::Error| Failure::machine(format!("{}: {e}", part.display()));
    let mut writer = BufWriter::new(File::create(&part).map_err(failed)?);
    let written = cache.export(&mut writer, &keep)?;
    writer.flush().map_err(failed)?;
    std::fs::rename(&part, out).map_err(failed)?;
    let line = format!("{written} answers written to {}\n", out.display());
    super::shell::print(line.as_bytes())
}

/// The requests that a run asked, or found answered.
fn digests_of(run: &Path) -> Result<HashSet<RequestDigest>, Failure> {
    let path = run.join("attempts.jsonl");
    if !path.is_file() {
        return Err(Failure::input(format!(
            "{} holds no run: there is no attempts.jsonl in it",
            run.display()
        )));
    }
    let (log, _) = AttemptLog::open(&path, Access::ReadOnly, |_| ())?;
    Ok(log.digests().copied().collect())
}

fn import_from(cache: &Cache, file: &Path) -> Result<(), Failure> {
    let done = if file == Path::new("-") {
        cache.import(&mut std::io::stdin().lock(), Path::new("standard input"))?
    } else {
        let input = File::open(file)
            .map_err(|e| Failure::input(format!("cannot read {}: {e}", file.display())))?;
        cache.import(&mut BufReader::new(input), file)?
    };
    let mut line = format!(
        "{} answers added, {} were here already\n",
        done.added, done.present
    );
    if done.different > 0 {
        line += &format!(
            "{} have another answer here, which was kept: the same question was asked twice, and a run may rest on either\n",
            done.different
        );
    }
    super::shell::print(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes_are_read_or_refused() {
        assert_eq!(age("90d"), Ok(SignedDuration::from_hours(90 * 24)));
        assert_eq!(age("30m"), Ok(SignedDuration::from_mins(30)));
        assert_eq!(size("500MB"), Ok(500_000_000));
        assert_eq!(size("12"), Ok(12));
        for bad in ["", "d", "3", "3w", "-1d", "1.5h", "é"] {
            assert!(age(bad).is_err(), "{bad}");
        }
        for bad in ["", "MB", "1TBB", "-1", "99999999999GB", "1é"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
