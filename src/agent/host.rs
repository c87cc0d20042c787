//! What the agent needs of the program that it works in, besides a connection to its model.

use std::time::Duration;

/// The output of a command or a tool for the model, within bounds, or why it failed.
pub type Outcome = Result<String, String>;

/// The program around the agent: it confines commands, ends turns early, and knows how long a wait may be.
pub trait Host {
    /// Runs a shell command in the work tree, for at most `timeout`.
    fn command(&self, command: &str, timeout: Duration) -> impl Future<Output = Outcome>;

    /// Calls a tool of an MCP server with these arguments, in JSON, for at most `timeout`.
    fn served(
        &self,
        tool: &str,
        arguments: &str,
        timeout: Duration,
    ) -> impl Future<Output = Outcome>;

    /// Ends when the turn must end.
    fn cancelled(&self) -> impl Future<Output = ()>;

    /// Whether the turn must end.
    fn is_cancelled(&self) -> bool;

    /// Waits about this long, so that clients that failed together do not retry together.
    fn pause(&self, wait_ms: u64) -> impl Future<Output = ()>;
}
