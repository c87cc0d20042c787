//! Errors and warnings with a position in a text.

use std::fmt;

/// A position in a text, counted as editors and compilers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// The beginning of a text.
    pub const START: Self = Self { line: 1, column: 1 };

    /// The beginning of a line.
    pub const fn of_line(line: usize) -> Self {
        Self { line, column: 1 }
    }

    /// The position of a byte offset in `text`. An offset past the end is the end; an offset inside a
    /// character is that character.
    pub fn of_offset(text: &str, offset: usize) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// A problem at a position of a text whose file is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The position.
    pub at: Position,
    /// The problem, what was expected and the remedy: a lowercase fragment without a final period.
    pub message: String,
}

impl Fault {
    /// A fault at a position.
    pub fn new(at: Position, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }

    /// The same fault, with the file's name.
    pub fn in_file(self, file: &str) -> Located {
        Located {
            file: file.to_owned(),
            at: self.at,
            message: self.message,
        }
    }
}

/// A message about a position in a file. Displays as `plan.yaml:7:16: <message>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The file's name as the caller gave it.
    pub file: String,
    /// The position.
    pub at: Position,
    /// The problem, what was expected and the remedy: a lowercase fragment without a final period.
    pub message: String,
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.at;
        write!(f, "{}:{line}:{column}: {}", self.file, self.message)
    }
}

impl std::error::Error for Located {}

/// A value that was read, and the warnings about its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed<T> {
    /// The value.
    pub value: T,
    /// The warnings, in the order of the text.
    pub warnings: Vec<Located>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_counted_in_lines_and_characters() {
        let text = "a\nüü x\n";
        assert_eq!(Position::of_offset(text, 0), Position::START);
        let x = Position { line: 2, column: 4 };
        assert_eq!(Position::of_offset(text, 7), x);
        let end = Position { line: 3, column: 1 };
        assert_eq!(Position::of_offset(text, 99), end);
    }

    #[test]
    fn an_offset_inside_a_character_is_that_character() {
        assert_eq!(
            Position::of_offset("aü", 2),
            Position { line: 1, column: 2 }
        );
    }

    #[test]
    fn a_located_message_begins_with_its_place() {
        let at = Position {
            line: 7,
            column: 16,
        };
        let located = Fault::new(at, "max_retries must be positive").in_file("plan.yaml");
        assert_eq!(
            located.to_string(),
            "plan.yaml:7:16: max_retries must be positive"
        );
    }
}
