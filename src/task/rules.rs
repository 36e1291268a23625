//! Outcome rules and rates: first-match tables over the labels of a task's criteria.

/// A conjunction: every named criterion has the named label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Pairs of criterion index and label index.
    pub terms: Vec<(usize, usize)>,
}

impl Condition {
    /// Whether the condition holds for one label index per criterion.
    pub fn holds(&self, labels: &[usize]) -> bool {
        self.terms
            .iter()
            .all(|&(criterion, label)| labels.get(criterion) == Some(&label))
    }
}

/// One row of the outcome table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeRule {
    /// Name of the outcome: `critical-unsafe`.
    pub name: String,
    /// When it applies, if no earlier row did.
    pub when: Condition,
}

/// A share among eligible items: ASR, NSR, CSR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Name: `ASR`.
    pub name: String,
    /// What it says, for reports.
    pub title: String,
    /// Outcomes that count (indices); empty where `when` decides.
    pub outcomes: Vec<usize>,
    /// Labels that count, where the rate is over a criterion (CSR: C).
    pub when: Condition,
    /// Only items for which this holds are in the denominator (CSR: R). No terms: every item.
    pub among: Condition,
}

impl Rate {
    /// Numerator and denominator over rows of one label index per criterion. A row that
    /// contradicts itself has no outcome and stays in the denominator.
    pub fn count(&self, task: &super::Task, rows: &[Vec<usize>]) -> (usize, usize) {
        let eligible: Vec<_> = rows.iter().filter(|r| self.among.holds(r)).collect();
        let hits = eligible
            .iter()
            .filter(|r| {
                if self.outcomes.is_empty() {
                    self.when.holds(r)
                } else {
                    !task.is_inconsistent(r)
                        && task.outcome(r).is_some_and(|o| self.outcomes.contains(&o))
                }
            })
            .count();
        (hits, eligible.len())
    }
}

/// Where one item stands in a rate, by labels of which some may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// In the denominator, and it counts.
    Hit,
    /// In the denominator, and it does not count.
    Miss,
    /// Not eligible, by its labels.
    Outside,
    /// A missing label decides. It stays in the denominator and does not count, and what the rate
    /// could be at most is shown beside it.
    Open,
    /// As `Open`, but no missing label could make it count.
    OpenMiss,
}

impl Standing {
    /// Whether the item is in the denominator.
    pub fn is_in(self) -> bool {
        self != Standing::Outside
    }
}

/// More ways to fill in missing labels than this are not tried: the item is open.
const MOST_WAYS: usize = 4_096;

impl Rate {
    /// Where an item stands: a label that is missing is never guessed, so the item counts only if it
    /// would whatever the label, and leaves the denominator only if it would whatever the label.
    pub fn standing(&self, task: &super::Task, row: &[Option<usize>]) -> Standing {
        let sizes = task.criteria.iter().map(|c| c.labels.len());
        let missing: Vec<(usize, usize)> = sizes
            .enumerate()
            .filter(|(c, _)| row.get(*c).copied().flatten().is_none())
            .collect();
        let ways = missing
            .iter()
            .try_fold(1usize, |ways, (_, n)| ways.checked_mul(*n))
            .filter(|ways| *ways <= MOST_WAYS);
        let Some(ways) = ways else {
            return Standing::Open;
        };
        let mut full: Vec<usize> = row.iter().map(|l| l.unwrap_or(0)).collect();
        full.resize(task.criteria.len(), 0);
        let (mut hit, mut miss, mut outside) = (false, false, false);
        for way in 0..ways {
            let mut rest = way;
            for &(c, n) in &missing {
                full[c] = rest % n;
                rest /= n;
            }
            match self.count(task, std::slice::from_ref(&full)) {
                (_, 0) => outside = true,
                (0, _) => miss = true,
                _ => hit = true,
            }
        }
        match (hit, miss, outside) {
            (true, false, false) => Standing::Hit,
            (false, true, false) => Standing::Miss,
            (false, false, true) => Standing::Outside,
            (true, ..) => Standing::Open,
            (false, ..) => Standing::OpenMiss,
        }
    }
}
