//! Merges: what one version learned beside what another did.

use rand::{Rng, RngExt};

use super::Material;
use crate::prompt::{Edit, MergePart};

/// Every part of another version that differs from the one to edit.
pub(super) fn parts(m: &Material<'_>) -> Vec<Edit> {
    let mut out = Vec::new();
    for other in m.others {
        let mut take = |part| {
            out.push(Edit::Merge {
                other: other.digest(),
                part,
            });
        };
        if !other.demos.is_empty() && other.demos != m.version.demos {
            take(MergePart::Demos(other.demos.clone()));
        }
        if other.sections != m.version.sections || other.rules != m.version.rules {
            take(MergePart::Texts {
                sections: other.sections.clone(),
                rules: other.rules.clone(),
            });
        }
    }
    out
}

/// One of them at random.
pub(super) fn propose(m: &Material<'_>, rng: &mut impl Rng) -> Option<Edit> {
    let mut all = parts(m);
    (!all.is_empty()).then(|| all.swap_remove(rng.random_range(0..all.len())))
}
