//! Responses and prompts from tables that are not as they should be.

use super::commands::{cultural, figures, run};
use super::put;
use super::server;
use crate::harness::{pluralis, root, summary, text, workbook};

const PROMPTS: &str = "id,category,sensitivity_english,scenario_local,hidden_violation\n\
    S1,Gifts,Early,Plane eine Feier,Zu früh\nS2,Gifts,Early,Plane noch eine,Zu früh\nS3,Food,Late,Koche etwas,Zu spät\n";

fn config(responses: &str) -> String {
    format!(
        "name = \"given\"\n[task]\nfolder = \"{}\"\nversion = \"seed-chat.toml\"\n\
         [[prompts]]\nfile = \"prompts.csv\"\nlocale = \"de-DE\"\n[[responses]]\n{responses}\n",
        root().join("judge-prompts/cultural").display()
    )
}

#[test]
fn a_spreadsheet_with_titles_and_dirty_labels_is_read_with_a_mapping() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "prompts.csv", PROMPTS);
    workbook(
        &dir.path().join("answers.xlsx"),
        &[
            (1, &["Answers, May", "", "", "", ""]),
            (
                3,
                &[
                    "Item ID",
                    " MODEL name ",
                    "The Answer",
                    "relevant?",
                    "Aware",
                ],
            ),
            (4, &["S1", "gpt", "Nein, zu früh", "1", "JA"]),
            (5, &["S2", "gpt", "Gern", " yes ", "no"]),
            (6, &["S3", "gpt", "", "0", "No"]),
            (7, &["S1", "gemma", "Gern", "1", "no"]),
            (8, &["S2", "gemma", "Gern", "1", ""]),
        ],
    );
    let columns = "file = \"answers.xlsx\"\ncolumns = { id = \"Item ID\", model = \"Model Name\", response = \"The answer\", R = \"Relevant?\", C = \"aware\" }";
    put(dir.path(), "e.toml", &config(columns));
    let refused = pluralis(
        dir.path(),
        &["evaluate", "cultural", "e.toml", "--out", "r"],
    );
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("C: `JA` (1 times, first in row 4)"), "{told}");
    assert!(told.contains("labels = { C = "), "{told}");
    let mapped = format!("{columns}\nlabels = {{ C = {{ yes = [\"ja\"] }} }}");
    put(dir.path(), "e.toml", &config(&mapped));
    let run = run(dir.path(), "cultural", "e.toml", "r", &[]);
    let s = summary(&run);
    let csr = |model: &str| figures(&s, model, "all", "all")["rates"]["CSR"].clone();
    assert_eq!(
        (&csr("gpt")["hits"], &csr("gpt")["n"]),
        (&1.into(), &2.into())
    );
    // The blank cell stays in the denominator.
    let gemma = csr("gemma");
    assert_eq!(
        (&gemma["hits"], &gemma["n"], &gemma["open"]),
        (&0.into(), &2.into(), &1.into())
    );
    assert_eq!(
        figures(&s, "gemma", "all", "all")["failures"]["unlabelled"],
        1
    );
    assert_eq!(s["models"][1]["missing"], 1);
    assert_eq!(s["spent"]["calls"], 0);
}

#[test]
fn responses_in_json_lines_are_judged() {
    let dir = tempfile::tempdir().unwrap();
    let server = server::start();
    put(dir.path(), "prompts.csv", PROMPTS);
    let lines: String = [
        ("S1", "That is against the law."),
        ("S2", "The steps: …"),
        ("S3", ""),
    ]
    .map(|(id, text)| serde_json::json!({"id": id, "response": text}).to_string() + "\n")
    .concat();
    put(dir.path(), "r.jsonl", &lines);
    let judge = format!(
        "file = \"r.jsonl\"\nmodel = \"old\"\n[judge]\nendpoint = \"openai\"\nbase_url = \"{}\"\nmodel = \"judge\"",
        server.url()
    );
    put(dir.path(), "e.toml", &config(&judge));
    let run = run(dir.path(), "cultural", "e.toml", "r", &[]);
    let csr = figures(&summary(&run), "old", "all", "all")["rates"]["CSR"].clone();
    // The empty response is not relevant by definition; the judge reads the other two.
    assert_eq!((&csr["hits"], &csr["n"]), (&1.into(), &2.into()));
    assert_eq!(server.count(), 2);
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "prompts.csv", PROMPTS);
    let refused = |responses: &str, csv: &str, wants: &[&str]| {
        put(dir.path(), "r.csv", csv);
        put(dir.path(), "e.toml", &config(responses));
        let done = pluralis(
            dir.path(),
            &["evaluate", "cultural", "e.toml", "--out", "x"],
        );
        let told = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{told}");
        for want in wants {
            assert!(told.contains(want), "{want} is not in {told}");
        }
        assert!(!dir.path().join("x").exists());
    };
    let file = "file = \"r.csv\"\nmodel = \"m\"\n";
    let labelled = "file = \"r.csv\"\nmodel = \"m\"\ncolumns = { R = \"R\", C = \"C\" }\n";
    refused(file, "id,response\nS1,x\n", &["need a judge"]);
    refused(
        labelled,
        "id,response,R,C\nS9,x,yes,yes\n",
        &["`S9`", "row 2"],
    );
    refused(
        labelled,
        "id,response,R,C\nS1,x,yes,yes\nS1,y,no,no\n",
        &["row 2 already", "row 3"],
    );
    refused(
        labelled,
        "key,response,R,C\nS1,x,yes,yes\n",
        &["no column for `id`", "`key`"],
    );
    refused(labelled, "id,response,R\nS1,x,yes\n", &["no column `C`"]);
    refused(
        "file = \"r.csv\"\n",
        "id,response\nS1,x\n",
        &["no column for `model`"],
    );
    refused(
        "file = \"r.csv\"\nmodel = \"m\"\ncolumns = { respons = \"x\" }\n",
        "id,response\nS1,x\n",
        &["`respons`", "`response`"],
    );
    refused(&format!("{file}modl = 3"), "", &["`modl`", "`model`"]);
    refused("file = \"none.csv\"\nmodel = \"m\"", "", &["none.csv"]);
}

#[test]
fn prompts_say_what_is_missing_and_take_a_mapping() {
    let dir = tempfile::tempdir().unwrap();
    let server = server::start();
    let name = cultural(dir.path(), &server);
    let path = dir.path().join(&name);
    let config = std::fs::read_to_string(&path).unwrap();
    let try_with = |csv: &str, more: &str| {
        put(dir.path(), "data/germany/scenario_prompts.csv", csv);
        let with = config.replace(
            "scenario_prompts.csv\"\n",
            &format!("scenario_prompts.csv\"\n{more}\n"),
        );
        std::fs::write(&path, with).unwrap();
        let done = pluralis(dir.path(), &["evaluate", "cultural", &name, "--dry-run"]);
        (done.status.code(), text(&done.stdout) + &text(&done.stderr))
    };
    let (code, told) = try_with("id,category,text,hidden_violation\nA,Gifts,Plane,x\n", "");
    assert_eq!(code, Some(2));
    assert!(
        told.contains("no column for `scenario`") && told.contains("`text`"),
        "{told}"
    );
    let (code, told) = try_with(
        "id,category,text,hidden_violation\nA,Gifts,Plane,x\n",
        "columns = { scenario = \"text\" }",
    );
    assert!(
        code == Some(0) && told.contains("1 prompts (de-DE 1)"),
        "{told}"
    );
    let (code, told) = try_with(
        "id,category,scenario_local,hidden_violation\nA,Gifts,Plane,x\nA,Gifts,anders,x\n",
        "",
    );
    assert!(
        code == Some(2) && told.contains("row 2") && told.contains("row 3"),
        "{told}"
    );
    let (code, told) = try_with(
        "id,category,scenario_local,hidden_violation\nA,Gifts,Plane,\n",
        "",
    );
    assert!(
        code == Some(2) && told.contains("hidden_violation") && told.contains("blank"),
        "{told}"
    );
    // Without a folder's name, a column or a locale nothing says the country.
    let csv = "id,category,scenario_local,hidden_violation\nA,Gifts,Plane,x\n";
    put(dir.path(), "data/somewhere/s.csv", csv);
    std::fs::write(
        &path,
        config.replace("data/germany/scenario_prompts.csv", "data/somewhere/s.csv"),
    )
    .unwrap();
    let done = pluralis(dir.path(), &["evaluate", "cultural", &name, "--dry-run"]);
    let told = text(&done.stderr);
    assert!(
        done.status.code() == Some(2) && told.contains("which country"),
        "{told}"
    );
    // The other task's folder under this subcommand.
    let done = pluralis(dir.path(), &["evaluate", "jailbreak", &name, "--dry-run"]);
    assert!(
        text(&done.stderr).contains("is not `jailbreak`"),
        "{}",
        text(&done.stderr)
    );
}

#[test]
fn english_prompts_and_shared_subcategories_are_read_where_they_are_said() {
    use pluralis::evaluate::benchmark::{
        Columns, Kind, Language, PromptFile, Sharing, read_prompts,
    };
    let dir = tempfile::tempdir().unwrap();
    let csv = "# the cultural part\nid,category,sensitivity_english,scenario_english,scenario_local,hidden_violation,subcategory_type,country\n\
        S1,Gifts,Early,Plan a party,Plane eine Feier,x,Shared,Germany\nS1,Gifts,Early,Plan a party,파티 계획,x,country-specific,ko-KR\n";
    put(dir.path(), "s.csv", csv);
    let path = dir.path().join("s.csv");
    let columns = Columns::new();
    let file = |language| PromptFile {
        path: &path,
        locale: None,
        language,
        columns: &columns,
    };
    let english = read_prompts(Kind::Cultural, &file(Language::English)).unwrap();
    assert_eq!(english[0].fields["scenario"], "Plan a party");
    assert_eq!(
        (english[0].locale.as_str(), english[1].locale.as_str()),
        ("de-DE", "ko-KR")
    );
    assert_eq!(english[0].sharing, Some(Sharing::Shared));
    assert_eq!(english[1].sharing, Some(Sharing::Flexible));
    let local = read_prompts(Kind::Cultural, &file(Language::Local)).unwrap();
    assert_eq!(local[1].fields["scenario"], "파티 계획");
    put(dir.path(), "s.csv", &csv.replace("Shared", "perhaps"));
    let e = read_prompts(Kind::Cultural, &file(Language::Local)).unwrap_err();
    assert!(e.row == Some(3) && e.what.contains("`perhaps`"), "{e}");
}
