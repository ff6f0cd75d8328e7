//! The table and the documents, read by what everybody has.

use serde_json::Value;

use super::corpus::NASTY;
use super::{Trail, objects};

#[test]
fn python_reads_the_table_and_every_record_is_a_row_of_it() {
    let trail = Trail::new();
    let file = trail.place("table.csv");
    std::fs::write(&file, trail.exported("csv")).unwrap();
    let rows = trail.world.prepare(
        "python3 -c 'import csv, json; csv.field_size_limit(1 << 20)\n\
         for row in csv.DictReader(open(\"../out/table.csv\", newline=\"\", encoding=\"utf-8\"), strict=True):\n\
         \x20print(json.dumps(row))'",
    );
    let rows = objects(rows.as_bytes());
    assert_eq!(rows.len(), trail.lines.len());
    for (row, record) in rows.iter().zip(trail.records()) {
        for name in ["id", "time", "type", "host", "prev", "path", "errno"] {
            let value = record.get(name).and_then(Value::as_str).unwrap_or_default();
            assert_eq!(row[name], value, "{name}");
        }
        assert_eq!(row["seq"], record["seq"].to_string());
        let payload: Value = serde_json::from_str(row["payload"].as_str().unwrap()).unwrap();
        for (name, value) in payload.as_object().unwrap() {
            assert_eq!(&record[name], value, "{name}");
        }
        for (name, cell) in row.as_object().unwrap() {
            let cell = cell.as_str().unwrap();
            let formula = cell.starts_with(['=', '+', '@', '-']);
            assert!(!formula || cell.parse::<i64>().is_ok(), "{name}: {cell}");
        }
    }
}

#[test]
fn every_record_is_a_document_of_ecs_that_says_what_it_was() {
    let trail = Trail::new();
    let documents = objects(&trail.exported("ecs"));
    assert_eq!(documents.len(), trail.lines.len());
    for (document, record) in documents.iter().zip(trail.records()) {
        assert_eq!(document["@timestamp"], record["time"]);
        assert_eq!(document["event"]["action"], record["type"]);
        assert_eq!(document["event"]["id"], record["id"]);
        assert_eq!(document["ringfence"]["prev"], record["prev"]);
        if record["type"] == "denial" {
            assert_eq!(document["event"]["category"], serde_json::json!(["file"]));
            assert_eq!(document["event"]["outcome"], "failure");
            assert_eq!(document["file"]["path"], record["path"]);
        }
        if record["type"] == "run.start" {
            assert_eq!(document["process"]["args"], record["argv"]);
        }
    }
}

#[test]
fn the_lines_of_the_trail_are_given_out_as_they_are() {
    let trail = Trail::new();
    assert_eq!(super::lines(&trail.exported("jsonl")), trail.lines);
}

#[test]
fn no_sentence_that_an_export_makes_ends_a_line_or_steers_a_terminal() {
    let trail = Trail::new();
    assert!(NASTY.contains(['\n', '\u{1b}', '\u{202e}']));
    for event in objects(&trail.exported("ocsf")) {
        let message = event["message"].as_str().unwrap();
        assert!(
            !message.contains(|c: char| c.is_control() || c == '\u{202e}'),
            "{message:?}"
        );
    }
}
