use super::*;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;

const CANARY: &str = "c4nary/+_\"<&>%-Zz9~ü";

fn redactor() -> Redactor {
    Redactor::new([CANARY, "short", ""])
}

proptest! {
    #[test]
    fn every_text_with_a_token_may_hold_one(
        words in prop::collection::vec(
            prop::sample::select(&[
                "ghp_", "gh", "_", "github_pat_", "glpat-", "sk-", "sk-ant-", "sk-or-", "AKIA", "ASIA", "AIza",
                "xoxb-", "npm_", "hf_", "eyJ", "-----BEGIN ", "RSA PRIVATE KEY-----", "https://", "user", ":",
                "@", ".", " ", "é", "task", "AAAAAAAAAAAAAAAA", "abcdefghijklmnopqrstuvwxyz0123456789",
            ][..]),
            1..8,
        )
    ) {
        static PLAIN: Pattern = Pattern::new(TOKEN_FORMS);
        let text = words.concat();
        prop_assert!(!PLAIN.is_match(&text) || may_hold_token(&text), "{text}");
    }
}

#[test]
fn ordinary_text_holds_no_beginning_of_a_token() {
    for text in [
        "Complete task-12 through GitHub",
        "desk-top",
        "https://example.org",
        "a@b",
    ] {
        assert!(!may_hold_token(text), "{text}");
    }
}

#[test]
fn an_encoding_that_is_wrapped_into_lines_is_gone() {
    let digests = (0..4).map(|number: u32| blake3::hash(&number.to_le_bytes()).to_hex());
    let key: String = digests.map(|hex| hex.to_string()).collect();
    let key = key.get(..108).unwrap();
    let redactor = Redactor::new([key]);
    for before in ["", "x", "xy", "a long text "] {
        let text = format!("{before}{key}\n");
        for encoded in [STANDARD_NO_PAD.encode(&text), hexadecimal(&text)] {
            for width in [60, 64, 76] {
                let lines: Vec<&[u8]> = encoded.as_bytes().chunks(width).collect();
                let wrapped = String::from_utf8(lines.join(b"\n".as_slice())).unwrap();
                let shown = redactor.redact(&wrapped);
                let secret = encoded.get(20..encoded.len() - 8).unwrap().as_bytes();
                let longest = PIECE + STEP;
                for part in secret.windows(longest) {
                    let part = std::str::from_utf8(part).unwrap();
                    assert!(!shown.contains(part), "{width}: {part} in {shown}");
                }
                assert!(shown.matches(MASK).count() >= 2, "{shown}");
            }
        }
    }
}

#[test]
fn every_usual_form_of_a_secret_is_gone() {
    let percent = utf8_percent_encode(CANARY, NON_ALPHANUMERIC).to_string();
    let json = Value::from(CANARY).to_string();
    let nested = Value::from(json.trim_matches('"')).to_string();
    let html = CANARY.replace('&', "&amp;");
    let html = html.replace('<', "&lt;").replace('>', "&gt;");
    let escaped = [
        percent.to_lowercase().replace("zz", "Zz"),
        percent,
        CANARY.replace('%', "%25").replace('ü', "%C3%BC"),
        json.trim_matches('"').replace('/', "\\/"),
        nested.trim_matches('"').to_owned(),
        html.replace('_', "\\_").replace('~', "\\~"),
        html,
    ];
    for form in forms(CANARY).into_iter().chain(escaped) {
        let text = format!("before {form} after");
        assert_eq!(redactor().redact(&text), "before *** after", "{form}");
    }
    assert_eq!(redactor().redact("a short word"), "a short word");
    assert!(!format!("{:?}", redactor()).contains("c4nary"));
}

#[test]
fn a_secret_is_gone_whatever_interrupts_or_escapes_it() {
    let secret = "k3y-0f/the+job=&<x>";
    let redactor = Redactor::new([secret]);
    let each = |form: &dyn Fn(char) -> String| -> String { secret.chars().map(form).collect() };
    let forms = [
        each(&|c| format!("\\u{:04x}", u32::from(c))),
        each(&|c| format!("\\\\u{:04X}", u32::from(c))),
        each(&|c| format!("%{:02x}", u32::from(c))),
        each(&|c| format!("={:02X}", u32::from(c))),
        each(&|c| format!("&#{};", u32::from(c))),
        each(&|c| format!("&#x{:x};", u32::from(c))),
        each(&|c| format!("\\x{:02x}", u32::from(c))),
        each(&|c| format!("{c}\u{200b}")),
        each(&|c| format!("{c}\0")),
        each(&|c| format!("\u{1b}[1;31m{c}\u{1b}[0m")),
        each(&|c| format!("\\u001b[31m{c}\\033[m")),
        each(&|c| format!("{c}\u{1b}]8;;https://a.example\u{1b}\\")),
        each(&|c| format!("{c}\\n")),
        "k3y-0f/the\r\n    +job=&<x>".to_owned(),
        "k3y-0f=\n/the+job=3D&<x>".replace("=\n", "\n"),
        "k3y-0f/the \n\n +job=&amp;&lt;x&gt;".to_owned(),
        format!(
            "{}\n {}",
            &STANDARD_NO_PAD.encode(secret)[..9],
            &STANDARD_NO_PAD.encode(secret)[9..]
        ),
    ];
    for form in forms {
        let shown = redactor.redact(&form).into_owned();
        let left: String = shown.chars().filter(char::is_ascii_alphanumeric).collect();
        assert!(
            shown.contains(MASK) && left.len() <= 24 && !left.contains(['j', 'y']),
            "{form:?}: {shown:?}"
        );
        let told = redactor
            .redact(&format!("before\n{form}\nafter"))
            .into_owned();
        assert!(
            told.starts_with("before\n") && told.ends_with("\nafter"),
            "{told:?}"
        );
    }
    let text = "a list = [\n  1,\n  2\n]\u{1b}[0m 100% & more\n";
    assert_eq!(redactor.redact(text), text);
    assert_eq!(redactor.redact("k3y-0f/the\n+job"), "k3y-0f/the\n+job");
}

#[test]
fn base64_is_found_wherever_the_secret_stands_in_it() {
    for before in 0..9 {
        for after in 0..4 {
            let text = format!("{}{CANARY}{}", "x".repeat(before), "y".repeat(after));
            for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                let redacted = redactor().redact(&encoded).into_owned();
                assert!(redacted.contains(MASK), "{text}");
                assert!(redacted.len() <= encoded.len() - CANARY.len(), "{redacted}");
            }
        }
    }
}

#[test]
fn a_secret_that_a_program_prints_as_bytes_or_in_another_base_is_gone() {
    // From `base32`, `iconv -t UTF-16LE | base64`, `xxd`, `<Buffer>`, `{:?}` and others, with words around the secret.
    for told in [
        "MEQGWM3ZFVYGYZLBONSS2NBSEB5A====",
        "nmzxsllqnrswc43ffu2de===",
        "awAzAHkALQBwAGwAZQBhAHMAZQAtADQAMgA=",
        "6b:33:79:2d:70:6c:65:61:73:65:2d:34:32",
        "<Buffer 6b 33 79 2d 70 6c 65 61 73 65 2d 34 32>",
        "6B-33-79-2D-70-6C-65-61-73-65-2D-34-32",
        "0x6b, 0x33, 0x79, 0x2d, 0x70, 0x6c, 0x65, 0x61, 0x73, 0x65, 0x2d, 0x34, 0x32",
        "[107, 51, 121, 45, 112, 108, 101, 97, 115, 101, 45, 52, 50]",
        "{\"data\":[107,51,121,45,112,108,101,97,115,101,45,52,50]}",
        "[\n  107,\n  51,\n  121,\n  45,\n  112,\n  108,\n  101,\n  97,\n  115,\n  101,\n  45,\n  52,\n  50\n]",
        "[107 51 121 45 112 108 101 97 115 101 45 52 50]",
    ] {
        let shown = Redactor::new(["k3y-please-42"]).redact(told).into_owned();
        assert!(shown.contains(MASK), "{told}");
        assert!(shown.len() <= told.len() / 2, "{told}: {shown}");
    }
    let text = "6b:33:79:2d:70:6c and [107, 51, 121, 45]";
    assert_eq!(Redactor::new(["k3y-please-42"]).redact(text), text);
}

#[test]
fn the_lines_of_a_long_secret_are_secrets() {
    let key = "first line of the key\nsecond line of the key\n}";
    let redactor = Redactor::new([key]);
    assert_eq!(redactor.redact("> second line of the key }"), "> *** }");
    assert_eq!(redactor.redact(&format!("{key}{key}")), MASK);
}

#[test]
fn what_looks_like_a_token_is_gone() {
    let letters = "aB3".repeat(20);
    for token in [
        format!("ghp_{letters}"),
        format!("ghs_12_eyJ{letters}.eyJ{letters}.{letters}"),
        format!("github_pat_{letters}"),
        format!("sk-{letters}"),
        format!("sk-ant-api03-{letters}"),
        format!("AKIA{}", "ABCD".repeat(4)),
        format!("xoxb-12-{letters}"),
        format!("eyJ{letters}.eyJ{letters}.{letters}"),
        format!("-----BEGIN RSA PRIVATE KEY-----\n{letters}\n-----END RSA PRIVATE KEY-----"),
        format!("-----BEGIN PRIVATE KEY-----\n{letters}"),
    ] {
        let redacted = Redactor::default().redact(&token).into_owned();
        assert_eq!(redacted, MASK, "{token}");
    }
    assert_eq!(
        Redactor::default().redact("https://x-access-token:abc@github.com/o/r"),
        "https://x-access-token:***@github.com/o/r"
    );
    for text in [
        "task-implementation-of-the-whole-thing-and-more",
        "12:30 a@b.c",
        "sk-learn",
    ] {
        assert_eq!(Redactor::default().redact(text), text);
    }
}

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Told {
    Message {
        text: String,
        task: String,
        count: u64,
    },
    Cancelled {
        lines: Vec<Option<String>>,
    },
}

#[test]
fn every_text_of_a_value_is_redacted_whatever_its_field() {
    let secret = format!("a {CANARY}");
    let told = Told::Message {
        text: secret.clone(),
        task: secret.clone(),
        count: 12,
    };
    let expected = Told::Message {
        text: "a ***".into(),
        task: "a ***".into(),
        count: 12,
    };
    assert_eq!(*redactor().redacted(&told).unwrap(), expected);
    let told = Told::Cancelled {
        lines: vec![None, Some(secret)],
    };
    let expected = Told::Cancelled {
        lines: vec![None, Some("a ***".into())],
    };
    assert_eq!(*redactor().redacted(&told).unwrap(), expected);
    let mut value = serde_json::json!({"a": [{CANARY: 1}], "b": "c"});
    assert!(redactor().redact_json(&mut value));
    assert_eq!(value, serde_json::json!({"a": [{"***": 1}], "b": "c"}));
    assert!(!redactor().redact_json(&mut value));
}

#[test]
fn a_secret_that_is_a_word_of_the_format_hides_no_event() {
    let redactor = Redactor::new(["cancelled"]);
    let told = Told::Cancelled {
        lines: vec![Some("it was cancelled".into())],
    };
    let expected = Told::Cancelled {
        lines: vec![Some("it was ***".into())],
    };
    assert_eq!(*redactor.redacted(&told).unwrap(), expected);
}

#[test]
fn bytes_that_are_no_text_stay_unless_they_hold_a_secret() {
    assert_eq!(*redactor().redact_bytes(b"\xff\0x"), *b"\xff\0x");
    let told = redactor()
        .redact_bytes(format!("{CANARY}\0").as_bytes())
        .into_owned();
    assert_eq!(told, b"***\0");
}

proptest! {
    #[test]
    fn nothing_of_a_secret_stays(secret in "[!-~]{8,40}", before in ".{0,30}", after in ".{0,30}") {
        let redactor = Redactor::new([secret.as_str()]);
        let text = format!("{before}{secret}{after}");
        prop_assert!(!redactor.redact(&text).contains(&secret));
        let twice = redactor.redact(&text).into_owned();
        prop_assert!(!redactor.redact(&twice).contains(&secret));
    }
}
