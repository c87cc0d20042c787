//! The simple commands of a shell text, as far as they can be told without running it. It is better to find one too
//! many than one too few.

use crate::command_line::is_assignment;

/// A simple command.
#[derive(Debug, PartialEq, Eq)]
pub struct Simple {
    /// Its words, without quotes.
    pub words: Vec<String>,
    /// Whether another command judges what it prints: `x | grep y`, `[ "$(x)" = y ]`.
    pub is_judged: bool,
}

/// Programs that judge their input.
const JUDGES: &[&str] = &["cmp", "comm", "diff", "egrep", "fgrep", "grep"];

/// Commands that judge the output of others which their words name.
const COMPARING: &[&str] = &["[", "[[", "case", "cmp", "comm", "diff", "test"];

/// The simple commands.
pub fn simple_commands(text: &str) -> Vec<Simple> {
    let all = separated(text);
    let first = |at: usize| all.get(at).and_then(|(words, _)| words.first());
    let is_judged = |at: usize| {
        let pipeline = (at..all.len()).take_while(|at| all[*at].1 == '|');
        let mut after = pipeline.filter_map(|at| first(at + 1));
        let around = (0..at).rev().find(|before| all[*before].1 != '|');
        let around = around
            .filter(|before| all[*before].1 == '$')
            .and_then(first);
        after.any(|word| JUDGES.contains(&word.as_str()))
            || around.is_some_and(|word| COMPARING.contains(&word.as_str()) || is_assignment(word))
    };
    let judged: Vec<bool> = (0..all.len()).map(is_judged).collect();
    let commands = all.into_iter().zip(judged);
    commands
        .filter(|((words, _), _)| !words.is_empty())
        .map(|((words, _), is_judged)| Simple { words, is_judged })
        .collect()
}

/// The words between two separators, with the separator after them; `$` stands for the start of a substitution.
fn separated(text: &str) -> Vec<(Vec<String>, char)> {
    let text = text.replace("\\\n", " ");
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let mut quote: Option<char> = None;
    // The quotes around substitutions and subshells.
    let mut around = Vec::new();
    let mut is_in_back_quotes = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let mut end = None;
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', Some('"') | None) => word.extend(chars.next()),
            // A substitution inside quotes is a command too.
            ('(', Some('"') | None) if word.ends_with('$') => {
                word.pop();
                around.push(quote.take());
                end = Some('$');
            }
            (c, Some(_)) => word.push(c),
            ('\'' | '"', None) => quote = Some(c),
            ('#', None) if word.is_empty() => {
                while chars.peek().is_some_and(|next| *next != '\n') {
                    chars.next();
                }
            }
            ('<' | '>', None) if chars.next_if_eq(&'(').is_some() => {
                around.push(None);
                end = Some('$');
            }
            ('`', None) => {
                is_in_back_quotes ^= true;
                end = Some(if is_in_back_quotes { '$' } else { ')' });
            }
            (';' | '&' | '|' | '\n' | '(' | ')', None) => {
                match c {
                    '(' => around.push(None),
                    ')' => quote = around.pop().flatten(),
                    _ => {}
                }
                end = Some(c);
            }
            (c, None) if c.is_whitespace() || "<>".contains(c) => {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            }
            (c, None) => word.push(c),
        }
        if let Some(end) = end {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            all.push((std::mem::take(&mut words), end));
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    all.push((words, '\n'));
    all
}
