use super::diagnostics::shown_of;
use crate::checks::read_matchers;
use crate::checks::reading::parse_with;
use serde_json::json;

fn found(matchers: &serde_json::Value, output: &str) -> Vec<String> {
    let read = read_matchers("m.json", matchers.to_string().as_bytes());
    assert_eq!(read.warnings, [""; 0]);
    shown_of(parse_with(output, "/proj", &read.matchers))
}

#[test]
fn a_single_line_with_severity_and_code() {
    let matchers = json!({"problemMatcher": [{"owner": "lint", "severity": "warning", "pattern": [{
        "regexp": "^(?:::)?([^|]+)\\|(\\d+)\\|(\\d+)\\|(\\w*)\\|(\\w+)\\|(.*)$",
        "file": 1, "line": 2, "column": 3, "severity": 4, "code": 5, "message": 6
    }]}]});
    assert_eq!(
        found(
            &matchers,
            "/proj/src/a.x|1|2|error|X1|bad\nsrc/b.x|3|4||X2|odd\n/etc/c.x|5|6|NOTICE|X3|far\nother\n"
        ),
        [
            "src/a.x:1:2 Error X1 matcher | bad",
            "src/b.x:3:4 Warning X2 matcher | odd",
            "-:-:- Note X3 matcher | far",
        ]
    );
}

#[test]
fn several_lines_with_a_loop() {
    let matchers = json!({"problemMatcher": [{"owner": "stylish", "pattern": [
        {"regexp": "^([^\\s].*)$", "file": 1},
        {"regexp": "^\\s+(\\d+):(\\d+)\\s+(error|warning)\\s+(.*)\\s\\s+(.*)$",
         "line": 1, "column": 2, "severity": 3, "message": 4, "code": 5, "loop": true}
    ]}]});
    assert_eq!(
        found(
            &matchers,
            "intro\na.x\n  1:2  error  one  r1\n  3:4  warning  two  r2\n\n  5:6  error  lost  r3\nb.x\n  7:8  error  three  r4\n"
        ),
        [
            "a.x:1:2 Error r1 matcher | one",
            "b.x:7:8 Error r4 matcher | three",
            "a.x:3:4 Warning r2 matcher | two",
        ]
    );
}

#[test]
fn several_lines_without_a_loop_begin_anew_each_time() {
    let matchers = json!({"problemMatcher": [{"owner": "o", "pattern": [
        {"regexp": "^E (.*)$", "message": 1},
        {"regexp": "^at (.*):(\\d+) in (.*)$", "file": 1, "line": 2, "fromPath": 3}
    ]}]});
    assert_eq!(
        found(
            &matchers,
            "E first\nE second\nat src/x.cs:3 in /proj/app/app.proj\nat y.cs:4 in p.proj\nE third\nat ../z.cs:5 in app/app.proj\n"
        ),
        [
            "app/src/x.cs:3:- Error - matcher | second",
            "z.cs:5:- Error - matcher | third",
        ]
    );
}

#[test]
fn what_the_repository_says_of_a_line_comes_before_what_sprag_knows() {
    let matchers = json!({"problemMatcher": [{"owner": "o", "severity": "notice", "pattern": [
        {"regexp": "^(.+\\.c):(\\d+):\\d+: error: (.*)$", "file": 1, "line": 2, "message": 3}
    ]}]});
    assert_eq!(
        found(&matchers, "a.c:1:2: error: m\n"),
        ["a.c:1:- Note - matcher | m"]
    );
}

#[test]
fn a_matcher_that_cannot_be_used_is_named() {
    let pattern = |regexp: &str| json!({"regexp": regexp, "message": 1});
    let matcher =
        |owner: &str, patterns: serde_json::Value| json!({"owner": owner, "pattern": patterns});
    let long = "x".repeat(5_000);
    let text = json!({"problemMatcher": [
        matcher("ahead", json!([pattern("(?=a)(b)")])),
        matcher("back", json!([pattern(r"(a)\1")])),
        matcher("groups", json!([{"regexp": "(a)", "message": 1, "line": 2}])),
        matcher("", json!([])),
        matcher("mute", json!([{"regexp": "(a)", "file": 1}])),
        matcher("loop", json!([{"regexp": "(a)", "message": 1, "loop": true}])),
        matcher("long", json!([pattern(&long)])),
        matcher("huge", json!([pattern("((a{900}){900})")])),
        json!({"owner": "loud", "severity": "fatality", "pattern": [pattern("(a)")]}),
        matcher("good", json!([pattern("^(a)$")])),
    ]});
    let read = read_matchers("m.json", text.to_string().as_bytes());
    assert_eq!(read.matchers.len(), 1);
    let expected = [
        "`ahead` is ignored: pattern 1: the regexp `(?=a)(b)` cannot be used: look-around, including look-ahead and look-behind, is not supported",
        r"`back` is ignored: pattern 1: the regexp `(a)\1` cannot be used: backreferences are not supported",
        "`groups` is ignored: pattern 1: `line` is group 2, which its regexp does not have",
        "number 4 is ignored: it has no pattern",
        "`mute` is ignored: no pattern has a group for `message`",
        "`loop` is ignored: only the last of several patterns may have `loop`",
        "`long` is ignored: pattern 1: its regexp is longer than 4000 bytes",
        "`huge` is ignored: pattern 1: the regexp `((a{900}){900})` cannot be used: Compiled regex exceeds size limit of 1048576 bytes.",
        "`loud` is ignored: its severity must be error, warning or notice",
    ]
    .map(|why| format!("m.json: the problem matcher {why}"));
    assert_eq!(read.warnings, expected);
}

#[test]
fn a_file_that_is_none_gives_one_warning() {
    for (bytes, why) in [
        (&b"{"[..], "EOF while parsing an object at line 1 column 1"),
        (b"{}", "missing field `problemMatcher` at line 1 column 2"),
        (
            &[b' '; 300_000],
            "it has 300000 bytes, but at most 262144 are read",
        ),
    ] {
        let read = read_matchers("m.json", bytes);
        assert!(read.matchers.is_empty());
        let expected = format!("m.json: these problem matchers are ignored: {why}");
        assert_eq!(read.warnings, [expected]);
    }
}
