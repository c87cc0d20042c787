//! Advice for failures with a known cause.

use super::tools::TABLE;
use crate::pattern::{Pattern, group};
use crate::text;

/// The maximum number of hints.
const MAX_HINTS: usize = 5;
const MAX_HINT: usize = 300;

/// At most five distinct hints about the failures in `output`: missing dependencies and commands, and compile errors that
/// cause others.
pub fn hints(output: &str) -> Vec<String> {
    let plain = text::plain(output);
    let mut all: Vec<String> = Vec::new();
    let compilation = compilation(&plain).map(str::to_owned);
    for hint in plain.lines().filter_map(dependency).chain(compilation) {
        let hint = text::one_line(&hint, MAX_HINT);
        if !all.contains(&hint) {
            all.push(hint);
        }
    }
    all.truncate(MAX_HINTS);
    all
}

fn dependency(line: &str) -> Option<String> {
    static COMMAND: Pattern = Pattern::new(
        r"(?:^|: )(?:line \d+: )?([\w.+-]+): (?:command )?not found$|command not found: ([\w.+-]+)$",
    );
    TABLE.iter().find_map(|tool| tool.advice(line)).or_else(|| {
        let found = COMMAND.captures(line)?;
        let command = [group(&found, 1), group(&found, 2)].concat();
        Some(format!(
            "The command `{command}` is not installed here. Use one that is, or install it as a dependency of the project."
        ))
    })
}

fn compilation(output: &str) -> impl Iterator<Item = &'static str> {
    static TYPESCRIPT: Pattern = Pattern::new(r"error TS\d+:");
    static RUST: Pattern = Pattern::new(r"(?m)^error\[E\d{4}\]");
    static BORROW: Pattern = Pattern::new(r"(?m)^error\[E0(?:38[123]|499|50[2567]|515|597|716)\]");
    static SYNTAX: Pattern = Pattern::new(
        r"\bSyntaxError\b|\bIndentationError\b|error: expected .+, found |error TS1\d{3}:|syntax error:",
    );
    let all = [
        (
            SYNTAX.is_match(output),
            "There is a syntax error. Fix it first: later errors may only follow from it.",
        ),
        (
            TYPESCRIPT.is_match(output),
            "TypeScript errors cascade: fix the error in the source of a type or import first, then those in its users and tests.",
        ),
        (
            BORROW.is_match(output),
            "The borrow checker rejects the change. Change who owns the value or how long it is borrowed before you add clones.",
        ),
        (
            RUST.is_match(output) && !BORROW.is_match(output),
            "The code does not compile, so no test has run. Fix the first compile error first: later ones often follow from it.",
        ),
    ];
    all.into_iter()
        .filter_map(|(applies, hint)| applies.then_some(hint))
}

#[cfg(test)]
mod tests {
    use super::hints;

    #[test]
    fn hints_fit_the_failure() {
        let has =
            |output: &str, needle: &str| hints(output).iter().any(|hint| hint.contains(needle));
        let table = [
            (
                "Error: Cannot find module 'left-pad'\n",
                "npm install left-pad",
            ),
            (
                "Cannot find module '@scope/pkg/deep' or its type declarations",
                "npm install @scope/pkg`",
            ),
            (
                "Error: Cannot find module './gone.js'\n",
                "`./gone.js` is a file of the project",
            ),
            (
                "E   ModuleNotFoundError: No module named 'yaml.loader'\n",
                "pip install yaml`",
            ),
            (
                "error[E0432]: unresolved import `serde`\n = help: if you wanted to use a crate named `serde`, use `cargo add serde` to add it",
                "cargo add serde",
            ),
            (
                "error[E0463]: can't find crate for `rand`",
                "cargo add rand",
            ),
            (
                "main.go:3:2: no required module provides package github.com/x/y; to add it:",
                "go get github.com/x/y`",
            ),
            (
                "sh: 1: pytest: not found",
                "command `pytest` is not installed",
            ),
            (
                "bash: line 3: jq: command not found",
                "command `jq` is not installed",
            ),
            (
                "zsh: command not found: go",
                "command `go` is not installed",
            ),
            ("src/a.ts(1,2): error TS2322: x", "cascade"),
            ("error[E0382]: borrow of moved value: `x`", "borrow checker"),
            ("error[E0308]: mismatched types", "does not compile"),
            ("SyntaxError: invalid syntax", "syntax error"),
        ];
        for (output, needle) in table {
            assert!(has(output, needle), "{output}: {:?}", hints(output));
        }
        assert!(!has("Error: Cannot find module './gone.js'", "npm install"));
        assert!(!has("Error: Cannot find module 'node:x'", "npm install"));
        assert_eq!(hints("assertion failed: 1 == 2\n"), Vec::<String>::new());
        let many: String = (0..9)
            .map(|n| format!("Cannot find module 'p{n}'\n").repeat(2))
            .collect();
        assert_eq!(hints(&many).len(), 5);
    }
}
