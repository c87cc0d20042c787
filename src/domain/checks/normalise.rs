//! Removes the differences between two runs of the same failure.

use crate::pattern::{Pattern, group};
use std::borrow::Cow;

/// `line` without the parts that change from run to run: ids, times, durations, addresses, temporary paths,
/// ports, line numbers. `None` if the line says nothing about the failure (progress, passing tests, runtime
/// frames).
///
/// On a line that compares values, bare numbers, dates and hexadecimal text stay, because they are what the
/// test is about.
pub(super) fn line(line: &str) -> Option<String> {
    static NOISE: Pattern = Pattern::new(
        r"(?x)^\s*(?:
          (?:Compiling|Checking|Downloading|Downloaded|Finished|Running|Fresh|Blocking|Updating|Locking|Adding|Starting|Documenting|Building)\s
        | test\ .+\ \.\.\.\ (?:ok|ignored)
        | running\ \d+\ tests?$
        | PASS\b | (?:ok\s|ok$) | [✓✔√]\s | ===\ (?:RUN|PAUSE|CONT|NAME|PASS)\b | ---\ (?:PASS|SKIP):
        | (?:\S+\.py\ )?[.FEsxX]+\s*(?:\[\s*\d+%\])?$
        | \S+::\S+\ (?:PASSED|SKIPPED|XFAIL)
        | \[?[\#=>.\s-]{3,}\]?\s*\d+%.*$
        | \d{1,3}%(?:\s|$)
        | (?:Start\ at|Duration|Time:|Snapshots:|Nextest\ run\ ID|duration_ms)\b
        | \#\ duration_ms\b | ℹ\ duration_ms\b
        | at\ /rustc/ | \d+:\s+(?:__rustc|core|std|alloc|test)::
        | at\ .*\(?(?:node:internal|node:async_hooks|.*/node_modules/)
        | [-=_~^|+*\#\s]*$
        )",
    );
    if NOISE.is_match(line) {
        return None;
    }
    let compares = is_comparison(line);
    let mut text = volatile_ids(line);
    text = times_in_context(&text).into_owned();
    if !compares {
        text = bare_values(&text).into_owned();
    }
    text = places(&text).into_owned();
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!folded.is_empty()).then_some(folded)
}

/// The name of a test without the parts that change from run to run. Dates and numbers stay, because they
/// distinguish the cases of one test.
pub(super) fn name(name: &str) -> String {
    let text = volatile_ids(name);
    let text = places(&text);
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if folded.is_empty() {
        name.to_owned()
    } else {
        folded
    }
}

fn is_comparison(line: &str) -> bool {
    static COMPARES: Pattern = Pattern::new(
        r"(?i)\b(?:left|right|expected|expect|actual|received|got|want|assert\w*|should|equals?)\b|[!=]==?|^\s*[-+] |^E ",
    );
    COMPARES.is_match(line)
}

/// Parts that are random wherever they occur.
fn volatile_ids(line: &str) -> String {
    static UUID: Pattern =
        Pattern::new(r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b");
    static ADDRESS: Pattern = Pattern::new(r"\b0x[0-9a-fA-F]{6,16}\b");
    static TEMPORARY: Pattern = Pattern::new(
        r#"(?:/private)?(?:/tmp|/var/tmp|/var/folders|/dev/shm)((?:/[^\s:;'"`()\[\]<>,|]+)+)"#,
    );
    static WINDOWS: Pattern = Pattern::new(
        r#"(?i)[A-Z]:[\\/]Users[\\/][^\\/]+[\\/]AppData[\\/]Local[\\/]Temp([^\s:;'"`()<>,|]*)"#,
    );
    static BUILD_HASH: Pattern = Pattern::new(r"([A-Za-z_]\w*)-([0-9a-f]{8,16})\b");
    static THREAD: Pattern = Pattern::new(r"(thread '.*?') \(\d+\)");
    static PROCESS: Pattern = Pattern::new(
        r"(?i)\b(pid|ppid|tid|process|thread|goroutine|ThreadId|worker)([ =:#(\[]{1,2})\d+",
    );
    static SANITIZER: Pattern = Pattern::new(r"^==\d+==");
    static PORT: Pattern = Pattern::new(r"(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):\d{2,5}\b");
    static SEED: Pattern = Pattern::new(r"(?i)\b((?:random(?:ized)? with )?seed)([ =:]+)\d+");
    let text = UUID.replace_all(line, "<uuid>");
    let text = ADDRESS.replace_all(&text, "<address>");
    let text = TEMPORARY.replace_all(&text, |found: &regex::Captures<'_>| {
        temporary(group(found, 1))
    });
    let text = WINDOWS.replace_all(&text, "<tmp>");
    let text = BUILD_HASH.replace_all(&text, |found: &regex::Captures<'_>| {
        if is_mixed(group(found, 2)) {
            format!("{}-<hash>", group(found, 1))
        } else {
            group(found, 0).to_owned()
        }
    });
    let text = THREAD.replace_all(&text, "$1");
    let text = PROCESS.replace_all(&text, "$1$2<id>");
    let text = SANITIZER.replace_all(&text, "==<id>==");
    let text = PORT.replace_all(&text, "$1:<port>");
    SEED.replace_all(&text, "$1$2<seed>").into_owned()
}

/// Of a path in a temporary directory, only the file's name is kept; directly below the directory, the name
/// itself is the random part.
fn temporary(below: &str) -> String {
    let mut parts = below.trim_start_matches('/').rsplitn(2, '/');
    match (parts.next(), parts.next()) {
        (Some(name), Some(_)) => format!("<tmp>/{name}"),
        _ => "<tmp>".to_owned(),
    }
}

/// Times whose context shows that they are about the run rather than the code.
fn times_in_context(line: &str) -> Cow<'_, str> {
    static STAMP: Pattern = Pattern::new(
        r"^(\s*\[?)(?:\d{4}[-/]\d{2}[-/]\d{2}[T ])?\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?\b",
    );
    static MOMENT: Pattern = Pattern::new(
        r"(?i)\b(at|on|time|ts|timestamp|date)(\s*[=:]?\s*)\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|\s?[+-]\d{2}:?\d{2}\b)?",
    );
    static TOOK: Pattern = Pattern::new(
        r"(?i)\b(in|took|after|finished in|elapsed:?|duration:?|time:?)\s+(?:[\d.]+\s?(?:ns|µs|us|ms|s|secs?|seconds?|m|min|minutes?|h)\b[ ,]*)+(?:\(\d+:\d{2}:\d{2}\))?",
    );
    static PARENTHESISED: Pattern =
        Pattern::new(r"[(\[]\s*(?:[\d.]+\s?(?:ns|µs|us|ms|s|secs?|seconds?|m|min|h)\s*)+[)\]]");
    static COUNTER: Pattern = Pattern::new(r"[(\[]\s*\d+/\d+\s*[)\]]|\[\s*\d+%\]");
    if !line.contains(|c: char| c.is_ascii_digit()) {
        return Cow::Borrowed(line);
    }
    let text = STAMP.replace_all(line, "$1<time>");
    let text = MOMENT.replace_all(&text, "$1$2<time>");
    let text = TOOK.replace_all(&text, "$1 <duration> ");
    let text = PARENTHESISED.replace_all(&text, "(<duration>)");
    Cow::Owned(COUNTER.replace_all(&text, "").into_owned())
}

fn bare_values(line: &str) -> Cow<'_, str> {
    static DATE: Pattern = Pattern::new(
        r"\b\d{4}[-/]\d{2}[-/]\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?:Z|\s?[+-]\d{2}:?\d{2})?)?",
    );
    static TIME: Pattern = Pattern::new(r"\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b");
    static DURATION: Pattern =
        Pattern::new(r"\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|min|minutes?)\b");
    static HEX: Pattern = Pattern::new(r"\b[0-9a-f]{7,64}\b");
    static EPOCH: Pattern = Pattern::new(r"\b1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b");
    static PORT: Pattern = Pattern::new(r"(?i)\b(port:?) \d{2,5}\b");
    static ID: Pattern = Pattern::new(r"(?i)\b(\w*id)([ =:#]{1,2})\d{5,}\b");
    if !line.contains(|c: char| c.is_ascii_digit()) {
        return Cow::Borrowed(line);
    }
    let text = DATE.replace_all(line, "<date>");
    let text = TIME.replace_all(&text, "<time>");
    let text = DURATION.replace_all(&text, "<duration>");
    let text = HEX.replace_all(&text, |found: &regex::Captures<'_>| {
        let id = group(found, 0);
        if is_mixed(id) {
            "<hex>".to_owned()
        } else {
            id.to_owned()
        }
    });
    let text = EPOCH.replace_all(&text, "<time>");
    let text = ID.replace_all(&text, "$1$2<id>");
    Cow::Owned(PORT.replace_all(&text, "$1 <port>").into_owned())
}

/// Line numbers, which change when code above them changes although the failure is the same.
fn places(line: &str) -> Cow<'_, str> {
    static PLACE: Pattern = Pattern::new(r"(\.[A-Za-z]\w{0,9})(?::\d+(?::\d+)?\b|\(\d+,\d+\))");
    static LINE: Pattern = Pattern::new(r"\b((?i:line)) \d+\b");
    static SOURCE: Pattern = Pattern::new(r"^\s*>?\s*\d+\s*\|");
    static OFFSET: Pattern = Pattern::new(r" \+0x[0-9a-f]+$");
    let text = PLACE.replace_all(line, "$1");
    let text = LINE.replace_all(&text, "$1 <n>");
    let text = SOURCE.replace_all(&text, "|");
    Cow::Owned(OFFSET.replace_all(&text, "").into_owned())
}

/// Whether a text has both digits and letters, so that it is neither a number nor a word.
fn is_mixed(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit()) && text.contains(|c: char| c.is_ascii_alphabetic())
}
