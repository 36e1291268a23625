//! Owns items, votes and splits, the importers of data sets, and the checks of an items file.
//! Must not know prompts or endpoints.

mod item;
mod error;
mod groups;
mod load;
mod table;
mod check;
mod split;
pub mod import;

pub use crate::text::{clean, is_invisible, nearest, normalise};
pub use check::{CheckReport, CriterionCounts, Duplicate, Leak, LocaleCounts, check};
pub use error::DataError;
pub use item::{Item, ItemRecord, Split, Votes};
pub use load::{check_record, digest, load_items, read_records, records_from, write_records};
pub use split::{Shortage, SplitPlan, SplitReport, split};
pub use table::{
    Format, Look, MAX_CELL_BYTES, Row, Table, csv_bytes, read_table, read_table_as,
    table_from_bytes, workbook_bytes,
};
