use std::io::Write;

use serde_json::{Value, json};

use super::*;
use crate::audit::Trail;
use crate::state::tests::place;

const PREV: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A line of a trail.
fn line(seq: u64, event: &Value) -> Vec<u8> {
    let mut record = json!({
        "v": 1, "seq": seq, "id": format!("id{seq}"), "time": "2026-12-01T03:12:24.000789Z", "monoNs": 5_000_000,
        "boot": "b953fc46-e3c1-42d6-a509-1840a2e881d5", "host": "h ost", "uid": 7, "session": "s", "run": "r",
        "prev": PREV,
    });
    let (Value::Object(record_fields), Value::Object(fields)) = (&mut record, event.clone()) else {
        panic!("two objects")
    };
    record_fields.extend(fields);
    record.to_string().into_bytes()
}

fn denial() -> Value {
    json!({
        "type": "denial", "op": "write", "path": "/a\n]\\\" b\u{fffd}", "pathBytes": "L2EKXVwiIGL/", "program": "=sh",
        "pid": 3, "errno": "EACCES", "count": 2,
    })
}

fn exported(lines: &[Vec<u8>], format: Format, filter: &Filter) -> (Vec<u8>, Exported) {
    let place = place();
    std::fs::create_dir(place.path().join("audit")).unwrap();
    let mut segment = std::fs::File::create(place.path().join("audit/0000000000000001.jsonl")).unwrap();
    for line in lines {
        segment.write_all(line).unwrap();
        segment.write_all(b"\n").unwrap();
    }
    let mut out = Vec::new();
    let done = Trail::read(place.path()).unwrap().export(format, filter, &mut out);
    (out, done.unwrap())
}

fn one(event: &Value, format: Format) -> String {
    let (out, done) = exported(&[line(1, event)], format, &Filter::default());
    assert_eq!(done.records, 1);
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn what_is_no_record_and_what_is_not_known_is_counted_and_left_out() {
    let lines = [
        line(1, &denial()),
        b"{\"v\":1,\"seq\":2,\"to".to_vec(),
        line(2, &json!({"type": "of.tomorrow"})),
        line(3, &json!({"type": "denial"})),
        line(4, &denial()),
    ];
    for format in Format::ALL {
        let (out, done) = exported(&lines, format, &Filter::default());
        let expected = Exported {
            records: 2,
            torn: 1,
            unknown: 2,
            first_unknown: Some(2),
        };
        assert_eq!(done, expected, "{format}");
        assert!(!String::from_utf8_lossy(&out).contains("tomorrow"), "{format}");
    }
}

#[test]
fn only_what_is_asked_for_is_given_out() {
    let filter = Filter {
        kind: Some("audit.gap".to_owned()),
        ..Filter::default()
    };
    let gap = json!({"type": "audit.gap", "what": "w", "omitted": 1});
    let (out, done) = exported(&[line(1, &denial()), line(2, &gap)], Format::Jsonl, &filter);
    assert_eq!((out, done.records), ([line(2, &gap), b"\n".to_vec()].concat(), 1));
}

#[test]
fn a_denial_is_a_blocked_activity_of_the_file_system() {
    let event: Value = serde_json::from_str(&one(&denial(), Format::Ocsf)).unwrap();
    assert_eq!(event["type_uid"], 100_103);
    assert_eq!(event["time"], 1_796_094_744_000_i64);
    assert_eq!(event["count"], 2);
    assert_eq!(event["metadata"]["profiles"], json!(["host", "security_control"]));
    assert_eq!(event["unmapped"]["pathBytes"], "L2EKXVwiIGL/");
    assert_eq!(event["actor"]["process"], json!({"name": "=sh", "pid": 3}));
    assert_eq!(event["actor"]["user"], json!({"uid": "7"}));
}

#[test]
fn whoever_decided_stands_in_the_place_of_who_wrote_the_record() {
    let decided = json!({
        "type": "approval.decided", "request": "q", "outcome": "rejected", "digest": "d",
        "by": {"kind": "tty", "principal": "alice", "assurance": "seen", "reason": null},
    });
    let event: Value = serde_json::from_str(&one(&decided, Format::Ocsf)).unwrap();
    assert_eq!(event["actor"]["user"], json!({"name": "alice"}));
    assert_eq!(
        (&event["status"], &event["status_code"]),
        (&json!("Failure"), &json!("rejected"))
    );
    assert_eq!(event["unmapped"]["by"]["assurance"], "seen");
}

#[test]
fn structured_data_escapes_what_ends_it_and_the_message_is_the_line() {
    let text = one(&denial(), Format::Syslog);
    let start = "<84>1 2026-12-01T03:12:24.000789Z host ringfence - denial [ringfence@32473 seq=\"1\" ";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains(r#" path="/a\\n\]\\\" b"#), "{text}");
    let message = String::from_utf8(line(1, &denial())).unwrap();
    assert!(text.ends_with(&format!("\"] {message}\n")), "{text}");
    let framed = one(&denial(), Format::SyslogOctets);
    assert_eq!(framed, format!("{} {}", text.len() - 1, text.trim_end_matches('\n')));
}

#[test]
fn the_journal_has_a_path_that_is_no_text_as_its_bytes() {
    let (out, _) = exported(&[line(1, &denial())], Format::Journal, &Filter::default());
    let field = b"\nRINGFENCE_PATH\n\x09\0\0\0\0\0\0\0/a\n]\\\" b\xff\n";
    assert!(out.windows(field.len()).any(|window| window == field));
    assert!(
        out.starts_with(
            b"__REALTIME_TIMESTAMP=1796094744000789\n__MONOTONIC_TIMESTAMP=5000\n_BOOT_ID=b953fc46e3c142d6"
        )
    );
    assert!(out.ends_with(b"\n\n"));
}

#[test]
fn a_cell_that_would_be_a_formula_is_none() {
    let text = one(&denial(), Format::Csv);
    assert!(text.contains(",\"'=sh\",3,EACCES,2,"), "{text}");
    let headings = text.lines().next().unwrap();
    assert!(
        headings.starts_with("seq,id,time,host,uid,session,run,type,result,op,path,"),
        "{headings}"
    );
}

#[test]
fn a_format_is_known_by_its_name_alone() {
    for format in Format::ALL {
        assert_eq!(format.name().parse::<Format>().unwrap(), format);
    }
    let error = "OCSF".parse::<Format>().unwrap_err().to_string();
    assert!(
        Format::ALL.iter().all(|format| error.contains(format.name())),
        "{error}"
    );
}
