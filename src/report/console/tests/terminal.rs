//! A minimal terminal emulator for testing the display.

use super::Size;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// Accepts output like a terminal, and returns the rows of its screen including those that scrolled off.
#[derive(Clone)]
pub struct Terminal(Arc<Mutex<(vte::Parser, Screen)>>);

struct Screen {
    size: Size,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Terminal {
    pub fn new(size: Size) -> Self {
        let screen = Screen {
            size,
            rows: vec![Vec::new()],
            row: 0,
            column: 0,
        };
        Self(Arc::new(Mutex::new((vte::Parser::new(), screen))))
    }

    /// Echoes a key press while no program reads.
    pub fn echo(&self, text: &str) {
        let mut terminal = self.clone();
        terminal.write_all(text.as_bytes()).unwrap();
    }

    /// Every row without trailing spaces. Empty rows at the end are left out.
    pub fn rows(&self) -> Vec<String> {
        let inner = self.0.lock().unwrap();
        let rows = inner.1.rows.iter();
        let mut rows: Vec<String> = rows
            .map(|row| row.iter().collect::<String>().trim_end().to_owned())
            .collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (parser, screen) = &mut *self.0.lock().unwrap();
        parser.advance(screen, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Screen {
    fn line_feed(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(Vec::new());
        }
    }
}

impl vte::Perform for Screen {
    /// The cursor stays beyond the last column until a character needs the next row.
    fn print(&mut self, c: char) {
        if self.column == usize::from(self.size.columns) {
            self.line_feed();
            self.column = 0;
        }
        let row = &mut self.rows[self.row];
        if row.len() <= self.column {
            row.resize(self.column + 1, ' ');
        }
        row[self.column] = c;
        self.column += 1;
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' => self.column = 0,
            b'\n' => {
                self.line_feed();
                self.column = 0;
            }
            other => panic!("control character {other}"),
        }
    }

    fn csi_dispatch(&mut self, params: &vte::Params, _: &[u8], _: bool, action: char) {
        let first = params.iter().next().and_then(|param| param.first());
        let n = usize::from(first.copied().unwrap_or(0));
        let top = self.rows.len().saturating_sub(self.size.rows.into());
        match action {
            'A' => self.row = self.row.saturating_sub(n.max(1)).max(top),
            'B' => self.row = (self.row + n.max(1)).min(self.rows.len() - 1),
            'K' if n == 2 => self.rows[self.row].clear(),
            'm' => {}
            other => panic!("sequence {other}"),
        }
    }
}
