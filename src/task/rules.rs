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
