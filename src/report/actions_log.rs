//! The log of GitHub Actions. The runner reads commands from every line of a step's output, so everything
//! except Sprag's own commands is written between `::stop-commands::` and its token, and is neutralised as
//! well.

use crate::report::buffered_output::{Time, print_to_stderr};
use crate::report::text::{COLOURED, is_invisible};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Longest line in bytes that is written as one. A longer one is continued on the next line, so that a line
/// of any length needs bounded memory.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Generates the token of one protected section. An agent must not be able to guess it.
pub type Token = Box<dyn FnMut() -> String + Send>;

/// The log of a step. Everything written to it through [`Write`] is text in which no command has an effect;
/// only [`ActionsLog::command`] issues commands. Clones write to the same log.
#[derive(Clone)]
pub struct ActionsLog(Arc<Mutex<Log>>);

struct Log {
    out: Box<dyn Write + Send>,
    token: Token,
    stopped: Option<String>,
    pending: Vec<u8>,
    after_return: bool,
}

impl ActionsLog {
    /// Protects `out`. `token` generates a new random token for each section of text.
    pub fn new(out: Box<dyn Write + Send>, token: Token) -> Self {
        let log = Log {
            out,
            token,
            stopped: None,
            pending: Vec::new(),
            after_return: false,
        };
        Self(Arc::new(Mutex::new(log)))
    }

    /// Writes workflow commands for the runner, one per line. They must be made by
    /// [`super::workflow_command`], which escapes their content.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn command(&self, commands: &[String]) -> io::Result<()> {
        match commands {
            [] => Ok(()),
            _ => self.log().command(commands),
        }
    }

    /// Ends the open line and lets the runner accept commands again, so that later output of the step's other
    /// programs is not affected. Text may still follow: it starts a new section.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn finish(&self) -> io::Result<()> {
        let mut log = self.log();
        log.end_line()?;
        log.resume()?;
        log.out.flush()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for ActionsLog {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.log().text(text)?;
        Ok(text.len())
    }

    /// Flushes complete lines. An incomplete line waits for its end, because only then it is known how the
    /// runner interprets it.
    fn flush(&mut self) -> io::Result<()> {
        self.log().out.flush()
    }
}

impl Log {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        for &byte in text {
            match byte {
                b'\n' if self.after_return => self.after_return = false,
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    self.line()?;
                }
                _ => {
                    self.after_return = false;
                    self.pending.push(byte);
                    if self.pending.len() >= MAX_LINE_BYTES {
                        self.piece()?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes as much of an overlong line as ends on a character boundary.
    fn piece(&mut self) -> io::Result<()> {
        let whole = match std::str::from_utf8(&self.pending) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.pending.len(),
        };
        let rest = self.pending.split_off(whole);
        self.line()?;
        self.pending = rest;
        Ok(())
    }

    fn line(&mut self) -> io::Result<()> {
        self.stop()?;
        let line = neutral(&String::from_utf8_lossy(&self.pending));
        self.pending.clear();
        self.out.write_all(format!("{line}\n").as_bytes())
    }

    fn end_line(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            Ok(())
        } else {
            self.line()
        }
    }

    fn command(&mut self, commands: &[String]) -> io::Result<()> {
        self.end_line()?;
        self.resume()?;
        for command in commands {
            self.out.write_all(format!("{command}\n").as_bytes())?;
        }
        self.out.flush()
    }

    fn stop(&mut self) -> io::Result<()> {
        if self.stopped.is_none() {
            let token = (self.token)();
            self.out
                .write_all(format!("::stop-commands::{token}\n").as_bytes())?;
            self.stopped = Some(token);
        }
        Ok(())
    }

    fn resume(&mut self) -> io::Result<()> {
        match self.stopped.take() {
            None => Ok(()),
            Some(token) => self.out.write_all(format!("::{token}::\n").as_bytes()),
        }
    }
}

impl Drop for Log {
    /// However the log ends, the runner then accepts the commands of the step's other programs again.
    fn drop(&mut self) {
        // Nobody is left to report an error to.
        let _ = self.end_line().and_then(|()| self.resume());
        let _ = self.out.flush();
    }
}

/// Makes JSON in which the runner finds no command, with the same meaning: a `#` can only occur in a string,
/// where it may be escaped. Line ends in strings are already escaped.
pub fn neutral_json(json: String) -> String {
    if has_command(&json) {
        json.replace('#', "\\u0023")
    } else {
        json
    }
}

/// Prints a warning that no report shows.
pub fn print_warning(warning: &str, time: Time) {
    print_to_stderr(&format!("warning: {}\n", neutral(warning)), time);
}

/// Whether there is a `##[` between whose characters nothing is but what is passed over.
fn has_command(json: &str) -> bool {
    let mut rest = json;
    while let Some((_, after)) = rest.split_once('#') {
        let mut seen = after.chars().filter(|&c| !is_passed_over(c));
        if (seen.next(), seen.next()) == (Some('#'), Some('[')) {
            return true;
        }
        rest = after;
    }
    false
}

/// Makes a line in which the runner finds no command: no `##[`, and no `::` at the start. Characters that a
/// culture-sensitive comparison ignores (control, zero-width and other invisible characters) are removed
/// first, so that they cannot hide a command here and reveal it there. Colours are kept.
pub fn neutral(line: &str) -> String {
    let mut safe = String::with_capacity(line.len());
    let mut hashes = 0;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let (kept, next) = match colour(rest) {
            Some(length) => rest.split_at(length),
            None => rest.split_at(c.len_utf8()),
        };
        rest = next;
        let opens = c == '[' || kept.len() > c.len_utf8();
        if kept.chars().count() == 1 && is_passed_over(c) {
            continue;
        }
        if opens && hashes >= 2 {
            safe.push(' ');
        }
        hashes = if c == '#' { hashes + 1 } else { 0 };
        safe.push_str(if c == '\t' { "    " } else { kept });
    }
    let content = safe.trim_start_matches(is_trimmed);
    match content
        .strip_prefix(':')
        .filter(|after| after.starts_with(':'))
    {
        Some(after) => format!(": {after}"),
        None => safe,
    }
}

/// The length of the colour sequence at the start of `text`: `ESC [ digits and ; m`.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters.get(end..)?.starts_with('m').then_some(end + 3)
}

fn is_passed_over(c: char) -> bool {
    (c.is_control() && c != '\t') || c == COLOURED || is_invisible(c)
}

fn is_trimmed(c: char) -> bool {
    c.is_whitespace() || is_passed_over(c)
}

#[cfg(test)]
mod tests;
