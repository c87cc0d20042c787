//! The commands of a shell text, a makefile or a script, as far as they can be recognised without running
//! them. It is better to find one too many than one too few, because the files found are only compared and
//! restored.

use crate::command_line::is_assignment;
use crate::pattern::Pattern;
use std::collections::{BTreeMap, BTreeSet};

/// A simple command of a shell text.
#[derive(Debug, PartialEq, Eq)]
pub struct Simple {
    /// Its words, without quotes.
    pub words: Vec<String>,
    /// Whether another command judges what it prints: `x | grep y`, `[ "$(x)" = y ]`.
    pub is_judged: bool,
    /// The subshells and substitutions that have ended since the command before it.
    pub ended: usize,
    /// Those that have begun then, and in which it runs.
    pub begun: usize,
}

/// Programs that judge their input.
const JUDGES: &[&str] = &["cmp", "comm", "diff", "egrep", "fgrep", "grep"];

/// Commands that judge the output of others which their words name.
const COMPARING: &[&str] = &["[", "[[", "case", "cmp", "comm", "diff", "test"];

/// Words of the grammar before a command.
const BEFORE: &[&str] = &[
    "!", "do", "elif", "else", "if", "then", "time", "until", "while", "{",
];

/// The simple commands.
pub fn simple_commands(text: &str) -> Vec<Simple> {
    let all = separated(text);
    let first = |at: usize| all.get(at).and_then(|(words, _)| words.first());
    let end = |at: usize| all.get(at).map_or('\n', |(_, end)| *end);
    let is_judged = |at: usize| {
        let pipeline = (at..all.len()).take_while(|at| end(*at) == '|' && first(at + 1).is_some());
        let mut after = pipeline.filter_map(|at| first(at + 1));
        let start = (0..at).rev().find(|before| end(*before) != '|');
        let around = start.filter(|before| end(*before) == '$').and_then(first);
        let is_compared = |word: &String| COMPARING.contains(&word.as_str()) || is_assignment(word);
        after.any(|word| JUDGES.contains(&word.as_str())) || around.is_some_and(is_compared)
    };
    let judged: Vec<bool> = (0..all.len()).map(is_judged).collect();
    let (mut ended, mut begun) = (0usize, 0usize);
    let mut commands = Vec::new();
    for ((words, end), is_judged) in all.into_iter().zip(judged) {
        if !words.is_empty() {
            commands.push(Simple {
                words,
                is_judged,
                ended: std::mem::take(&mut ended),
                begun: std::mem::take(&mut begun),
            });
        }
        match end {
            '(' | '$' => begun += 1,
            ')' if begun > 0 => begun -= 1,
            ')' => ended += 1,
            _ => {}
        }
    }
    commands
}

/// The words between two separators, with the separator after them; `$` stands for the start of a substitution, and `:`
/// for the end of a pattern of `case`.
fn separated(text: &str) -> Vec<(Vec<String>, char)> {
    let text = text.replace("\\\n", " ");
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let mut quote: Option<char> = None;
    // The quotes around substitutions.
    let mut around = Vec::new();
    // How many substitutions and subshells are around each open `case`.
    let mut cases = Vec::new();
    let mut is_in_back_quotes = false;
    let mut chars = text.chars().peekable();
    let ends_word = |word: &mut String, words: &mut Vec<String>| {
        if !word.is_empty() {
            words.push(std::mem::take(word));
        }
    };
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', Some('"') | None) => word.extend(chars.next()),
            // A substitution inside quotes is a command too.
            ('(', Some('"') | None) if word.ends_with('$') => {
                word.pop();
                ends_word(&mut word, &mut words);
                if begins_with(&words, "case") {
                    cases.push(around.len());
                }
                around.push(quote.take());
                all.push((std::mem::take(&mut words), '$'));
            }
            (c, Some(_)) => word.push(c),
            ('\'' | '"', None) => quote = Some(c),
            ('#', None) if word.is_empty() => {
                while chars.peek().is_some_and(|next| *next != '\n') {
                    chars.next();
                }
            }
            (';' | '&' | '|' | '\n' | '(' | ')' | '`', None) => {
                ends_word(&mut word, &mut words);
                if begins_with(&words, "case") {
                    cases.push(around.len());
                } else if begins_with(&words, "esac") {
                    cases.pop();
                }
                let is_pattern = c == ')' && cases.last() == Some(&around.len());
                is_in_back_quotes ^= c == '`';
                let end = match c {
                    '`' if is_in_back_quotes => '$',
                    '`' => ')',
                    _ if is_pattern => ':',
                    _ => c,
                };
                all.push((std::mem::take(&mut words), end));
                match end {
                    _ if c == '`' => {}
                    '(' => around.push(None),
                    ')' => quote = around.pop().flatten(),
                    _ => {}
                }
            }
            (c, None) if c.is_whitespace() => ends_word(&mut word, &mut words),
            ('<' | '>', None) => {
                ends_word(&mut word, &mut words);
                if chars.next_if_eq(&'(').is_some() {
                    around.push(None);
                    all.push((std::mem::take(&mut words), '$'));
                }
            }
            (c, None) => word.push(c),
        }
    }
    ends_word(&mut word, &mut words);
    all.push((words, '\n'));
    all
}

/// Whether this is the first word behind those that may precede a command.
fn begins_with(words: &[String], first: &str) -> bool {
    let is_before = |word: &&String| BEFORE.contains(&word.as_str());
    words
        .iter()
        .find(|word| !is_before(word))
        .is_some_and(|word| word == first)
}

/// The values that a text gives to variables of the shell, as far as it says them.
#[derive(Debug, Default)]
pub struct Variables(BTreeMap<String, Vec<String>>);

impl Variables {
    /// Notes what a command sets: `NAME=value`, `for NAME in values`.
    pub fn set_by(&mut self, words: &[String]) {
        if let [word, name, of, values @ ..] = words
            && word == "for"
            && of == "in"
        {
            self.0.insert(name.clone(), values.to_vec());
        }
        let is_export = |word: &&String| ["export", "local", "readonly"].contains(&word.as_str());
        let words = words.iter().skip_while(is_export);
        for word in words.take_while(|word| is_assignment(word)) {
            // What a substitution gives is not known: `ROOT=$(git rev-parse --show-toplevel)`.
            match word.split_once('=') {
                Some((name, "")) => drop(self.0.remove(name)),
                Some((name, value)) => drop(self.0.insert(name.to_owned(), vec![value.to_owned()])),
                None => {}
            }
        }
    }

    /// The command with the values of the variables in it, once for each value of a variable that has several.
    pub fn expanded(&self, words: &[String]) -> Vec<Vec<String>> {
        let names = words
            .iter()
            .flat_map(|word| SHELL_VARIABLE.captures_iter(word));
        let numbers = names.filter_map(|found| Some(self.0.get(&name_in(&found))?.len()));
        let number = numbers.max().unwrap_or(1).clamp(1, MAX_VALUES);
        let with = |at: usize| {
            let value = |found: &regex::Captures<'_>| {
                let values = self.0.get(&name_in(found));
                let value = values.and_then(|all| all.get(at).or(all.last())).cloned();
                let default = || found.get(2).map(|value| value.as_str().to_owned());
                value
                    .or_else(default)
                    .unwrap_or_else(|| found[0].to_owned())
            };
            let words = words.iter();
            words
                .map(|word| SHELL_VARIABLE.replace_all(word, value).into_owned())
                .collect()
        };
        (0..number).map(with).collect()
    }
}

/// The name of a variable that was found.
fn name_in(found: &regex::Captures<'_>) -> String {
    let name = found.get(1).or(found.get(3));
    name.map_or_else(String::new, |name| name.as_str().to_owned())
}

/// The most values of one variable that are told apart.
const MAX_VALUES: usize = 64;

/// Names of variables are ASCII, and so are the classes: Unicode's `\w` takes milliseconds to compile.
static SHELL_VARIABLE: Pattern = Pattern::only_if(
    r"\$(?:\{([A-Za-z_][0-9A-Za-z_]*)(?::?-([^}$]*))?\}|([A-Za-z_][0-9A-Za-z_]*))",
    |text| text.contains('$'),
);

/// The names of the functions that a text defines.
pub fn functions(text: &str) -> impl Iterator<Item = String> {
    static FUNCTION: Pattern = Pattern::only_if(
        r"(?:^|[\s;&|{(])(?:function[ \t]+)?([0-9A-Za-z_.-]+)[ \t]*\(\)",
        |text| text.contains("()"),
    );
    let found = FUNCTION.captures_iter(text);
    found.map(|found| found[1].to_owned())
}

/// The words of a script in any language.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| !(c.is_alphanumeric() || "./_-@".contains(c));
    text.split(is_end).filter(|word| !word.is_empty())
}

static VARIABLE: Pattern = Pattern::new(r"\$[({](\w+)[)}]");

/// The commands that a makefile or a similar recipe file runs for these goals.
pub fn recipes(text: &str, goals: &[&str]) -> String {
    let text = text.replace("\\\n", " ");
    let (mut rules, mut variables) = (BTreeMap::new(), BTreeMap::new());
    let mut first: Option<String> = None;
    let mut open: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with(['\t', ' ']) {
            let line = line.trim_start().trim_start_matches(['@', '-', '+']);
            for target in &open {
                let rule: &mut (Vec<String>, String) = rules.entry(target.clone()).or_default();
                rule.1.push_str(line);
                rule.1.push('\n');
            }
            continue;
        }
        if let Some((name, value)) = assignment(line) {
            variables.insert(name.to_owned(), value.to_owned());
            continue;
        }
        let Some((targets, needs)) = line.split_once(':').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        open = targets.split_whitespace().map(str::to_owned).collect();
        if first.is_none() {
            first = open.first().filter(|name| !name.starts_with('.')).cloned();
        }
        let (needs, inline) = needs.split_once(';').unwrap_or((needs, ""));
        let needs = expanded(needs.trim_start_matches(':'), &variables);
        for target in &open {
            let rule: &mut (Vec<String>, String) = rules.entry(target.clone()).or_default();
            rule.0.extend(needs.split_whitespace().map(str::to_owned));
            rule.1.push_str(inline.trim());
            rule.1.push('\n');
        }
    }
    let mut wanted: Vec<String> = goals.iter().map(|goal| (*goal).to_owned()).collect();
    if wanted.is_empty() {
        wanted.extend(first);
    }
    let is_known = |goal: &String| rules.contains_key(goal);
    if !wanted.iter().all(is_known) {
        wanted = rules.keys().cloned().collect();
    }
    let mut seen = BTreeSet::new();
    let mut found = String::new();
    while let Some(target) = wanted.pop() {
        let Some((needs, recipe)) = rules.get(&target).filter(|_| seen.insert(target.clone()))
        else {
            continue;
        };
        found.push_str(&expanded(recipe, &variables));
        wanted.extend(needs.iter().cloned());
    }
    found
}

/// The targets of a makefile that are plain names of files, since it does not say that they are phony. Others, such
/// as `build/a.o`, are made by builds. Nothing is known if variables name the phony ones.
pub fn file_targets(text: &str) -> BTreeSet<String> {
    let text = text.replace("\\\n", " ");
    let rules = text
        .lines()
        .filter(|line| !line.starts_with(['\t', ' ', '#']))
        .filter(|line| assignment(line).is_none());
    let rules: Vec<(&str, &str)> = rules.filter_map(|line| line.split_once(':')).collect();
    let of_phony = rules
        .iter()
        .filter(|(targets, _)| targets.trim() == ".PHONY");
    let phony: BTreeSet<&str> = of_phony
        .flat_map(|(_, names)| names.split_whitespace())
        .collect();
    let all = rules
        .iter()
        .flat_map(|(targets, _)| targets.split_whitespace());
    if phony.iter().any(|name| name.contains('$')) {
        return BTreeSet::new();
    }
    let is_file = |name: &&str| !name.contains(['$', '%', '(', '*', '/', '.']);
    let files = all.filter(is_file).filter(|name| !phony.contains(name));
    files.map(str::to_owned).collect()
}

fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+', '!']).trim();
    let name = name.strip_prefix("export ").unwrap_or(name);
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then(|| (name, value.trim()))
}

fn expanded(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut text = text.replace("$(MAKE)", "make").replace("${MAKE}", "make");
    for _ in 0..4 {
        let next = VARIABLE.replace_all(&text, |found: &regex::Captures<'_>| {
            let value = variables.get(&found[1]).cloned();
            value.unwrap_or_else(|| found[0].to_owned())
        });
        if next == text || next.len() > MAX_EXPANDED {
            break;
        }
        text = next.into_owned();
    }
    text
}

/// The maximum length of an expanded text, because variables that refer to each other would expand without
/// end.
const MAX_EXPANDED: usize = 1 << 18;
