//! RFC 5424, read by rsyslog from a socket.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{Trail, objects};
use crate::support::text;

/// Longer than rsyslog takes to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// What rsyslog does: takes messages from a socket, parses them, and writes down what it parsed. It writes
/// before it takes the next, so what it has closed the connection of is written.
const CONFIGURATION: &str = r#"
global(workDirectory="$OUT" maxMessageSize="256k")
main_queue(queue.type="Direct")
module(load="imptcp")
module(load="mmjsonparse")
module(load="mmpstrucdata")
input(type="imptcp" path="$OUT/socket")
template(name="parsed" type="list") {
  property(name="$!all-json")
  constant(value="\n")
}
template(name="message" type="list") {
  property(name="msg")
  constant(value="\n")
}
action(type="mmpstrucdata")
action(type="mmjsonparse" cookie="" container="$!record")
set $!header!priority = $pri;
set $!header!host = $hostname;
set $!header!app = $app-name;
set $!header!kind = $msgid;
action(type="omfile" file="$OUT/parsed" template="parsed")
action(type="omfile" file="$OUT/messages" template="message")
"#;

/// rsyslog with a socket of its own, ended by its pid.
struct Rsyslog(Child);

impl Rsyslog {
    fn start(trail: &Trail) -> Self {
        let configuration = trail.place("rsyslog.conf");
        let out = trail.world.beside().display().to_string();
        std::fs::write(&configuration, CONFIGURATION.replace("$OUT", &out)).unwrap();
        let mut command = trail.world.command_of_harness("rsyslogd");
        command
            .arg("-n")
            .arg("-f")
            .arg(configuration)
            .arg("-i")
            .arg(trail.place("pid"));
        command.stdout(Stdio::null());
        Self(command.spawn().expect("rsyslogd; Debian has it in the package rsyslog"))
    }

    /// Sends it all, and returns when rsyslog has taken it.
    fn take(&mut self, socket: &Path, messages: &[u8]) {
        let deadline = Instant::now() + PATIENCE;
        let mut stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < deadline, "rsyslog does not listen: {error}"),
            }
            assert!(self.0.try_wait().unwrap().is_none(), "rsyslog has ended");
            std::thread::sleep(Duration::from_millis(5));
        };
        stream.write_all(messages).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "rsyslog closes when it has all");
    }
}

impl Drop for Rsyslog {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// What rsyslog parsed of each message, and the messages.
fn through_rsyslog(trail: &Trail, format: &str) -> (Vec<Value>, String) {
    let mut rsyslog = Rsyslog::start(trail);
    rsyslog.take(&trail.place("socket"), &trail.exported(format));
    drop(rsyslog);
    let parsed = std::fs::read(trail.place("parsed")).unwrap();
    (objects(&parsed), text(trail.place("messages")))
}

#[test]
fn rsyslog_has_every_record_as_the_message_byte_for_byte() {
    for format in ["syslog-octets", "syslog"] {
        let trail = Trail::new();
        let (_, messages) = through_rsyslog(&trail, format);
        let sent: Vec<_> = trail
            .lines
            .iter()
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        // A message begins where the structured data ends, with or without the blank between.
        let got: Vec<_> = messages.lines().map(str::trim_start).collect();
        assert_eq!(got, sent, "{format}");
    }
}

#[test]
fn rsyslog_reads_the_record_and_the_structured_data() {
    let trail = Trail::new();
    let (parsed, _) = through_rsyslog(&trail, "syslog-octets");
    assert_eq!(parsed.len(), trail.lines.len(), "one message for each record");
    for (parsed, record) in parsed.iter().zip(trail.records()) {
        assert_eq!(parsed["record"], record);
        let header = &parsed["header"];
        assert_eq!(header["app"], "ringfence");
        assert_eq!(header["kind"], record["type"]);
        assert_eq!(header["host"], record["host"]);
        let data = &parsed["rfc5424-sd"]["ringfence@32473"];
        assert_eq!(data["seq"], record["seq"].to_string());
        assert_eq!(data["id"], record["id"]);
        for name in ["session", "run", "op", "errno", "program", "request", "mode"] {
            let there = record.get(name).and_then(Value::as_str);
            assert_eq!(data.get(name).and_then(Value::as_str), there, "{name} of {record}");
        }
        if let Some(path) = record.get("path").and_then(Value::as_str) {
            let start: String = path.chars().take_while(|c| !c.is_control()).collect();
            let shown = data["path"].as_str().unwrap();
            assert!(shown.starts_with(&start), "{shown}");
            assert!(!shown.chars().any(char::is_control), "{shown}");
        }
    }
}
