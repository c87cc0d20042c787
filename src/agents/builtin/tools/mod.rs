//! The tools that access the work tree.

mod read_only;
mod tree;

use crate::process::{Cancel, CommandSpec, HeadTail, Input, Limits, clean_text, run};
use crate::sandbox::Policy;
use sprag_agent::edit;
use sprag_agent::session::ToolResult;
use sprag_agent::tool::ToolRequest;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tree::Tree;

/// Number of bytes that are kept from the start and from the end of a command's output.
const OUTPUT_HEAD: usize = 10 << 10;
const OUTPUT_TAIL: usize = 14 << 10;
/// The default and the maximum time limit of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);
const MAX_COMMAND_TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit for reading files.
const LOOK_TIMEOUT: Duration = Duration::from_secs(60);

/// The work tree, and the environment of its commands.
#[derive(Debug)]
pub(super) struct Toolbox {
    tree: Tree,
    work_tree: PathBuf,
    env: Vec<(OsString, OsString)>,
    sandbox: Option<Policy>,
    cancel: Cancel,
    /// What tools that change files left in them since `changed_by_commands` was last called.
    counted: BTreeMap<String, Content>,
}

/// The digest of a file's content; `None` for no file, or one too large to be read.
type Content = Option<blake3::Hash>;

impl Toolbox {
    pub(super) fn new(
        work_tree: &Path,
        env: Vec<(OsString, OsString)>,
        sandbox: Option<Policy>,
        cancel: &Cancel,
    ) -> Self {
        Self {
            tree: Tree::new(work_tree),
            work_tree: work_tree.to_owned(),
            env,
            sandbox,
            cancel: cancel.clone(),
            counted: BTreeMap::new(),
        }
    }

    /// Carries out a call. Commands get at most the time `left`. What they change is not reported, because that
    /// takes an inspection of the whole work tree.
    pub(super) async fn call(&mut self, request: &ToolRequest, left: Duration) -> ToolResult {
        let request = &request.clone().with_paths(|path| self.relative(path));
        match request {
            ToolRequest::ReadFile { path, start, end } => {
                let read = read_only::read(&self.tree, path, *start, *end);
                let mut result = told(read);
                if result.ok {
                    result.read.extend(Tree::normal(path));
                }
                result
            }
            ToolRequest::ListFiles { path } => {
                let path = path.clone().unwrap_or_default();
                self.read_only(move |tree| read_only::list(tree, &path))
                    .await
            }
            ToolRequest::Search { pattern, path } => {
                let (pattern, path) = (pattern.clone(), path.clone().unwrap_or_default());
                self.read_only(move |tree| read_only::search(tree, &pattern, &path))
                    .await
            }
            ToolRequest::RunCommand {
                command,
                timeout_seconds,
            } => {
                // Models that send every parameter send 0 for none.
                let asked = timeout_seconds
                    .filter(|seconds| *seconds > 0)
                    .map_or(COMMAND_TIMEOUT, Duration::from_secs);
                let timeout = asked.min(MAX_COMMAND_TIMEOUT).min(left);
                self.command(command, timeout).await
            }
            _ => match self.change(request) {
                Ok((output, changed)) => {
                    for path in &changed {
                        self.counted.insert(path.clone(), self.digest(path));
                    }
                    ToolResult {
                        changed,
                        ..told(Ok(output))
                    }
                }
                Err(why) => told(Err(why)),
            },
        }
    }

    /// The files that commands changed, among all that changed since the last call: those whose present content is
    /// not counted yet.
    pub(super) fn changed_by_commands(&mut self, mut changed: Vec<String>) -> Vec<String> {
        let counted = std::mem::take(&mut self.counted);
        changed.retain(|path| counted.get(path).is_none_or(|it| *it != self.digest(path)));
        changed
    }

    fn digest(&self, path: &str) -> Content {
        self.tree
            .read(path)
            .ok()
            .map(|content| blake3::hash(&content))
    }

    /// A path relative to the root of the work tree. Models that know the working directory use absolute
    /// paths.
    fn relative(&self, path: &str) -> String {
        let inside = Path::new(path)
            .strip_prefix(&self.work_tree)
            .ok()
            .and_then(Path::to_str);
        inside.unwrap_or(path).to_owned()
    }

    /// Carries out a file change. Returns the message for the model and the changed files.
    fn change(&self, request: &ToolRequest) -> Result<(String, Vec<String>), String> {
        let tree = &self.tree;
        match request {
            ToolRequest::EditFile {
                path,
                search,
                replace,
            } => {
                let text = String::from_utf8(tree.read(path)?).map_err(|_| {
                    format!("{path} is not UTF-8 and cannot be edited; use run_command")
                })?;
                let edited = edit::replaced(path, &text, search, replace)?;
                tree.write(path, edited.as_bytes())?;
                Ok((format!("edited {path}"), vec![Tree::normal(path)?]))
            }
            ToolRequest::WriteFile { path, content } => {
                let before = tree.read(path).ok();
                if before.as_deref() == Some(content.as_bytes()) {
                    return Ok((
                        format!("{path} has exactly this content already"),
                        Vec::new(),
                    ));
                }
                tree.write(path, content.as_bytes())?;
                let bytes = content.len();
                Ok((
                    format!("wrote {bytes} bytes to {path}"),
                    vec![Tree::normal(path)?],
                ))
            }
            ToolRequest::DeleteFile { path } => {
                tree.delete(path)?;
                Ok((format!("deleted {path}"), vec![Tree::normal(path)?]))
            }
            ToolRequest::MoveFile { from, to } => {
                tree.rename(from, to)?;
                let changed = vec![Tree::normal(from)?, Tree::normal(to)?];
                Ok((format!("moved {from} to {to}"), changed))
            }
            other => Err(format!("{} does nothing to files", other.name())),
        }
    }

    /// Inspects many files on a separate thread, so that the call can be cancelled meanwhile.
    async fn read_only(
        &self,
        read_only: impl FnOnce(&Tree) -> Result<String, String> + Send + 'static,
    ) -> ToolResult {
        let tree = self.tree.clone();
        let looking = tokio::task::spawn_blocking(move || read_only(&tree));
        tokio::select! {
            looked = tokio::time::timeout(LOOK_TIMEOUT, looking) => match looked {
                Ok(Ok(outcome)) => told(outcome),
                Ok(Err(_)) => told(Err("the look failed".into())),
                Err(_) => told(Err("there is too much to look at; name a directory".into())),
            },
            _ = self.cancel.cancelled() => told(Err("cancelled".into())),
        }
    }

    async fn command(&self, command: &str, timeout: Duration) -> ToolResult {
        let spec = CommandSpec {
            program: "sh".into(),
            // One pipe for both outputs preserves their order.
            args: vec!["-c".into(), format!("exec 2>&1\n{command}").into()],
            cwd: self.work_tree.clone(),
            env: self.env.clone(),
            stdin: Input::Null,
            limits: Limits {
                timeout: Some(timeout),
                ..Limits::default()
            },
            sandbox: self.sandbox.clone(),
        };
        let mut output = HeadTail::new(OUTPUT_HEAD, OUTPUT_TAIL);
        let ended = run(&spec, &self.cancel, &mut |_, chunk: &[u8]| {
            output.push(chunk)
        })
        .await;
        let omitted = output.omitted();
        let (mut head, tail) = output.into_parts();
        if omitted > 0 {
            head.extend(format!("\n[{omitted} bytes left out here]\n").into_bytes());
        }
        head.extend(tail);
        let mut text = clean_text(&head);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("({})", ended.exit));
        if !ended.leaked.is_empty() {
            text.push_str(" (what it left running was ended)");
        }
        ToolResult {
            ok: ended.exit.is_success(),
            output: text,
            ..ToolResult::default()
        }
    }
}

fn told(outcome: Result<String, String>) -> ToolResult {
    let (ok, output) = match outcome {
        Ok(output) => (true, output),
        Err(why) => (false, why),
    };
    ToolResult {
        ok,
        output,
        ..ToolResult::default()
    }
}

#[cfg(test)]
mod tests;
