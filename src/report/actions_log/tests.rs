//! Tests the log against a port of the parser of GitHub's runner (`ActionCommand.TryParseV2` and `TryParse`,
//! `ActionCommandManager.TryProcessCommand`).

use super::*;
use crate::report::samples::Sink;
use proptest::prelude::*;

/// How the runner compares strings: exactly, or (culture-sensitive, with ICU) ignoring weightless characters.
#[derive(Clone, Copy, Debug)]
enum Comparison {
    Ordinal,
    Culture,
}

/// A runner that reads a step's output.
struct Runner {
    registered: Vec<String>,
    comparison: Comparison,
    stop_token: Option<String>,
    obeyed: Vec<String>,
}

const REGISTERED: [&str; 17] = [
    "internal-set-repo-path",
    "set-env",
    "set-output",
    "save-state",
    "add-mask",
    "add-path",
    "add-matcher",
    "remove-matcher",
    "debug",
    "warning",
    "error",
    "notice",
    "echo",
    "group",
    "endgroup",
    "stop-commands",
    "command",
];

impl Runner {
    fn new(comparison: Comparison) -> Self {
        let registered = REGISTERED.map(str::to_owned).to_vec();
        Self {
            registered,
            comparison,
            stop_token: None,
            obeyed: Vec::new(),
        }
    }

    /// `StreamReader.ReadLine`: `\n`, `\r` and `\r\n` end a line.
    fn feed(&mut self, output: &[u8]) {
        let text = String::from_utf8_lossy(output).replace("\r\n", "\n");
        for line in text.split(['\n', '\r']) {
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        let seen: String = match self.comparison {
            Comparison::Ordinal => line.to_owned(),
            Comparison::Culture => line.chars().filter(|&c| !is_passed_over(c)).collect(),
        };
        let Some((name, data)) = self.parse_v2(&seen).or_else(|| self.parse(&seen)) else {
            return;
        };
        if let Some(token) = self.stop_token.clone() {
            if name.eq_ignore_ascii_case(&token) {
                self.registered.retain(|known| *known != token);
                self.stop_token = None;
            }
            return;
        }
        if name.eq_ignore_ascii_case("stop-commands") {
            self.registered.push(data.clone());
            self.stop_token = Some(data);
            return;
        }
        self.obeyed.push(line.to_owned());
    }

    fn parse_v2(&self, line: &str) -> Option<(String, String)> {
        let line = line.trim();
        let rest = line.strip_prefix("::")?;
        let (info, data) = rest.split_once("::")?;
        self.known(info, data)
    }

    fn parse(&self, line: &str) -> Option<(String, String)> {
        let (_, rest) = line.split_once("##[")?;
        let (info, data) = rest.split_once(']')?;
        self.known(info, data)
    }

    fn known(&self, info: &str, data: &str) -> Option<(String, String)> {
        let name = info.split(' ').next().unwrap_or("");
        let known = self
            .registered
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name));
        known.then(|| (name.to_owned(), data.to_owned()))
    }
}

/// The commands that the runner executes if nothing stops commands: this tests the second defence alone.
fn obeyed_unstopped(output: &[u8], comparison: Comparison) -> Vec<String> {
    let kept: Vec<u8> = output
        .split_inclusive(|&byte| byte == b'\n')
        .filter(|line| !line.starts_with(b"::stop-commands::"))
        .flatten()
        .copied()
        .collect();
    let mut runner = Runner::new(comparison);
    runner.feed(&kept);
    runner.obeyed
}

fn actions_log() -> (ActionsLog, Sink) {
    let sink = Sink::default();
    let mut n = 0;
    let token = move || {
        n += 1;
        format!("token-{n}")
    };
    (
        ActionsLog::new(Box::new(sink.clone()), Box::new(token)),
        sink,
    )
}

fn written(pieces: &[Vec<u8>]) -> Vec<u8> {
    let (mut log, sink) = actions_log();
    for piece in pieces {
        log.write_all(piece).unwrap();
    }
    log.finish().unwrap();
    sink.bytes()
}

#[test]
fn the_oracle_obeys_what_the_runner_obeys() {
    let attacks = [
        "::error::x",
        " \u{a0}\u{3000}::add-mask::x",
        "text ##[group]x",
        "a\r::notice::x\rb",
        "::ERROR file=a,line=1::x",
        "## ##[command]ls",
        "::stop-commands::t\n::t::\n::debug::x",
    ];
    for attack in attacks {
        let mut runner = Runner::new(Comparison::Ordinal);
        runner.feed(attack.as_bytes());
        assert_eq!(runner.obeyed.len(), 1, "{attack:?}");
    }
    let mut runner = Runner::new(Comparison::Culture);
    runner.feed("\u{ad}::error::x\n#\u{200d}#\u{0}[group]x".as_bytes());
    assert_eq!(runner.obeyed.len(), 2);
    let mut runner = Runner::new(Comparison::Ordinal);
    runner.feed(b"::stop-commands::t\n::error::x\n##[group]\n::unknown::\n::t::");
    assert_eq!(runner.obeyed, Vec::<String>::new());
}

#[test]
fn text_is_written_between_stop_and_token_and_commands_outside() {
    let (mut log, sink) = actions_log();
    log.write_all(b"hello\n::error::no\nopen ").unwrap();
    log.command(&["::group::t1".into()]).unwrap();
    log.write_all(b"more ##[error]x\r\ny\rz\n").unwrap();
    log.finish().unwrap();
    log.finish().unwrap();
    let text = sink.text();
    insta::assert_snapshot!(text, @r"
    ::stop-commands::token-1
    hello
    : :error::no
    open 
    ::token-1::
    ::group::t1
    ::stop-commands::token-2
    more ## [error]x
    y
    z
    ::token-2::
    ");
}

#[test]
fn a_log_that_is_dropped_lets_commands_through_again() {
    let (mut log, sink) = actions_log();
    log.write_all(b"open").unwrap();
    drop(log);
    let text = sink.text();
    assert_eq!(text, "::stop-commands::token-1\nopen\n::token-1::\n");
}

#[test]
fn what_is_no_command_stays_as_it_is() {
    let lines = [
        "    #[test]",
        "a::b",
        "std::io::Error",
        "# [x]",
        "\u{1b}[31mred\u{1b}[0m",
        "日本語",
    ];
    for line in lines {
        assert_eq!(neutral(line), line);
    }
    assert_eq!(neutral("##\u{1b}[31m[error]x"), "## \u{1b}[31m[error]x");
    assert_eq!(neutral("\u{1b}]0;::error::x\u{7}"), "]0;::error::x");
    assert_eq!(neutral("#\u{fe0f}#\u{200d}[error]x"), "## [error]x");
}

#[test]
fn a_line_without_end_needs_bounded_memory() {
    let (mut log, sink) = actions_log();
    let long = "é".repeat(MAX_LINE_BYTES);
    log.write_all(long.as_bytes()).unwrap();
    assert!(log.log().pending.len() < MAX_LINE_BYTES);
    log.finish().unwrap();
    let text = sink.text();
    let letters: String = text
        .lines()
        .filter(|line| !line.starts_with("::"))
        .collect();
    assert_eq!(letters, long);
}

fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let fragments = prop_oneof![
        Just("::".to_owned()),
        Just(":".to_owned()),
        Just("##[".to_owned()),
        Just("#".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just("\r".to_owned()),
        Just("\n".to_owned()),
        Just("error".to_owned()),
        Just("stop-commands".to_owned()),
        Just("token-1".to_owned()),
        Just("group".to_owned()),
        Just("add-mask".to_owned()),
        Just(" ".to_owned()),
        Just("\u{a0}".to_owned()),
        Just("\u{85}".to_owned()),
        Just("\u{feff}".to_owned()),
        Just("\u{ad}".to_owned()),
        Just("\u{200d}".to_owned()),
        Just("\0".to_owned()),
        Just("\t".to_owned()),
        Just("\u{1b}[31m".to_owned()),
        Just("\u{1b}[".to_owned()),
        Just("\u{1b}".to_owned()),
        Just("m".to_owned()),
        any::<char>().prop_map(String::from),
    ];
    let text = proptest::collection::vec(fragments.prop_map(String::into_bytes), 0..40);
    let stray = prop_oneof![9 => Just(None), 1 => any::<u8>().prop_map(Some)];
    (text, stray).prop_map(|(text, stray)| text.into_iter().flatten().chain(stray).collect())
}

proptest! {
    #[test]
    fn a_command_is_found_behind_what_is_passed_over(text in "[#\\[a\u{ad}\u{202e}]{0,12}") {
        let seen = text.replace(is_passed_over, "");
        prop_assert_eq!(has_command(&text), seen.contains("##["));
    }

    #[test]
    fn no_foreign_command_survives(
        text in hostile(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            pieces.push(text[from..cut].to_vec());
            from = cut;
        }
        let output = written(&pieces);
        prop_assert_eq!(&output, &written(&[text]));
        for comparison in [Comparison::Ordinal, Comparison::Culture] {
            // The token is unknown to an agent, so the second defence is tested without the first.
            prop_assert_eq!(obeyed_unstopped(&output, comparison), Vec::<String>::new());
            let mut runner = Runner::new(comparison);
            runner.feed(&output);
            prop_assert_eq!(&runner.obeyed, &Vec::<String>::new());
            prop_assert_eq!(&runner.stop_token, &None);
        }
    }
}
