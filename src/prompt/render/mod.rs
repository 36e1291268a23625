//! Rendering: the skeleton is template source, everything else is a context value.

mod error;
mod views;

use std::collections::BTreeSet;

use tera::{Context, Tera};

pub use error::RenderError;
use views::{CriterionView, DemoView, FieldView, ItemView, LabelView, LocaleView};

use super::{AnswerFormat, Demo, Fence, PromptText, Version};
use crate::data::Item;
use crate::locale::Locale;
use crate::task::Task;
use crate::text::Space;

/// What the prefix template may read.
const PREFIX_SLOTS: &[&str] = &[
    "sections",
    "rules",
    "locale_note",
    "locale",
    "criterion",
    "criteria",
    "demos",
    "answer_format",
    "fence",
];
/// What the item template may read.
const ITEM_SLOTS: &[&str] = &[
    "sections",
    "locale",
    "criterion",
    "criteria",
    "item",
    "answer_format",
    "fence",
];

/// A version's templates, parsed and checked once, ready to render.
pub struct Renderer<'a> {
    task: &'a Task,
    version: &'a Version,
    tera: Tera,
    fence: &'a Fence,
    /// Whether prefix and item put their texts between delimiters; elsewhere a text is one line.
    fenced: [bool; 2],
    /// Positions of the task's fields in the order in which they are shown.
    fields: Vec<usize>,
    /// The demos' texts, where an item is shown those nearest to it.
    space: Option<Space>,
}

impl<'a> Renderer<'a> {
    /// Parses the skeleton and checks its variables.
    ///
    /// # Errors
    /// [`RenderError`] for a broken template, an unknown variable, or a template that drops one.
    pub fn new(
        task: &'a Task,
        version: &'a Version,
        fence: &'a Fence,
    ) -> Result<Self, RenderError> {
        let mut tera = Tera::new();
        tera.autoescape_on(Vec::<&str>::new());
        let skeleton = &version.skeleton;
        let mut fenced = [false; 2];
        for (template, source, slots, needed) in [
            ("prefix", &skeleton.prefix, PREFIX_SLOTS, &["demos"][..]),
            ("item", &skeleton.item, ITEM_SLOTS, &["item"][..]),
        ] {
            let broken = |e: tera::Error| RenderError::Template {
                skeleton: skeleton.name.clone(),
                template,
                what: e.to_string(),
            };
            tera.add_raw_template(template, source).map_err(broken)?;
            let used: BTreeSet<String> = tera
                .get_template_variables(template)
                .map_err(broken)?
                .into_iter()
                .map(str::to_owned)
                .collect();
            if let Some(variable) = used.iter().find(|v| !slots.contains(&v.as_str())) {
                return Err(RenderError::UnknownVariable {
                    skeleton: skeleton.name.clone(),
                    template,
                    variable: variable.clone(),
                    known: slots.join(", "),
                });
            }
            if let Some(variable) = needed.iter().find(|v| !used.contains(**v)) {
                return Err(RenderError::MissingVariable {
                    skeleton: skeleton.name.clone(),
                    template,
                    variable,
                });
            }
            fenced[usize::from(template == "item")] = used.contains("fence");
        }
        Ok(Self {
            task,
            version,
            tera,
            fence,
            fenced,
            fields: order(task, version),
            space: version.nearest.map(|_| space(task, version)),
        })
    }

    /// The shared text for a locale and a criterion (`None`: all criteria at once, for JSON answers),
    /// with every demo of the locale, also where the version shows an item only the nearest of them.
    ///
    /// # Errors
    /// [`RenderError::Template`] when a value is missing or of the wrong kind.
    pub fn prefix(&self, locale: &Locale, criterion: Option<usize>) -> Result<String, RenderError> {
        let demos = self.demos_of(locale);
        self.render("prefix", &self.prefix_values(locale, criterion, &demos))
    }

    /// The text before an item: [`Renderer::prefix`], with the demos nearest to the item where the
    /// version asks for that.
    ///
    /// # Errors
    /// [`RenderError::Template`] when a value is missing or of the wrong kind.
    pub fn prefix_for(&self, item: &Item, criterion: Option<usize>) -> Result<String, RenderError> {
        let demos = self.demos_for(item);
        let values = self.prefix_values(&item.locale, criterion, &demos);
        self.render("prefix", &values)
    }

    fn prefix_values(&self, locale: &Locale, criterion: Option<usize>, demos: &[&Demo]) -> Context {
        let mut context = self.common(locale, criterion);
        context.insert("rules", &self.version.rules);
        context.insert("locale_note", self.version.locale_note(locale));
        let demos: Vec<_> = demos.iter().map(|d| self.demo(d, criterion)).collect();
        context.insert("demos", &demos);
        context
    }

    /// Demos that may be shown for a locale.
    fn demos_of(&self, locale: &Locale) -> Vec<&Demo> {
        let demos = self.version.demos.iter();
        demos.filter(|d| is_for(d, locale)).collect()
    }

    /// Demos that an item is shown: those nearest to it, the nearest last, since what stands next to
    /// the question weighs most (Liu et al. 2022); where too few share an n-gram with it, the first
    /// of the others before them. An item is never its own demo.
    fn demos_for(&self, item: &Item) -> Vec<&Demo> {
        let (Some(space), Some(count)) = (&self.space, self.version.nearest) else {
            return self.demos_of(&item.locale);
        };
        let demos = &self.version.demos;
        let skip = |d: usize| demos[d].source == item.id || !is_for(&demos[d], &item.locale);
        let mut near = space.nearest(&item.fields.join(" "), count, &skip);
        let others = (0..demos.len()).filter(|d| !skip(*d) && !near.contains(d));
        let others: Vec<usize> = others.take(count - near.len()).collect();
        near.extend(others);
        near.iter().rev().map(|&d| &demos[d]).collect()
    }

    /// The text of one item.
    ///
    /// # Errors
    /// [`RenderError::Template`] when a value is missing or of the wrong kind.
    pub fn suffix(&self, item: &Item, criterion: Option<usize>) -> Result<String, RenderError> {
        self.render("item", &self.item_values(item, criterion))
    }

    fn item_values(&self, item: &Item, criterion: Option<usize>) -> Context {
        let mut context = self.common(&item.locale, criterion);
        let texts = item.fields.len();
        let shown = self.fields.iter().filter(|&&f| f < texts);
        let fields = shown.map(|&f| FieldView {
            name: &self.task.fields[f].name,
            title: &self.task.fields[f].title,
            text: one_line(&item.fields[f], self.fenced[1]),
        });
        context.insert(
            "item",
            &ItemView {
                fields: fields.collect(),
                locale: (&item.locale).into(),
            },
        );
        context
    }

    /// What the templates are given, by slot: for the prefix and for the item.
    pub fn values(&self, item: &Item, criterion: Option<usize>) -> [serde_json::Value; 2] {
        let json = |slots: &[&str], context: &Context| {
            let of = |slot: &&str| {
                let value = serde_json::to_value(context.get(slot)?).ok()?;
                Some(((*slot).to_owned(), value))
            };
            slots.iter().filter_map(of).collect()
        };
        let demos = self.demos_for(item);
        let prefix = self.prefix_values(&item.locale, criterion, &demos);
        [
            json(PREFIX_SLOTS, &prefix),
            json(ITEM_SLOTS, &self.item_values(item, criterion)),
        ]
    }

    /// Whether the item template puts texts between delimiters; elsewhere a text is one line.
    pub fn fences_items(&self) -> bool {
        self.fenced[1]
    }

    /// Prefix and suffix of an item together.
    ///
    /// # Errors
    /// As [`Renderer::prefix_for`] and [`Renderer::suffix`].
    pub fn prompt(&self, item: &Item, criterion: Option<usize>) -> Result<PromptText, RenderError> {
        Ok(PromptText {
            style: self.version.skeleton.style,
            prefix: self.prefix_for(item, criterion)?,
            suffix: self.suffix(item, criterion)?,
        })
    }

    fn common(&self, locale: &Locale, criterion: Option<usize>) -> Context {
        let mut context = Context::new();
        let mut sections = self.version.sections.clone();
        // Templates may name every standard section without asking whether the version has it.
        for name in ["role", "rubric", "rules", "format_hint"] {
            sections.entry(name.to_owned()).or_default();
        }
        context.insert("sections", &sections);
        context.insert("locale", &LocaleView::from(locale));
        context.insert("fence", self.fence.as_str());
        let all: Vec<_> = (0..self.task.criteria.len())
            .map(|c| self.criterion(c))
            .collect();
        context.insert("criterion", &self.criterion(criterion.unwrap_or(0)));
        context.insert("criteria", &all);
        let format = match self.version.answer {
            AnswerFormat::Logprobs => "logprobs",
            AnswerFormat::Label => "label",
            AnswerFormat::Json => "json",
        };
        context.insert("answer_format", format);
        context
    }

    fn criterion(&self, index: usize) -> CriterionView<'_> {
        let c = &self.task.criteria[index];
        let offered = (0..c.labels.len()).filter(|&i| self.version.offers(c, i));
        let labels = offered.map(|i| LabelView {
            word: self.version.word(c, i),
            meaning: &c.labels[i].meaning,
        });
        CriterionView {
            name: &c.name,
            question: &c.question,
            labels: labels.collect(),
        }
    }

    fn demo<'d>(&'d self, demo: &'d Demo, criterion: Option<usize>) -> DemoView<'d> {
        let fields = self.fields.iter().map(|&f| &self.task.fields[f]);
        let fields = fields.map(|f| FieldView {
            name: &f.name,
            title: &f.title,
            text: demo
                .fields
                .get(&f.name)
                .map(|text| one_line(text, self.fenced[0]))
                .unwrap_or_default(),
        });
        let word = |c: usize| {
            let criterion = &self.task.criteria[c];
            let label = demo
                .answers
                .get(&criterion.name)
                .and_then(|name| criterion.labels.iter().position(|l| l.name == *name));
            label.map_or("", |l| self.version.word(criterion, l))
        };
        let answer = match criterion {
            Some(c) => word(c).to_owned(),
            None => {
                let object: serde_json::Map<_, _> = (0..self.task.criteria.len())
                    .map(|c| (self.task.criteria[c].name.clone(), word(c).into()))
                    .collect();
                serde_json::Value::Object(object).to_string()
            }
        };
        DemoView {
            fields: fields.collect(),
            locale: (&demo.locale).into(),
            answer,
        }
    }

    fn render(&self, template: &'static str, context: &Context) -> Result<String, RenderError> {
        self.tera
            .render(template, context)
            .map_err(|e| RenderError::Template {
                skeleton: self.version.skeleton.name.clone(),
                template,
                what: e.to_string(),
            })
    }
}

fn is_for(demo: &Demo, locale: &Locale) -> bool {
    demo.only_for.as_ref().is_none_or(|only| only == locale)
}

/// Positions of the task's fields as the version shows them.
fn order(task: &Task, version: &Version) -> Vec<usize> {
    let mut order: Vec<usize> = (0..task.fields.len()).collect();
    // Stable: the others stay in the task's order.
    order.sort_by_key(|&f| version.first.as_ref() != Some(&task.fields[f].name));
    order
}

/// The texts of the demos, to be asked for the nearest to an item.
fn space(task: &Task, version: &Version) -> Space {
    let text = |demo: &Demo| {
        let fields = task.fields.iter();
        let texts = fields.map(|f| demo.fields.get(&f.name).map_or("", String::as_str));
        texts.collect::<Vec<_>>().join(" ")
    };
    let texts: Vec<String> = version.demos.iter().map(text).collect();
    Space::new(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A text that stands in a line of its own without delimiters may not begin another line: every
/// character that ends a line (Unicode 5.8: LF, VT, FF, CR, NEL, LS, PS) becomes a space there.
fn one_line(text: &str, fenced: bool) -> String {
    if fenced {
        return text.to_owned();
    }
    text.replace(
        [
            '\n', '\u{b}', '\u{c}', '\r', '\u{85}', '\u{2028}', '\u{2029}',
        ],
        " ",
    )
}
