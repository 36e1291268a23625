//! `pluralis agree` and `pluralis power`: real label files with published figures, small tables
//! worked out by hand, and the commands as a user meets them.

mod commands;
mod power;
mod published;
mod tables;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pluralis::data::{DataError, Format, table_from_bytes};
use pluralis::evaluate::agree::{
    Agreement, By, Labelled, Plan, Scale, Spec, Votes, agree, from_tables, read,
};
use pluralis::evaluate::power::{Claim, Question, Scope, items_needed};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::agreement::cases::{share, unit};
use crate::harness::{root, text};

fn real(parts: &[&str]) -> Option<Vec<PathBuf>> {
    let folder = std::env::var_os("PLURALIS_DATA")
        .map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let files: Vec<PathBuf> = parts.iter().map(|p| folder.join(p)).collect();
    if let Some(absent) = files.iter().find(|f| !f.is_file()) {
        println!("skipped: {} is not there", absent.display());
        return None;
    }
    Some(files)
}

/// Few resamples: these tests look at values.
fn figures(data: &Labelled) -> Agreement {
    let plan = Plan {
        resamples: 49,
        ..Plan::new(data.scale, data.items.len())
    };
    agree(data, &plan).unwrap()
}

fn of_files(files: &[PathBuf], spec: &Spec) -> Agreement {
    figures(&read(files, None, spec).unwrap())
}

fn near(got: Option<f64>, want: f64, to: f64) {
    let got = got.unwrap();
    assert!((got - want).abs() < to, "{got}, expected {want}");
}

/// Kappa of a pair, and the number of items.
fn pair(a: &Agreement, at: usize) -> (Option<f64>, usize) {
    let f = &a.overall.pairs[at].kappas["cohen_kappa"];
    (f.value, f.n)
}

fn table(csv: &str, spec: &Spec) -> Result<Labelled, DataError> {
    let table = table_from_bytes("t.csv", csv.as_bytes(), Format::Csv, &[]).unwrap();
    from_tables(&[table], spec)
}

fn judged(spec: Spec) -> Spec {
    Spec {
        judges: vec!["judge".into()],
        ..spec
    }
}

const BY_HAND: &str = "a,b,c,judge\ny,y,n,y\ny,n,,n\nn,n,n,\nn,n,n,n\n";

/// Runs the binary with a text as its standard input.
fn piped(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pluralis"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments ends without reading.
    match child.stdin.take().unwrap().write_all(input.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => panic!("{e}"),
        _ => {}
    }
    child.wait_with_output().unwrap()
}
