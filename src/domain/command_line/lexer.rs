//! Splits a shell text into words and operators.

use std::collections::BTreeSet;
use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// The file of a redirection.
    File(Word),
    Operator(Operator),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    And,
    Or,
    Pipe,
    Semicolon,
    Line,
    Background,
    Open,
    Close,
    /// `;;`
    CaseEnd,
}

/// A word without its quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub text: String,
    pub range: Range<usize>,
    pub is_quoted: bool,
    /// Whether a `$` in it stands for itself.
    pub has_literal_dollar: bool,
    /// The texts of the substitutions in it, whose commands run too.
    pub substitutions: Vec<String>,
}

pub(super) fn tokens(text: &[char], not_understood: &mut BTreeSet<&'static str>) -> Vec<Token> {
    let mut lexer = Lexer {
        text,
        at: 0,
        tokens: Vec::new(),
        documents: Vec::new(),
        not_understood,
    };
    lexer.run();
    lexer.tokens
}

struct Lexer<'a> {
    text: &'a [char],
    at: usize,
    tokens: Vec<Token>,
    /// The ends of the here-documents that begin on the next line.
    documents: Vec<String>,
    not_understood: &'a mut BTreeSet<&'static str>,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn operator(&mut self, operator: Operator, length: usize) {
        self.at += length;
        self.tokens.push(Token::Operator(operator));
    }

    fn run(&mut self) {
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('\n', _) => {
                    self.operator(Operator::Line, 1);
                    self.skip_documents();
                }
                (c, _) if c.is_whitespace() => self.at += 1,
                ('#', _) => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                ('&', Some('&')) => self.operator(Operator::And, 2),
                ('&', Some('>')) => self.redirection(),
                ('&', _) => self.operator(Operator::Background, 1),
                ('|', Some('|')) => self.operator(Operator::Or, 2),
                ('|', Some('&')) => self.operator(Operator::Pipe, 2),
                ('|', _) => self.operator(Operator::Pipe, 1),
                (';', Some(';')) => self.operator(Operator::CaseEnd, 2),
                (';', _) => self.operator(Operator::Semicolon, 1),
                ('(', Some('(')) => {
                    self.not_understood.insert("arithmetic");
                    self.operator(Operator::Open, 1);
                }
                ('(', _) => self.operator(Operator::Open, 1),
                (')', _) => self.operator(Operator::Close, 1),
                ('<' | '>', Some('(')) => {
                    let word = self.word();
                    self.tokens.push(Token::Word(word));
                }
                ('<' | '>', _) => self.redirection(),
                _ => {
                    let word = self.word();
                    let is_number = word.text.chars().all(|c| c.is_ascii_digit());
                    // `2>log`
                    if !(is_number && !word.is_quoted && matches!(self.peek(0), Some('<' | '>'))) {
                        self.tokens.push(Token::Word(word));
                    }
                }
            }
        }
    }

    fn redirection(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(|c| "<>&|-".contains(c)) {
            self.at += 1;
        }
        let sign: String = self.text[start..self.at].iter().collect();
        while self.peek(0).is_some_and(|c| c == ' ' || c == '\t') {
            self.at += 1;
        }
        let ends = |c: char| c.is_whitespace() || ";|&()".contains(c);
        if self.peek(0).is_none_or(ends) {
            return;
        }
        let word = self.word();
        if sign.starts_with("<<<") {
        } else if sign.starts_with("<<") {
            self.not_understood.insert("a here-document");
            self.documents.push(word.text);
        } else if !sign.contains('&') || sign.starts_with('&') {
            self.tokens.push(Token::File(word));
        }
    }

    /// Skips the here-documents that begin here.
    fn skip_documents(&mut self) {
        for end in std::mem::take(&mut self.documents) {
            while self.at < self.text.len() {
                let rest = &self.text[self.at..];
                let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
                let line: String = rest[..length].iter().collect();
                self.at = (self.at + length + 1).min(self.text.len());
                if line.trim() == end {
                    break;
                }
            }
        }
    }

    fn word(&mut self) -> Word {
        let mut word = Word {
            range: self.at..self.at,
            ..Word::default()
        };
        let mut in_quotes = false;
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('\\', Some(next)) => {
                    // In quotes, a backslash only counts before these.
                    if in_quotes && !"\"\\$`\n".contains(next) {
                        word.text.push(c);
                    }
                    word.has_literal_dollar |= next == '$';
                    word.text.push(next);
                    self.at += 2;
                }
                ('"', _) => {
                    in_quotes = !in_quotes;
                    word.is_quoted = true;
                    self.at += 1;
                }
                ('\'', _) if !in_quotes => {
                    word.is_quoted = true;
                    self.at += 1;
                    let rest = self.text[self.at..].iter();
                    let quoted: String = rest.take_while(|c| **c != '\'').collect();
                    self.at += quoted.chars().count() + 1;
                    if self.at > self.text.len() {
                        self.not_understood.insert("an open quote");
                    }
                    word.has_literal_dollar |= quoted.contains('$');
                    word.text += &quoted;
                }
                ('$', Some('(')) if self.peek(2) == Some('(') => self.enclosed(&mut word, 1, ')'),
                ('$', Some('(')) => {
                    let from = self.at + 2;
                    self.enclosed(&mut word, 1, ')');
                    self.substitution(&mut word, from);
                }
                ('$', Some('{')) => self.enclosed(&mut word, 1, '}'),
                ('<' | '>', Some('(')) if !in_quotes => {
                    let from = self.at + 2;
                    self.enclosed(&mut word, 1, ')');
                    self.substitution(&mut word, from);
                }
                ('`', _) => {
                    let from = self.at + 1;
                    let rest = self.text[from..].iter();
                    let length = rest.take_while(|c| **c != '`').count();
                    self.at = (from + length + 1).min(self.text.len());
                    word.text.extend(&self.text[from - 1..self.at]);
                    self.substitution(&mut word, from);
                }
                (c, _) if !in_quotes && (c.is_whitespace() || ";|&()<>".contains(c)) => break,
                (c, _) => {
                    word.text.push(c);
                    self.at += 1;
                }
            }
        }
        if in_quotes {
            self.not_understood.insert("an open quote");
        }
        self.at = self.at.min(self.text.len());
        word.range.end = self.at;
        word
    }

    /// Notes the commands between this position and the bracket that was just closed.
    fn substitution(&mut self, word: &mut Word, from: usize) {
        let end = self.at.saturating_sub(1).max(from);
        let inner = self.text.get(from..end).unwrap_or_default();
        word.substitutions.push(inner.iter().collect());
    }

    /// Adds everything up to the bracket that closes the one at `self.at + before`, as it is written.
    fn enclosed(&mut self, word: &mut Word, before: usize, close: char) {
        let start = self.at;
        let open = self.text[start + before];
        let (mut depth, mut quote) = (0_usize, None);
        self.at += before;
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match quote {
                _ if c == '\\' => self.at += 1,
                Some(open) if c == open => quote = None,
                Some(_) => {}
                None if c == '\'' || c == '"' => quote = Some(c),
                None if c == open => depth += 1,
                None if c == close => depth -= 1,
                None => {}
            }
            if depth == 0 {
                break;
            }
        }
        self.at = self.at.min(self.text.len());
        if depth > 0 {
            self.not_understood.insert("an open bracket");
        }
        word.text.extend(&self.text[start..self.at]);
    }
}
