//! Signals: what is worth a look in work that passes its checks. They are facts about changed lines and no verdict:
//! honest work has some of them, too.

use super::judges::is_product_source;
use super::tests_changed::is_test;
use crate::pattern::Pattern;
use crate::text::{cap_chars, file_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The kind of a signal.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// A comment or attribute that turns off a finding of a linter or a type checker.
    Suppression,
    /// Product code that names a test tool, or asks whether it is being tested.
    TestDetection,
    /// Product code that ends its process with success.
    EarlyExit,
    /// Code that says of itself that it is not implemented.
    Stub,
    /// Product code with two or more literals of the tests.
    TestLiterals,
    /// An error that is caught and dropped.
    SwallowedError,
    /// Code that replaces a part of an object that it does not own.
    Patched,
    /// A test that is skipped, or that runs alone.
    Skip,
    /// A test file with fewer assertions than before.
    FewerAssertions,
    /// A test that replaces code that the work changed.
    MockOfWork,
}

impl SignalKind {
    /// The signal in words.
    pub const fn says(self) -> &'static str {
        match self {
            Self::Suppression => "turns off a finding",
            Self::TestDetection => "names a test tool in product code",
            Self::EarlyExit => "ends the process with success",
            Self::Stub => "is not implemented",
            Self::TestLiterals => "has literals of the tests",
            Self::SwallowedError => "drops an error",
            Self::Patched => "replaces a part of a foreign object",
            Self::Skip => "skips tests",
            Self::FewerAssertions => "has fewer assertions than before",
            Self::MockOfWork => "replaces changed code in a test",
        }
    }
}

/// Something that is worth a look.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Signal {
    /// The kind.
    pub kind: SignalKind,
    /// The changed file, relative to the work tree.
    pub path: String,
    /// The line in it, from 1.
    pub line: u32,
    /// That line.
    pub text: String,
}

impl Signal {
    /// The place and the signal in words.
    pub fn says(&self) -> String {
        format!("{}:{} {}", self.path, self.line, self.kind.says())
    }
}

/// A changed file.
pub struct ChangedFile {
    /// Its path, relative to the work tree.
    pub path: String,
    /// The content at the start of the task; empty for a new file.
    pub old: String,
    /// The content now.
    pub new: String,
}

/// The most signals of a task.
const MAX_SIGNALS: usize = 50;
const MAX_TEXT: usize = 200;
/// The number of lines that a literal may be away from another one.
const NEAR: u32 = 3;

static SUPPRESSION: Pattern = Pattern::new(
    r"(?x)\#\s*(?:(?:flake8:\s*|ruff:\s*)?noqa\b|isort:\s*skip|type:\s*ignore|pyright:\s*ignore|pylint:\s*disable|mypy:\s*ignore|nosec\b|pragma:\s*no\ cover|rubocop:disable|shellcheck\s+disable)
    | @ts-(?:ignore|nocheck|expect-error) | (?:eslint|tslint|stylelint|oxlint)-disable | (?:biome|deno-lint)-ignore | (?:istanbul|c8|v8)\ ignore
    | \#!?\[(?:allow|expect|cfg_attr\([^\]]*allow)\b | //\s*nolint\b | \bNOLINT | @SuppressWarnings | @Suppress\( | @phpstan-ignore | phpcs:ignore | \#pragma\ (?:warning\ disable|GCC\ diagnostic\ ignored)
    | @(?:typing\.)?no_type_check\b | (?:^|[^:]):\s*any\b(?:\[\])?\s*[,;)=|{] | \bas\s+(?:any|unknown\s+as)\b",
);
static TEST_DETECTION: Pattern = Pattern::new(
    r"(?x)\b(?:PYTEST_CURRENT_TEST|JEST_WORKER_ID|NODE_TEST_CONTEXT|HARNESS_ACTIVE|VITEST(?:_WORKER_ID)?|RUST_TEST_THREADS|PHPUNIT_\w+|CYPRESS|PLAYWRIGHT)\b
    | \b(?:pytest|unittest|_pytest|vitest|jasmine|rspec|minitest|phpunit)\b | \b(?:from|import|require|modules)\b.*\bmocha\b | \bTest2?::\w | \bjest\b | \bjest\.fn\b
    | NODE_ENV\W{1,12}test\b | RAILS_ENV\W{1,12}test\b | \btesting\.Testing\(\) | \bcfg!\(test\) | \bcfg\(not\(test\)\) | \b_?is_?[Tt]est(?:ing|_?[Mm]ode)?\(
    | \b(?:inspect\.stack|sys\._getframe|traceback\.extract_stack)\( | \btest.*sys\.argv\[0\]|sys\.argv\[0\].*test
    | \btypeof\s+(?:expect|describe)\b | \bthread::current\(\)\.name\(\)\s*==",
);
static EARLY_EXIT: Pattern = Pattern::new(
    r"(?x)\b(?:sys\.exit|os\._exit|process\.exit|Deno\.exit|os\.Exit|System\.exit|exitProcess|process::exit|syscall\.Exit|_exit)\(\s*0?\s*\) | (?:^|[^.\w])quit\(\s*0?\s*\) | \btrap\s+['\x22]exit(?:\s+0)?\b
    | (?:^|[;&|{]\s*)exit(?:\s+0|\s*\(\s*0?\s*\))?\s*;?\s*$ | \bprocess\.exitCode\s*=\s*0\b",
);
static STUB: Pattern = Pattern::new(
    r"(?xi)\b(?:todo|unimplemented)!\( | \bNotImplemented(?:Error|Exception)?\b | (?-i:\b[Nn]ot\ (?:yet\ )?implemented) | \b(?:throw|raise|panic!|error)\b.*\bnot\ (?:yet\ )?implemented | \bTODO\(\)
    | \bUnsupportedOperationException\(\s*\) | \bfatalError\(",
);
static SWALLOWED: Pattern = Pattern::new(
    r"(?x)^\s*except\b[^:]*:\s*(?:pass|\.\.\.|continue|return(?:\s+None)?)\s*$ | \bcatch\b\s*(?:\([^()]*\)\s*)?\{\s*\} | \.catch\(\s*(?:\(\w*\)|\w+)\s*=>\s*(?:\{\s*\}|null|undefined)\s*\)
    | \|\|\s*(?:true|:)\s*(?:$|[;)]) | \brescue\s+(?:nil|false|true)\b | \bcontextlib\.suppress\( | ^\s*set\s+\+e\b | \bif\s+err\s*!=\s*nil\s*\{\s*\}",
);
static BEGINS_HANDLER: Pattern =
    Pattern::new(r"^\s*except\b[^:]*:\s*$|\bcatch\b\s*(?:\([^()]*\)\s*)?\{\s*$|^\s*rescue\b[^;]*$");
static ENDS_HANDLER: Pattern = Pattern::new(r"^\s*(?:pass|\.\.\.|continue|\}|end)\s*;?$");
static PATCHED: Pattern = Pattern::new(
    r"(?x)\b[A-Z]\w*\.prototype\.\w+\s*= | \bObject\.(?:defineProperty|assign)\(\s*(?:\w+\.prototype|globalThis|global|window)\b | \b(?:globalThis|global|window)\.\w+\s*=[^=]
    | (?:^|[^.\w])(?:builtins|sys|os|time|datetime|random|unittest|pytest|assert)\.\w+\s*=[^=]
    | \brequire\([^)]*\)(?:\.\w+)+\s*=[^=] | \bObject\.assign\(\s*require\( | \bsetattr\(\s*(?:[a-z]\w*\s*,\s*['\x22]__|builtins|sys\b|[A-Z]) | \bsys\.modules\[ | \b__eq__\s*=[^=]
    | ^\s*class\s+(?:String|Integer|Float|Array|Hash|Object|NilClass|Kernel)\s*$ | \bmonkey_?patch | \bdef\s+__eq__\b.*\breturn\s+True\b | ^\s*(?:function\s+)?(?:test|exit)\s*\(\)\s*\{",
);
static SKIP: Pattern = Pattern::new(
    r"(?x)@(?:pytest\.mark\.|unittest\.)?(?:skip|skipif|skipIf|skipUnless|xfail|expectedFailure)\b | \b(?:pytest|self|unittest)\.(?:skip|skipTest|xfail|importorskip)\(
    | \b(?:it|test|describe|context|suite)\.(?:skip|only|todo|fixme|failing)\b | \b(?:xit|xtest|xdescribe|xcontext|fit|fdescribe)\( | \bt\.Skip(?:f|Now)?\( | \#\[ignore\b
    | @(?:Disabled|Ignore)\b | \bmarkTest(?:Skipped|Incomplete)\( | ^\s*(?:pending|skip)\b\s*(?:$|[^\s=+\-.,:\])]) | \{\s*(?:skip|todo):\s*(?:true|['\x22]) | \bt\.(?:skip|todo)\( | \[(?:Ignore|Explicit)\b | \bSkip\s*=\s*\x22 | \bGTEST_SKIP\(",
);
static ASSERTION: Pattern = Pattern::new(
    r"\b(?:assert\w*|expect|should|verify|require|ASSERT_\w+|EXPECT_\w+|XCTAssert\w*|refute\w*|must_\w+)\b\s*[!(.:{ ]|\bt\.(?:Error|Fatal|is|true|deepEqual)f?\(|\b(?:not)?(?:[dD]eep)?(?:[sS]trict)?[eE]qual\(|\b(?:ok|throws|rejects)\(",
);
static IMPORT: Pattern = Pattern::new(
    r"^\s*(?:import\b|from\b|use\b|(?:const|let|var)\b[^=]*=\s*require\b|require\s*\(?['\x22][^'\x22]*['\x22]\)?;?\s*$)",
);
static MOCK: Pattern = Pattern::new(
    r#"\b(?:patch|mock|doMock|spyOn|stub|replace|importMock)(?:\.object)?\(\s*["'`]?([\w@./-]+)"#,
);
static LITERAL: Pattern =
    Pattern::new(r#""([^"\\\n]{0,80})"|'([^'\\\n]{0,80})'|(?:^|[^\w.])(-?\d+\.\d+|\d{3,})\b"#);
static COMMENT: Pattern = Pattern::new(r#"^\s*(?:#(?:[^!\[]|$)|//|/\*|\*|--|;|<!--|"""|''')"#);

/// The signals of these changed files, in their order. `tests` gives texts of tests about them, and is asked only if two
/// literals were added to the product.
pub fn signals(files: &[ChangedFile], tests: impl FnOnce() -> Vec<String>) -> Vec<Signal> {
    let product = || files.iter().filter(|file| is_product_source(&file.path));
    let has_literals = |file: &ChangedFile| {
        let added = added(&file.old, &file.new).into_iter();
        let new: BTreeSet<&str> = added.flat_map(|(_, line)| literals(line)).collect();
        new.len() > 1
    };
    let are_asked = product().any(has_literals);
    let tests = are_asked.then(tests).unwrap_or_default();
    let literals: BTreeSet<&str> = tests.iter().flat_map(|text| literals(text)).collect();
    let stems: Vec<&str> = product().map(|file| stem(&file.path)).collect();
    let mut found = Vec::new();
    for file in files {
        let code = without_docstrings(file);
        let added = added(&file.old, &code);
        if is_test(&file.path) {
            of_test(file, &added, &stems, &mut found);
        } else if is_product_source(&file.path) {
            of_product(file, &added, &literals, &mut found);
        }
    }
    found.truncate(MAX_SIGNALS);
    found
}

/// The new text with empty lines for strings of Python that are statements by themselves.
fn without_docstrings(file: &ChangedFile) -> Cow<'_, str> {
    static STRING: Pattern = Pattern::new(r#"(?sm)(^[ \t]*)?(?:""".*?"""|'''.*?''')"#);
    if !file.path.ends_with(".py") {
        return Cow::Borrowed(&file.new);
    }
    STRING.replace_all(&file.new, |found: &regex::Captures<'_>| {
        match found.get(1) {
            Some(_) => "\n".repeat(found[0].matches('\n').count()),
            None => found[0].to_owned(),
        }
    })
}

/// The lines that are in the new text and not in the old one, with their numbers. A line that only moved is none.
fn added<'t>(old: &str, new: &'t str) -> Vec<(u32, &'t str)> {
    let mut before: BTreeMap<&str, usize> = BTreeMap::new();
    for line in old.lines() {
        *before.entry(line.trim()).or_default() += 1;
    }
    let mut is_new = |line: &str| match before.get_mut(line.trim()) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => !line.trim().is_empty(),
    };
    (1..)
        .zip(new.lines())
        .filter(|(_, line)| is_new(line))
        .collect()
}

fn of_product(
    file: &ChangedFile,
    added: &[(u32, &str)],
    literals_of_tests: &BTreeSet<&str>,
    found: &mut Vec<Signal>,
) {
    use SignalKind as K;
    let mut push = |kind, line, text: &str| found.push(signal(kind, file, line, text));
    for (index, (number, line)) in added.iter().enumerate() {
        // Suppressions are comments, and the others count in code alone.
        let is_code = !COMMENT.is_match(line);
        let next = added.get(index + 1).filter(|(next, _)| *next == number + 1);
        let ends = |(_, next): &(u32, &str)| ENDS_HANDLER.is_match(next);
        let is_dropped = BEGINS_HANDLER.is_match(line) && next.is_some_and(ends);
        for (kind, is_found) in [
            (K::Suppression, SUPPRESSION.is_match(line)),
            (K::TestDetection, is_code && TEST_DETECTION.is_match(line)),
            (K::EarlyExit, is_code && EARLY_EXIT.is_match(line)),
            (K::Stub, is_code && STUB.is_match(line)),
            (
                K::SwallowedError,
                is_code && (SWALLOWED.is_match(line) || is_dropped),
            ),
            (K::Patched, is_code && PATCHED.is_match(line)),
        ] {
            if is_found {
                push(kind, *number, line);
            }
        }
    }
    let known: BTreeSet<&str> = literals(&file.old).collect();
    let mut near: Vec<(u32, &str)> = Vec::new();
    for (number, line) in added.iter().filter(|(_, line)| !COMMENT.is_match(line)) {
        near.retain(|(at, _)| number - at <= NEAR);
        let of_tests = literals(line)
            .filter(|literal| literals_of_tests.contains(literal) && !known.contains(literal));
        near.extend(of_tests.map(|literal| (*number, literal)));
        let different: BTreeSet<&str> = near.iter().map(|(_, literal)| *literal).collect();
        if different.len() > 1 {
            push(K::TestLiterals, *number, line);
            near.clear();
        }
    }
}

fn of_test(file: &ChangedFile, added: &[(u32, &str)], work: &[&str], found: &mut Vec<Signal>) {
    use SignalKind as K;
    let is_work = |of: &str| of.split(['.', '/', ':']).any(|part| work.contains(&part));
    for (number, line) in added {
        let mocks = MOCK
            .captures(line)
            .is_some_and(|mocked| is_work(&mocked[1]));
        for (kind, is_found) in [
            (K::Suppression, SUPPRESSION.is_match(line)),
            (K::Skip, SKIP.is_match(line)),
            (K::MockOfWork, mocks),
        ] {
            found.extend(is_found.then(|| signal(kind, file, *number, line)));
        }
    }
    let is_assertion = |line: &&str| ASSERTION.is_match(line) && !IMPORT.is_match(line);
    let assertions = |text: &str| text.lines().filter(is_assertion).count();
    let (before, now) = (assertions(&file.old), assertions(&file.new));
    if now < before {
        let text = format!("{before} assertions before, {now} now");
        found.push(signal(K::FewerAssertions, file, 1, &text));
    }
}

fn signal(kind: SignalKind, file: &ChangedFile, line: u32, text: &str) -> Signal {
    Signal {
        kind,
        path: file.path.clone(),
        line,
        text: cap_chars(text.trim(), MAX_TEXT).into_owned(),
    }
}

fn literals(text: &str) -> impl Iterator<Item = &str> {
    LITERAL.captures_iter(text).filter_map(|found| {
        // A short one still ends where its quote does.
        let literal = (1..=3).find_map(|index| found.get(index))?.as_str();
        Some(literal).filter(|literal| literal.len() > 2)
    })
}

/// The name of a file without its directories and its ending.
pub fn stem(path: &str) -> &str {
    let name = file_name(path);
    name.split_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests;
