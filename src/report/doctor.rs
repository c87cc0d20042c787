//! The output of `sprag doctor`.

use super::actions_log;
use super::text;
use crate::doctor::{Finding, State, could_work};
use anstyle::AnsiColor;

/// One line for each finding with its remedies below it, and the conclusion in the last line.
pub fn text(findings: &[Finding], color: bool) -> String {
    let lines = findings.iter().map(|finding| finding.check.len());
    let width = lines.max().unwrap_or_default();
    let mut told = String::new();
    for finding in findings {
        let word = painted(finding.state, color);
        let found = actions_log::neutral(&text::line(&finding.found));
        told += &format!("{word}  {:width$}  {found}\n", finding.check);
        for remedy in finding.remedy.iter().flat_map(|remedy| remedy.lines()) {
            let remedy = actions_log::neutral(&text::line(remedy));
            told += &format!("{:7}  {:width$}  -> {remedy}\n", "", "");
        }
    }
    let failed = findings.iter().filter(|it| it.state == State::Fail).count();
    let failed = text::count(failed as u64, "check");
    told + &if could_work(findings) {
        "\na run could work here\n".to_owned()
    } else {
        format!("\na run could not work here: {failed} failed\n")
    }
}

/// An array of `{check, state, found, remedy}`.
pub fn json(findings: &[Finding]) -> String {
    match serde_json::to_string_pretty(findings) {
        Ok(json) => actions_log::neutral_json(json) + "\n",
        // Texts can always be converted to JSON.
        Err(_) => "[]\n".to_owned(),
    }
}

fn painted(state: State, color: bool) -> String {
    let (word, look) = match state {
        State::Ok => ("ok", AnsiColor::Green.on_default()),
        State::Warn => ("warn", AnsiColor::Yellow.on_default()),
        State::Fail => ("FAIL", AnsiColor::Red.on_default()),
        State::Unknown => ("unknown", anstyle::Style::new().dimmed()),
    };
    if color {
        format!("{look}{word:7}{look:#}")
    } else {
        format!("{word:7}")
    }
}

#[cfg(test)]
mod tests;
