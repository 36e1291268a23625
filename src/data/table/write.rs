//! Owns tables as bytes for spreadsheets: CSV whose cells are no formulas, and a workbook of one sheet.
//! Must not know what the cells mean.

use std::io::{Cursor, Write as _};

use super::DataError;
use crate::text::csv_cell;

/// Rows as CSV, each cell made harmless for spreadsheets.
///
/// # Errors
/// None in practice: memory cannot refuse to be written.
pub fn csv_bytes(rows: &[Vec<String>]) -> Result<Vec<u8>, DataError> {
    let failed = |e: String| DataError::new(format!("the table cannot be written: {e}"), "");
    let mut writer = csv::WriterBuilder::new()
        .flexible(true)
        .from_writer(Vec::new());
    for row in rows {
        let cells = row.iter().map(|c| csv_cell(c).into_owned());
        writer
            .write_record(cells.collect::<Vec<_>>())
            .map_err(|e| failed(e.to_string()))?;
    }
    writer.into_inner().map_err(|e| failed(e.to_string()))
}

/// A column of a workbook's sheet.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Width in characters.
    pub width: usize,
    /// What may be chosen in its cells below the heading; empty where anything may be written.
    pub choices: Vec<String>,
}

/// Longest text of a cell that spreadsheets open.
const MOST_CELL: usize = 32_767;

/// Rows as an XLSX workbook of one sheet: every cell is text, so none is a formula; the first row is
/// a heading that stays in sight, and `columns` say how wide each is and what may be chosen in it.
///
/// # Errors
/// A text longer than a spreadsheet's cell may be, with its row and column.
pub fn workbook_bytes(rows: &[Vec<String>], columns: &[Look]) -> Result<Vec<u8>, DataError> {
    let mut data = String::new();
    for (r, row) in rows.iter().enumerate() {
        data += &format!("<row r=\"{}\">", r + 1);
        for (c, cell) in row.iter().enumerate() {
            // Excel counts UTF-16 units.
            if cell.encode_utf16().count() > MOST_CELL {
                let what = format!(
                    "the text is longer than the {MOST_CELL} characters of a spreadsheet's cell"
                );
                let e = DataError::new(what, "use the CSV sheet alone, or leave the response out");
                return Err(e.at_row(r + 1).at_column(name(c)));
            }
            let style = if r == 0 { 1 } else { 2 };
            data += &format!(
                "<c r=\"{}{}\" s=\"{style}\" t=\"inlineStr\"><is><t xml:space=\"preserve\">{}</t></is></c>",
                name(c),
                r + 1,
                xml(cell)
            );
        }
        data += "</row>";
    }
    let widths: String = columns
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let at = i + 1;
            format!(
                "<col min=\"{at}\" max=\"{at}\" width=\"{}\" customWidth=\"1\"/>",
                c.width
            )
        })
        .collect();
    let sheet = format!(
        "<worksheet xmlns=\"{MAIN}\"><sheetViews><sheetView workbookViewId=\"0\"><pane ySplit=\"1\" topLeftCell=\"A2\" activePane=\"bottomLeft\" state=\"frozen\"/></sheetView></sheetViews><cols>{widths}</cols><sheetData>{data}</sheetData>{}</worksheet>",
        choices(columns, rows.len())
    );
    packed(&sheet).map_err(|e| DataError::new(format!("the workbook cannot be written: {e}"), ""))
}

const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006";
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";

fn choices(columns: &[Look], rows: usize) -> String {
    let lists: Vec<String> = columns
        .iter()
        .enumerate()
        .filter(|(_, c)| !c.choices.is_empty() && rows > 1)
        .map(|(i, c)| {
            format!(
                "<dataValidation type=\"list\" allowBlank=\"1\" showErrorMessage=\"1\" sqref=\"{0}2:{0}{rows}\"><formula1>\"{1}\"</formula1></dataValidation>",
                name(i),
                xml(&c.choices.join(","))
            )
        })
        .collect();
    match lists.len() {
        0 => String::new(),
        n => format!(
            "<dataValidations count=\"{n}\">{}</dataValidations>",
            lists.concat()
        ),
    }
}

fn packed(sheet: &str) -> std::io::Result<Vec<u8>> {
    let relation = |id: &str, kind: &str, target: &str| {
        format!("<Relationship Id=\"{id}\" Type=\"{OFFICE}/{kind}\" Target=\"{target}\"/>")
    };
    let relations = |of: String| {
        format!("<Relationships xmlns=\"{PACKAGE}/relationships\">{of}</Relationships>")
    };
    let spreadsheet = "application/vnd.openxmlformats-officedocument.spreadsheetml";
    let part = |name: &str, kind: &str| {
        format!("<Override PartName=\"{name}\" ContentType=\"{spreadsheet}.{kind}+xml\"/>")
    };
    let types = format!(
        "<Types xmlns=\"{PACKAGE}/content-types\"><Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/><Default Extension=\"xml\" ContentType=\"application/xml\"/>{}{}{}</Types>",
        part("/xl/workbook.xml", "sheet.main"),
        part("/xl/worksheets/sheet1.xml", "worksheet"),
        part("/xl/styles.xml", "styles"),
    );
    let styles = format!(
        "<styleSheet xmlns=\"{MAIN}\"><fonts count=\"2\"><font><sz val=\"11\"/></font><font><b/><sz val=\"11\"/></font></fonts><fills count=\"2\"><fill><patternFill patternType=\"none\"/></fill><fill><patternFill patternType=\"gray125\"/></fill></fills><borders count=\"1\"><border/></borders><cellStyleXfs count=\"1\"><xf/></cellStyleXfs><cellXfs count=\"3\"><xf/><xf fontId=\"1\" applyFont=\"1\" numFmtId=\"49\" applyNumberFormat=\"1\"/><xf numFmtId=\"49\" applyNumberFormat=\"1\" applyAlignment=\"1\"><alignment vertical=\"top\" wrapText=\"1\"/></xf></cellXfs><cellStyles count=\"1\"><cellStyle name=\"Normal\" xfId=\"0\" builtinId=\"0\"/></cellStyles></styleSheet>"
    );
    let parts = [
        ("[Content_Types].xml", types),
        (
            "_rels/.rels",
            relations(relation("r1", "officeDocument", "xl/workbook.xml")),
        ),
        (
            "xl/workbook.xml",
            format!(
                "<workbook xmlns=\"{MAIN}\" xmlns:r=\"{OFFICE}\"><sheets><sheet name=\"labels\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            relations(
                relation("r1", "worksheet", "worksheets/sheet1.xml")
                    + &relation("r2", "styles", "styles.xml"),
            ),
        ),
        ("xl/styles.xml", styles),
        ("xl/worksheets/sheet1.xml", sheet.to_owned()),
    ];
    // A fixed time, so that the same sheet is the same bytes.
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default());
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        zip.start_file(name, options)?;
        zip.write_all(HEAD.as_bytes())?;
        zip.write_all(text.as_bytes())?;
    }
    Ok(zip.finish()?.into_inner())
}

/// A, B, … Z, AA, …
fn name(column: usize) -> String {
    let letter = (b'A' + (column % 26) as u8) as char;
    match column / 26 {
        0 => letter.to_string(),
        more => name(more - 1) + &letter.to_string(),
    }
}

/// Text of an element; characters that XML cannot hold are left out.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' => out.push('\n'),
            '\t' => out.push('\t'),
            // A carriage return is not kept by XML readers, and a lone one ends no line here.
            '\r' | '\u{fffe}' | '\u{ffff}' => {}
            c if (c as u32) < 0x20 => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Format, table_from_bytes};

    #[test]
    fn what_is_written_is_read_back() {
        let text = "=1+1 <b>&\"x\"\n zwei\u{7}";
        let rows: Vec<Vec<String>> = [
            ["row", "Text", "H"],
            ["de-001", text, ""],
            ["de-002", "ไม่", "yes"],
        ]
        .map(|r| r.map(str::to_owned).to_vec())
        .to_vec();
        let looks = [
            Look::default(),
            Look {
                width: 60,
                ..Look::default()
            },
            Look {
                width: 8,
                choices: vec!["no".into(), "yes".into()],
            },
        ];
        let book = workbook_bytes(&rows, &looks).unwrap();
        assert_eq!(book, workbook_bytes(&rows, &looks).unwrap());
        let back = table_from_bytes("x.xlsx", &book, Format::Spreadsheet, &["row"]).unwrap();
        assert_eq!(back.header, ["row", "Text", "H"]);
        assert_eq!(back.rows[0].cells[1], "=1+1 <b>&\"x\"\n zwei");
        assert_eq!(back.rows[1].cells, rows[2]);
        let csv = String::from_utf8(csv_bytes(&rows).unwrap()).unwrap();
        assert!(csv.contains("\"'=1+1 <b>&\"\"x\"\"\n zwei"), "{csv}");
        assert!(workbook_bytes(&[vec!["x".repeat(40_000)]], &looks).is_err());
        assert_eq!(
            (name(0), name(26), name(27)),
            ("A".into(), "AA".into(), "AB".into())
        );
    }
}
