//! The one reader of command lines: the simple commands of a shell text, with the directory in which each runs and
//! the program that it starts behind `env`, `timeout`, `npx` and their like.
//!
//! Nothing is run and nothing is looked up. Whatever cannot be read this way is named in
//! [`CommandLine::not_understood`], so that a caller can stay on its safe side.

mod before;
mod lexer;
#[cfg(test)]
mod tests;

use crate::pattern::Pattern;
use crate::text::file_name;
use lexer::{Operator, Token, Word};
use regex::Captures;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A shell text, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The parts between `;`, `&` and line ends.
    pub statements: Vec<Statement>,
    /// What the text has that is not understood, such as "an open quote".
    pub not_understood: BTreeSet<&'static str>,
    text: Vec<char>,
}

/// Commands that are joined by `&&`, `||` or `|`, or a compound command with everything in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statement {
    /// The simple commands, also those in subshells, substitutions, branches and the text of `sh -c`.
    pub commands: Vec<Simple>,
    /// Where it stands in the text.
    range: Range<usize>,
}

/// A simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// The words without quotes, assignments and redirections. Known variables of the text have their values.
    pub words: Vec<String>,
    /// The variables set for this command, also by `export` before it and by `env`.
    pub assignments: Vec<(String, String)>,
    /// How many of them, at the beginning, `export` has set.
    pub exported: usize,
    /// The files that redirections name.
    pub files: Vec<String>,
    /// The directory in which it runs, relative to the root of the work tree, empty for the root. `None` if that is
    /// not known.
    pub directory: Option<String>,
    /// The `source FILE` commands before it, which may define anything.
    pub sourced: Vec<String>,
    /// How it follows the command before it.
    pub after: After,
    /// Whether it runs whenever the text is run, provided that nothing before it fails.
    pub is_certain: bool,
    /// Whether it is inside a compound command, a subshell, a substitution or the text of `sh -c`.
    pub is_inner: bool,
    /// Whether it is in a substitution. Its failure fails nothing by itself.
    pub is_substitution: bool,
    /// The position of the program that the system starts, and of the one that this one runs.
    started: usize,
    program: usize,
    range: Range<usize>,
}

/// How a command follows the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum After {
    /// It is the first of its statement.
    #[default]
    Nothing,
    /// `&&`
    Success,
    /// `||`
    Failure,
    /// `|`
    Pipe,
}

/// A program with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program<'a> {
    /// The word that names it.
    pub word: &'a str,
    /// Everything after it.
    pub arguments: &'a [String],
}

impl Program<'_> {
    /// The name without directory and version: `python` for `/usr/bin/python3.12`.
    pub fn name(&self) -> &str {
        let name = file_name(self.word);
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        if matches!(plain, "python" | "pip" | "pypy") {
            plain
        } else {
            name
        }
    }
}

impl Simple {
    /// The program that does the work: `pytest` of `CI=1 timeout 5m uv run pytest -q`.
    pub fn program(&self) -> Option<Program<'_>> {
        self.program_at(self.program)
    }

    /// The program that must be there for the command to start: `uv` of the same command.
    pub fn started(&self) -> Option<Program<'_>> {
        self.program_at(self.started)
    }

    /// Whether a word stands before the program, as `sudo` and `npx` do.
    pub fn has_before(&self, word: &str) -> bool {
        let before = self.words.iter().take(self.program);
        before.into_iter().any(|other| file_name(other) == word)
    }

    fn program_at(&self, at: usize) -> Option<Program<'_>> {
        let (word, arguments) = self.words.get(at..)?.split_first()?;
        Some(Program { word, arguments })
    }
}

impl CommandLine {
    /// Reads a shell text.
    pub fn read(text: &str) -> Self {
        Self::read_in(text, Some(String::new()), 0)
    }

    fn read_in(text: &str, directory: Option<String>, depth: u32) -> Self {
        let text: Vec<char> = text.replace("\\\n", " ").chars().collect();
        let mut not_understood = BTreeSet::new();
        let tokens = lexer::tokens(&text, &mut not_understood);
        let mut reader = Reader {
            line: Self {
                not_understood,
                text,
                statements: Vec::new(),
            },
            state: State {
                directory,
                ..State::default()
            },
            depth,
            ..Reader::default()
        };
        reader.read(tokens);
        reader.line
    }

    /// All simple commands, in the order of the text.
    pub fn commands(&self) -> impl Iterator<Item = &Simple> {
        self.statements
            .iter()
            .flat_map(|statement| &statement.commands)
    }

    /// The statement as it is written.
    pub fn source_of(&self, statement: &Statement) -> String {
        self.source(&statement.range)
    }

    /// These commands of one statement as they are written, with all that is between them.
    pub fn source_between(&self, first: &Simple, last: &Simple) -> String {
        self.source(&(first.range.start..last.range.end))
    }

    fn source(&self, range: &Range<usize>) -> String {
        let text = self.text.get(range.clone()).unwrap_or_default();
        text.iter().collect()
    }

    /// The paths of the work tree that the text itself may name: every word, the values of options and variables, and
    /// files of redirections, relative to the root. Which of them exist is for the caller to see.
    pub fn paths(&self) -> BTreeSet<String> {
        let mut paths = BTreeSet::new();
        for command in self.commands() {
            let directory = command.directory.as_deref();
            let values = command.assignments.iter().map(|(_, value)| value);
            let words = command.words.iter().chain(&command.files).chain(values);
            for word in words {
                // `--config=a.toml`, `tests/a.py::test_b`, `-Ca`.
                let value = word.split_once('=').map_or("", |(_, value)| value);
                let node = word.split("::").next().unwrap_or_default();
                let attached = word.get(2..).filter(|_| word.starts_with('-'));
                let named = [word.as_str(), value, node, attached.unwrap_or_default()];
                let named = named.into_iter().filter(|name| !name.is_empty());
                paths.extend(named.filter_map(|name| entered(directory, name)));
            }
        }
        paths.remove("");
        paths
    }
}

/// What holds for the commands that follow.
#[derive(Debug, Clone, Default)]
struct State {
    directory: Option<String>,
    exported: Vec<(String, String)>,
    sourced: Vec<String>,
    variables: BTreeMap<String, String>,
}

/// An open compound command.
#[derive(Debug, Clone)]
enum Open {
    /// `(`, with what holds after it.
    Subshell(Box<State>),
    /// `{`
    Group,
    /// `if`, a loop, or the body of a function: it is unknown whether its commands run.
    Branch,
    /// `case`, and whether a pattern comes next.
    Case(bool),
}

#[derive(Default)]
struct Reader {
    line: CommandLine,
    state: State,
    open: Vec<Open>,
    words: Vec<Word>,
    files: Vec<Word>,
    after: After,
    /// Whether a command of this statement was behind `||`.
    is_alternative: bool,
    statement: Statement,
    /// Whether the next `{` is that of a function.
    begins_body: bool,
    depth: u32,
}

/// Whether the word belongs to the grammar and stands before a command.
fn is_grammar(word: &Word) -> bool {
    const WORDS: &[&str] = &[
        "!", "do", "elif", "else", "if", "then", "until", "while", "{",
    ];
    !word.is_quoted && WORDS.contains(&word.text.as_str())
}

/// The maximum depth of shell texts in shell texts.
const MAX_DEPTH: u32 = 4;

impl Reader {
    fn read(&mut self, tokens: Vec<Token>) {
        let mut tokens = tokens.into_iter().peekable();
        let mut in_brackets = false;
        while let Some(token) = tokens.next() {
            match token {
                Token::Word(word) => {
                    in_brackets = match word.text.as_str() {
                        "[[" if self.words.iter().all(is_grammar) => true,
                        "]]" => false,
                        _ => in_brackets,
                    };
                    self.words.push(word);
                }
                Token::File(word) => self.files.push(word),
                Token::Operator(_) if in_brackets => {}
                Token::Operator(Operator::Open) if self.words.len() == 1 => {
                    // `name() { … }`
                    tokens.next_if(|next| *next == Token::Operator(Operator::Close));
                    self.words.clear();
                    self.function();
                }
                Token::Operator(operator) => self.operator(operator),
            }
        }
        self.command();
        self.end_statement();
    }

    fn operator(&mut self, operator: Operator) {
        if let Some(Open::Case(in_pattern @ true)) = self.open.last_mut() {
            if operator == Operator::Close {
                *in_pattern = false;
                self.words.clear();
            } else if self.words.first().is_some_and(|word| word.text == "esac") {
                self.open.pop();
                self.words.clear();
            }
            return;
        }
        let was_empty = self.words.is_empty() && self.files.is_empty();
        self.command();
        match operator {
            Operator::And => self.after = After::Success,
            Operator::Or => {
                self.after = After::Failure;
                self.is_alternative = true;
            }
            Operator::Pipe => self.after = After::Pipe,
            Operator::Open => self.open.push(Open::Subshell(Box::new(self.state.clone()))),
            Operator::Close => match self.open.pop() {
                Some(Open::Subshell(state)) => self.state = *state,
                Some(Open::Case(_)) => self.open.push(Open::Case(false)),
                other => self.open.extend(other),
            },
            Operator::CaseEnd => {
                if let Some(Open::Case(in_pattern)) = self.open.last_mut() {
                    *in_pattern = true;
                }
            }
            Operator::Line if was_empty && self.after != After::Nothing => {}
            Operator::Line | Operator::Semicolon | Operator::Background => {
                self.after = After::Nothing;
                if self.open.is_empty() {
                    self.end_statement();
                } else if !self.is_in_branch() {
                    self.is_alternative = false;
                }
            }
        }
    }

    fn end_statement(&mut self) {
        let statement = std::mem::take(&mut self.statement);
        self.is_alternative = false;
        if !statement.commands.is_empty() {
            self.line.statements.push(statement);
        }
    }

    fn is_in_branch(&self) -> bool {
        let may_not_run = |open: &Open| matches!(open, Open::Branch | Open::Case(_));
        self.open.iter().any(may_not_run)
    }

    /// Takes the words since the last operator as a command, behind the words of the grammar.
    fn command(&mut self) {
        let words = std::mem::take(&mut self.words);
        let files = std::mem::take(&mut self.files);
        let end = words.iter().chain(&files).map(|word| word.range.end).max();
        let Some(end) = end else {
            return;
        };
        if let Some(first) = words.first()
            && self.statement.commands.is_empty()
            && self.statement.range.is_empty()
        {
            self.statement.range = first.range.clone();
        }
        self.statement.range.end = end;
        let mut words = words.as_slice();
        let mut negation = None;
        while let Some((first, rest)) = words.split_first().filter(|(word, _)| !word.is_quoted) {
            match first.text.as_str() {
                "if" | "while" | "until" => self.open.push(Open::Branch),
                "for" | "select" => {
                    self.open.push(Open::Branch);
                    self.loop_over(rest);
                    break;
                }
                "case" => {
                    self.open.push(Open::Case(true));
                    return;
                }
                "fi" | "done" | "}" | "esac" => drop(self.open.pop()),
                "{" if std::mem::take(&mut self.begins_body) => {}
                "{" => self.open.push(Open::Group),
                "!" => negation = Some(first.range.start),
                "function" => {
                    self.function();
                    words = rest.get(1..).unwrap_or_default();
                    continue;
                }
                _ if !is_grammar(first) => break,
                _ => {}
            }
            words = rest;
        }
        if let Some(first) = words.first() {
            let start = negation.unwrap_or(first.range.start);
            self.simple(words, &files, start..end);
        }
        self.after = After::Nothing;
    }

    /// A function begins, whose body may never run.
    fn function(&mut self) {
        self.line.not_understood.insert("a function");
        self.open.push(Open::Branch);
        self.begins_body = true;
    }

    /// Notes the value of a loop's variable if it has only one.
    fn loop_over(&mut self, words: &[Word]) {
        if let [name, of, values @ ..] = words
            && of.text == "in"
        {
            self.state.variables.remove(&name.text);
            if let [value] = values {
                let value = (name.text.clone(), value.text.clone());
                self.state.variables.extend([value]);
            }
        }
    }

    fn simple(&mut self, words: &[Word], files: &[Word], range: Range<usize>) {
        for word in words.iter().chain(files) {
            for inner in &word.substitutions {
                self.text_within(inner, false);
            }
        }
        let expanded = |word: &Word| self.expanded(word);
        let mut texts: Vec<String> = words.iter().map(expanded).collect();
        let files: Vec<String> = files.iter().map(expanded).collect();
        let count = texts.iter().take_while(|word| is_assignment(word)).count();
        let assignments: Vec<(String, String)> = texts.drain(..count).filter_map(split).collect();
        if texts.is_empty() {
            self.state.variables.extend(assignments.clone());
        }
        let mut command = Simple {
            assignments: self.state.exported.clone(),
            exported: self.state.exported.len(),
            directory: self.state.directory.clone(),
            sourced: self.state.sourced.clone(),
            after: self.after,
            is_certain: !self.is_in_branch() && !self.is_alternative,
            is_inner: !self.open.is_empty() || self.depth > 0,
            words: texts,
            files,
            range,
            ..Simple::default()
        };
        command.assignments.extend(assignments);
        before::strip(&mut command);
        self.effects(&command);
        let script = script_of(&command).map(str::to_owned);
        self.statement.commands.push(command);
        if let Some(script) = script {
            self.text_within(&script, true);
        }
    }

    /// Adds the commands of a substitution or of a text that a shell runs.
    fn text_within(&mut self, text: &str, is_script: bool) {
        if self.depth >= MAX_DEPTH {
            self.line.not_understood.insert("texts in texts");
            return;
        }
        let inner = CommandLine::read_in(text, self.state.directory.clone(), self.depth + 1);
        self.line.not_understood.extend(inner.not_understood);
        let is_certain = !self.is_in_branch() && !self.is_alternative;
        let range = self.statement.range.clone();
        for statement in inner.statements {
            for mut command in statement.commands {
                command.is_certain &= is_certain;
                command.is_substitution |= !is_script;
                command.range = range.clone();
                // `cd` in a script of `sh -c` holds until its end only.
                command.after = if is_script {
                    command.after
                } else {
                    After::Nothing
                };
                self.statement.commands.push(command);
            }
        }
    }

    /// Notes what the command changes for those after it.
    fn effects(&mut self, command: &Simple) {
        let Some((first, rest)) = command.words.split_first() else {
            return;
        };
        let target = rest
            .iter()
            .find(|word| *word == "-" || !word.starts_with('-'));
        let is_uncertain = self.is_in_branch() || self.after == After::Pipe;
        match first.as_str() {
            "cd" | "pushd" if is_uncertain => self.state.directory = None,
            "cd" | "pushd" => {
                let directory = self.state.directory.as_deref();
                self.state.directory = target.and_then(|to| entered(directory, to));
            }
            "popd" => self.state.directory = None,
            "." | "source" => {
                let text = target.map_or_else(|| first.clone(), |file| format!(". {file}"));
                self.state.sourced.push(text);
            }
            "eval" => {
                self.line.not_understood.insert("`eval`");
            }
            "export" => {
                let set = rest.iter().cloned().filter_map(split).collect::<Vec<_>>();
                self.state.variables.extend(set.clone());
                self.state.exported.extend(set);
            }
            "unset" => rest.iter().for_each(|name| {
                self.state.variables.remove(name);
            }),
            _ => {}
        }
    }

    /// The word with the values of the variables that the text has set, or their defaults.
    fn expanded(&self, word: &Word) -> String {
        static VARIABLE: Pattern = Pattern::only_if(
            r"\$(?:\{([A-Za-z_]\w*)(?::?-([^}$]*))?\}|([A-Za-z_]\w*))",
            |text| text.contains('$'),
        );
        if word.has_literal_dollar {
            return word.text.clone();
        }
        let value = |found: &Captures<'_>| {
            let name = found
                .get(1)
                .or(found.get(3))
                .map_or("", |name| name.as_str());
            let known = self.state.variables.get(name).map(String::as_str);
            let default = found.get(2).map(|value| value.as_str());
            known.or(default).unwrap_or(&found[0]).to_owned()
        };
        VARIABLE.replace_all(&word.text, value).into_owned()
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn split(assignment: String) -> Option<(String, String)> {
    let (name, value) = assignment.split_once('=')?;
    Some((name.to_owned(), value.to_owned()))
}

/// The text that a shell runs: `bash -ec TEXT`.
fn script_of(command: &Simple) -> Option<&str> {
    const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "sh", "zsh"];
    let program = command.program()?;
    if !SHELLS.contains(&file_name(program.word)) {
        return None;
    }
    let runs_text =
        |word: &String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    let at = program.arguments.iter().position(runs_text)?;
    program.arguments.get(at + 1).map(String::as_str)
}

/// Whether a word sets a variable for the command after it: `NAME=value`.
pub fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(is_of_name)
}

/// The ways in which command lines name the root of the work tree.
const ROOTS: &[&str] = &[
    "$GITHUB_WORKSPACE",
    "${GITHUB_WORKSPACE}",
    "${{ github.workspace }}",
    "${{github.workspace}}",
    "$(git rev-parse --show-toplevel)",
    "`git rev-parse --show-toplevel`",
];

/// The path of a word that is named in a directory, relative to the root of the work tree. `None` if it is not known
/// or outside.
pub fn entered(directory: Option<&str>, word: &str) -> Option<String> {
    let root = ROOTS.iter().find_map(|root| word.strip_prefix(root));
    let here = || {
        ["$PWD", "${PWD}", "$(pwd)"]
            .iter()
            .find_map(|here| word.strip_prefix(here))
    };
    let (from, rest) = match root {
        Some(rest) => ("", rest),
        None => (directory?, here().unwrap_or(word)),
    };
    let is_rooted = rest.len() < word.len();
    let is_attached = rest.is_empty() || rest.starts_with('/');
    let is_unknown = rest == "-" || rest.contains(['$', '`']) || rest.starts_with('~');
    if is_unknown || (is_rooted && !is_attached) || (!is_rooted && rest.starts_with('/')) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in from.split('/').chain(rest.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
