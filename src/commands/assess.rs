//! `sprag assess`: classifies a final message.

use crate::cli::AssessArgs;
use crate::context::Context;
use crate::domain::assess::message::{MessageClass, read_message};
use crate::error::{Error, Result};
use crate::print::print;
use anyhow::Context as _;
use serde::Deserialize;
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, Read as _, Write as _, stdin, stdout};
use std::path::Path;

/// Longest final message that is read, in bytes.
const MAX_MESSAGE_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
struct MessageLine {
    id: serde_json::Value,
    text: String,
}

/// Runs the command and returns the process's exit code.
///
/// # Errors
/// When the message cannot be read.
pub fn command(context: &Context, args: &AssessArgs) -> Result<u8> {
    let mut input: Box<dyn std::io::BufRead> = if args.file == Path::new("-") {
        Box::new(stdin().lock())
    } else {
        let path = context.cwd.join(&args.file);
        let file = fs::File::open(&path)
            .map_err(|error| Error::usage(format!("{} cannot be read: {error}", path.display())))?;
        Box::new(std::io::BufReader::new(file))
    };
    if args.jsonl {
        return assess_lines(&mut input);
    }
    let mut bytes = Vec::new();
    input
        .take(MAX_MESSAGE_BYTES)
        .read_to_end(&mut bytes)
        .context("the message cannot be read")?;
    let reading = read_message(&String::from_utf8_lossy(&bytes), false);
    let mut text = format!("{}\n", word(reading.class));
    for indicator in &reading.indicators {
        text += &format!("  {indicator}\n");
    }
    print(context, &text)?;
    Ok(0)
}

fn assess_lines(input: &mut dyn std::io::BufRead) -> Result<u8> {
    let mut out = std::io::BufWriter::new(stdout().lock());
    for (number, line) in input.lines().enumerate() {
        let line = line.with_context(|| format!("line {} cannot be read", number + 1))?;
        if line.trim().is_empty() {
            continue;
        }
        let message: MessageLine = serde_json::from_str(&line).map_err(|error| {
            Error::usage(format!(
                "line {} is not {{\"id\", \"text\"}}: {error}",
                number + 1
            ))
        })?;
        let reading = read_message(&message.text, false);
        let said = json!({
            "id": message.id,
            "assessment": word(reading.class),
            "indicators": reading.indicators,
        });
        writeln!(out, "{said}").context("the assessment cannot be printed")?;
    }
    out.flush().context("the assessment cannot be printed")?;
    Ok(0)
}

/// The assessment that a turn without changes gets with such a message.
fn word(class: MessageClass) -> &'static str {
    match class {
        MessageClass::Other => "no_change",
        class => class.into(),
    }
}
