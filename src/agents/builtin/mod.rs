//! The program around the built-in agent ([`sprag_agent`]): the connection to its model, and its commands.

mod http;
mod servers;

use crate::http::jittered;
use crate::process::{Cancel, CommandSpec, HeadTail, Input, Limits, clean_text, run};
use crate::sandbox::Policy;
pub use http::Http;
pub use servers::{Servers, not_used};
use sprag_agent::host::{Host, Outcome};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Number of bytes that are kept from the start and from the end of a command's output.
const OUTPUT_HEAD: usize = 10 << 10;
const OUTPUT_TAIL: usize = 14 << 10;

/// Where the commands of a turn run, and how it is cancelled.
pub struct Shell<'a> {
    /// The work tree, absolute.
    pub work_tree: &'a Path,
    /// The complete environment of the commands, without the model's key.
    pub env: Vec<(OsString, OsString)>,
    /// How the commands are confined.
    pub sandbox: Option<Policy>,
    /// The MCP servers.
    pub servers: &'a Servers<'a>,
    /// Signalled when the turn must end.
    pub cancel: &'a Cancel,
    /// The longest wait before a request is retried, whatever the provider asks for.
    pub longest_wait: Duration,
}

impl Host for Shell<'_> {
    async fn command(&self, command: &str, timeout: Duration) -> Outcome {
        let spec = CommandSpec {
            program: "sh".into(),
            // One pipe for both outputs preserves their order.
            args: vec!["-c".into(), format!("exec 2>&1\n{command}").into()],
            cwd: self.work_tree.to_owned(),
            env: self.env.clone(),
            stdin: Input::Null,
            limits: Limits::within(timeout),
            sandbox: self.sandbox.clone(),
        };
        let mut kept = HeadTail::new(OUTPUT_HEAD, OUTPUT_TAIL);
        let ended = run(&spec, self.cancel, &mut |_, chunk: &[u8]| kept.push(chunk)).await;
        let mut output = bounded(kept);
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        output.push_str(&format!("({})", ended.exit));
        if !ended.leaked.is_empty() {
            output.push_str(" (what it left running was ended)");
        }
        if ended.exit.is_success() {
            Ok(output)
        } else {
            Err(output)
        }
    }

    async fn served(&self, tool: &str, arguments: &str, timeout: Duration) -> Outcome {
        tokio::select! {
            biased;
            () = self.cancelled() => Err("cancelled".to_owned()),
            result = self.servers.call(tool, arguments, timeout) => result,
        }
    }

    async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.reason().is_some()
    }

    async fn pause(&self, wait_ms: u64) {
        tokio::time::sleep(jittered(wait_ms, self.longest_wait)).await;
    }
}

/// What was kept of an output, with the number of bytes that were not.
fn bounded(kept: HeadTail) -> String {
    let omitted = kept.omitted();
    let (mut bytes, tail) = kept.into_parts();
    if omitted > 0 {
        bytes.extend(format!("\n[{omitted} bytes left out here]\n").into_bytes());
    }
    bytes.extend(tail);
    clean_text(&bytes)
}

#[cfg(test)]
mod tests;
