//! Owns the way from tables to labelled items: wide, long and counted votes, rows of several files
//! that are one item, blank cells, repeated votes. Must not compute a figure.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use super::cells::{Cell, Names, VoteColumns, error_at, not_blank};
use super::labels::{Label, Spellings};
use super::spec::{Scale, Spec, Votes};
use crate::data::{DataError, Format, Row, Table, read_table_as};
use crate::text::nearest;

/// One person's label on an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// Index among the raters.
    pub rater: u32,
    /// Index among the labels.
    pub label: u32,
}

/// One item with its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledItem {
    /// Index among the locales.
    pub locale: usize,
    /// Number of its group.
    pub group: usize,
    /// People's labels, by rater.
    pub votes: Vec<Vote>,
    /// Per judge, its label; `None` where it gave none.
    pub verdicts: Vec<Option<u32>>,
}

/// What was read from the tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelled {
    /// The files.
    pub files: Vec<String>,
    /// The scale.
    pub scale: Scale,
    /// The labels, in the order of the scale.
    pub labels: Vec<Label>,
    /// The raters.
    pub raters: Vec<String>,
    /// Whether a rater is the same person throughout.
    pub named: bool,
    /// The judges.
    pub judges: Vec<String>,
    /// The locales; one nameless where no column says any.
    pub locales: Vec<String>,
    /// Whether a column says the locale.
    pub by_locale: bool,
    /// Whether a column says the group.
    pub grouped: bool,
    /// The items.
    pub items: Vec<LabelledItem>,
    /// Per rater's column (the column of labels in the long form): cells or items without a label.
    pub missing: BTreeMap<String, usize>,
    /// Votes that repeat the same rater's same label on the same item, and count once.
    pub repeated: usize,
}

/// Reads tables and makes labelled items of them; `-` is standard input.
///
/// # Errors
/// With file, row and column: what cannot be read, a column that is not there, two different labels
/// of one rater for one item, labels that do not fit the scale.
pub fn read(files: &[PathBuf], format: Option<Format>, spec: &Spec) -> Result<Labelled, DataError> {
    if files.iter().filter(|f| f.as_os_str() == "-").count() > 1 {
        let e = DataError::new("standard input is named twice", "name `-` once");
        return Err(e.in_file("-"));
    }
    // With an item key, files may hold different columns of the same items.
    let judges_too = !matches!(spec.votes, Votes::Long { .. });
    let wanted: Vec<&str> = spec
        .columns(files.len() == 1 || spec.item.is_empty(), judges_too)
        .into_iter()
        .filter(|c| !c.starts_with('@'))
        .collect();
    let table = |f: &PathBuf| read_table_as(f, format, &wanted);
    let tables = files.iter().map(table).collect::<Result<Vec<_>, _>>()?;
    from_tables(&tables, spec)
}

impl Spec {
    /// The columns that every file must have.
    fn columns(&self, labels_too: bool, judges_too: bool) -> Vec<&str> {
        let keys = self.item.iter().chain(&self.locale).chain(&self.group);
        let mut out: Vec<&str> = keys.map(String::as_str).collect();
        match &self.votes {
            Votes::Long { rater, label } => out.extend([rater.as_str(), label]),
            Votes::Wide { raters, .. } if labels_too => {
                out.extend(raters.iter().map(String::as_str));
            }
            Votes::Counts(counts) if labels_too => {
                out.extend(counts.iter().map(|(_, c)| c.as_str()));
            }
            _ => {}
        }
        if labels_too && judges_too {
            out.extend(self.judges.iter().map(String::as_str));
        }
        out
    }
}

/// As [`read`], from tables.
///
/// # Errors
/// See [`read`].
pub fn from_tables(tables: &[Table], spec: &Spec) -> Result<Labelled, DataError> {
    let mut reader = Reader::new(spec);
    reader.check_columns(tables)?;
    for table in tables {
        reader.table(table)?;
    }
    reader.finish(tables)
}

struct Reader<'a> {
    spec: &'a Spec,
    spellings: Spellings,
    raters: Names,
    locales: Names,
    groups: Names,
    keys: HashMap<(usize, String), usize>,
    items: Vec<LabelledItem>,
    missing: BTreeMap<String, usize>,
    repeated: usize,
}

impl<'a> Reader<'a> {
    fn new(spec: &'a Spec) -> Self {
        Self {
            spec,
            spellings: Spellings::new(spec),
            raters: Names::default(),
            locales: Names::default(),
            groups: Names::default(),
            keys: HashMap::new(),
            items: Vec::new(),
            missing: BTreeMap::new(),
            repeated: 0,
        }
    }

    /// Every column of labels is in one of the tables, and no column is used twice.
    fn check_columns(&self, tables: &[Table]) -> Result<(), DataError> {
        let Some(first) = tables.first() else {
            return Err(DataError::new(
                "no file is named",
                "name one, or `-` for standard input",
            ));
        };
        let judges_too = !matches!(self.spec.votes, Votes::Long { .. });
        let all = self.spec.columns(true, judges_too);
        for name in all.iter().filter(|c| !c.starts_with('@')) {
            if tables.iter().all(|t| t.column(name).is_err()) {
                first.column(name)?;
            }
        }
        let labels: Vec<&String> = match &self.spec.votes {
            Votes::Wide { raters, .. } => raters.iter().chain(&self.spec.judges).collect(),
            _ => self.spec.judges.iter().collect(),
        };
        if let Some(twice) = (1..labels.len()).find(|&i| labels[..i].contains(&labels[i])) {
            let what = format!("the column `{}` is named twice", labels[twice]);
            return Err(DataError::new(
                what,
                "a rater or judge has a column of its own",
            ));
        }
        match labels.iter().find(|l| l.starts_with('@')) {
            Some(at) => {
                let what = format!("`{at}` holds no labels");
                Err(DataError::new(
                    what,
                    "it may stand for a rater, an item or a locale",
                ))
            }
            None => Ok(()),
        }
    }

    fn table(&mut self, table: &Table) -> Result<(), DataError> {
        let find = |name: &String| Cell::find(table, name);
        let item = self
            .spec
            .item
            .iter()
            .map(find)
            .collect::<Result<Vec<_>, _>>()?;
        let locale = self.spec.locale.as_ref().map(find).transpose()?;
        let group = self.spec.group.as_ref().map(find).transpose()?;
        let votes = self.vote_columns(table)?;
        // A column that this file lacks is in another (see `check_columns`).
        let present = |name: &str| Cell::find(table, name).ok();
        let judges: Vec<Option<Cell>> = self.spec.judges.iter().map(|j| present(j)).collect();
        for row in &table.rows {
            let locale = match (&locale, &self.spec.locale) {
                (Some(cell), Some(name)) => not_blank(cell, table, row, name)?,
                _ => "",
            };
            let locale = self.locales.number(locale);
            let at = self.item(locale, &item, table, row)?;
            if let Some(text) = group.as_ref().map(|g| g.of(row)).filter(|t| !t.is_empty()) {
                self.items[at].group = self.groups.number(text);
            }
            self.votes(at, &votes, table, row)?;
            for (judge, cell) in judges.iter().enumerate() {
                if let Some(cell) = cell {
                    self.verdict(at, judge, cell.of(row), table, row)?;
                }
            }
        }
        Ok(())
    }

    /// The item of a row.
    fn item(
        &mut self,
        locale: usize,
        key: &[Cell],
        table: &Table,
        row: &Row,
    ) -> Result<usize, DataError> {
        let next = self.items.len();
        let mut at = next;
        if !key.is_empty() {
            let mut text = String::new();
            for (cell, name) in key.iter().zip(&self.spec.item) {
                text.push_str(not_blank(cell, table, row, name)?);
                text.push('\u{1f}');
            }
            at = *self.keys.entry((locale, text)).or_insert(next);
        }
        if at == next {
            self.items.push(LabelledItem {
                locale,
                group: usize::MAX,
                votes: Vec::new(),
                verdicts: vec![None; self.spec.judges.len()],
            });
        }
        Ok(at)
    }

    /// Where this table keeps people's labels.
    fn vote_columns(&mut self, table: &Table) -> Result<VoteColumns<'a>, DataError> {
        Ok(match &self.spec.votes {
            Votes::Wide { raters, .. } => VoteColumns::Wide(
                raters
                    .iter()
                    .map(|name| (self.raters.number(name), name.as_str()))
                    .filter_map(|(rater, name)| Some((rater, name, table.column(name).ok()?)))
                    .collect(),
            ),
            Votes::Long { rater, label } => {
                VoteColumns::Long(Cell::find(table, rater)?, table.column(label)?)
            }
            Votes::Counts(counts) => VoteColumns::Counts(
                counts
                    .iter()
                    .filter_map(|(l, name)| {
                        Some((l.as_str(), name.as_str(), table.column(name).ok()?))
                    })
                    .collect(),
            ),
        })
    }

    fn votes(
        &mut self,
        at: usize,
        columns: &VoteColumns,
        table: &Table,
        row: &Row,
    ) -> Result<(), DataError> {
        match columns {
            VoteColumns::Wide(columns) => {
                for &(rater, name, column) in columns {
                    let place = (table.file.as_str(), row.number, name);
                    if let Some(label) = self.spellings.read(&row.cells[column], 1, place) {
                        self.vote(at, rater, label, place)?;
                    }
                }
            }
            VoteColumns::Long(cell, column) => {
                let Votes::Long { rater, label } = &self.spec.votes else {
                    return Ok(());
                };
                let name = not_blank(cell, table, row, rater)?;
                let place = (table.file.as_str(), row.number, label.as_str());
                let rater = self.raters.number(name);
                match self.spellings.read(&row.cells[*column], 1, place) {
                    Some(label) => self.vote(at, rater, label, place)?,
                    None => *self.missing.entry(label.clone()).or_default() += 1,
                }
            }
            VoteColumns::Counts(columns) => {
                for &(label, name, column) in columns {
                    let place = (table.file.as_str(), row.number, name);
                    self.counted(at, label, &row.cells[column], place)?;
                }
            }
        }
        Ok(())
    }

    fn vote(
        &mut self,
        at: usize,
        rater: usize,
        label: u32,
        place: (&str, usize, &str),
    ) -> Result<(), DataError> {
        let rater = rater as u32;
        let votes = &mut self.items[at].votes;
        match votes.iter().find(|v| v.rater == rater) {
            None => votes.push(Vote { rater, label }),
            Some(old) if old.label == label => self.repeated += 1,
            Some(_) => {
                let name = &self.raters.names[rater as usize];
                let what = format!("`{name}` has a second, different label for the same item");
                let advice = "keep one of the two rows, or name more columns in --item";
                return Err(error_at(place, what, advice));
            }
        }
        Ok(())
    }

    fn counted(
        &mut self,
        at: usize,
        label: &str,
        cell: &str,
        place: (&str, usize, &str),
    ) -> Result<(), DataError> {
        let text = cell.trim();
        if text.is_empty() {
            *self.missing.entry(place.2.to_owned()).or_default() += 1;
            return Ok(());
        }
        let count = text.parse::<f64>().ok();
        let whole = count.filter(|c| (0.0..=10_000.0).contains(c) && c.fract() == 0.0);
        let Some(count) = whole.map(|c| c as u32) else {
            let what = format!("`{}` is no number of votes", cell.trim());
            return Err(error_at(place, what, "write a whole number up to 10000"));
        };
        let Some(label) = self.spellings.read(label, count as usize, place) else {
            return Err(error_at(
                place,
                "a label of --counts is blank",
                "write LABEL=COLUMN",
            ));
        };
        let first = self.items[at].votes.len() as u32;
        let votes = (first..first + count).map(|rater| Vote { rater, label });
        self.items[at].votes.extend(votes);
        Ok(())
    }

    fn verdict(
        &mut self,
        at: usize,
        judge: usize,
        text: &str,
        table: &Table,
        row: &Row,
    ) -> Result<(), DataError> {
        let place = (
            table.file.as_str(),
            row.number,
            self.spec.judges[judge].as_str(),
        );
        let Some(label) = self.spellings.read(text, 1, place) else {
            return Ok(());
        };
        match &mut self.items[at].verdicts[judge] {
            Some(old) if *old != label => {
                let what = "the judge has a second, different label for the same item";
                Err(error_at(place, what, "keep one of them"))
            }
            slot => {
                *slot = Some(label);
                Ok(())
            }
        }
    }

    fn finish(mut self, tables: &[Table]) -> Result<Labelled, DataError> {
        let long = matches!(self.spec.votes, Votes::Long { .. });
        let counts = matches!(self.spec.votes, Votes::Counts(_));
        if long {
            self.raters_that_judge(tables)?;
        }
        let (labels, of) = self.spellings.resolve(self.spec)?;
        let mut next = self.groups.names.len();
        for item in &mut self.items {
            item.votes
                .iter_mut()
                .for_each(|v| v.label = of[v.label as usize]);
            item.votes.sort_by_key(|v| v.rater);
            item.verdicts
                .iter_mut()
                .flatten()
                .for_each(|l| *l = of[*l as usize]);
            if item.group == usize::MAX {
                item.group = next;
                next += 1;
            }
        }
        let named = !counts
            && !matches!(
                self.spec.votes,
                Votes::Wide {
                    exchangeable: true,
                    ..
                }
            );
        if !long && !counts {
            let mut given = vec![0; self.raters.names.len()];
            let votes = self.items.iter().flat_map(|i| &i.votes);
            votes.for_each(|v| given[v.rater as usize] += 1);
            for (name, given) in self.raters.names.iter().zip(given) {
                self.missing.insert(name.clone(), self.items.len() - given);
            }
        }
        let most = self.items.iter().map(|i| i.votes.len()).max().unwrap_or(0);
        let raters = if counts {
            (1..=most).map(|i| format!("vote {i}")).collect()
        } else {
            self.raters.names
        };
        Ok(Labelled {
            files: tables.iter().map(|t| t.file.clone()).collect(),
            scale: self.spec.scale,
            labels,
            raters,
            named,
            judges: self.spec.judges.clone(),
            by_locale: self.spec.locale.is_some(),
            grouped: self.spec.group.is_some(),
            locales: self.locales.names,
            items: self.items,
            missing: self.missing,
            repeated: self.repeated,
        })
    }

    /// In the long form a judge is a column, or one of the raters.
    fn raters_that_judge(&mut self, tables: &[Table]) -> Result<(), DataError> {
        let mut moved = Vec::new();
        for (judge, name) in self.spec.judges.iter().enumerate() {
            if tables.iter().any(|t| t.column(name).is_ok()) {
                continue;
            }
            let Some(&rater) = self.raters.index.get(name) else {
                let columns = tables.iter().flat_map(|t| &t.header);
                let known = columns.chain(&self.raters.names).map(String::as_str);
                let near = nearest(name, known).map(|n| format!("did you mean `{n}`?"));
                let what = format!("the judge `{name}` is neither a column nor a rater");
                return Err(DataError::new(what, near.unwrap_or_default()));
            };
            moved.push(rater);
            for item in &mut self.items {
                if let Some(i) = item.votes.iter().position(|v| v.rater as usize == rater) {
                    item.verdicts[judge] = Some(item.votes.remove(i).label);
                }
            }
        }
        self.order_raters(&moved);
        Ok(())
    }

    /// Numbers raters by their names, without those that became judges.
    fn order_raters(&mut self, moved: &[usize]) {
        let names = &self.raters.names;
        let mut kept: Vec<usize> = (0..names.len()).filter(|r| !moved.contains(r)).collect();
        // 2 before 10, and numbers before texts.
        kept.sort_by_key(|&r| {
            (
                names[r].parse::<u64>().unwrap_or(u64::MAX),
                names[r].clone(),
            )
        });
        let mut new = vec![u32::MAX; names.len()];
        kept.iter().zip(0..).for_each(|(&old, at)| new[old] = at);
        for vote in self.items.iter_mut().flat_map(|i| &mut i.votes) {
            vote.rater = new[vote.rater as usize];
        }
        self.raters.names = kept.iter().map(|&r| names[r].clone()).collect();
    }
}
