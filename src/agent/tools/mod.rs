//! The tools that access the work tree.

mod read_only;
mod tree;

use crate::edit;
use crate::host::{Host, Outcome};
use crate::session::ToolResult;
use crate::tool::ToolRequest;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tree::Tree;

/// The default and the maximum time limit of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);
const MAX_COMMAND_TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit for reading files.
const LOOK_TIMEOUT: Duration = Duration::from_secs(60);

/// The work tree, and the program that runs commands in it.
pub(super) struct Toolbox<'a, H> {
    tree: Tree,
    host: &'a H,
    /// What tools that change files left in them since `changed_by_commands` was last called.
    counted: BTreeMap<String, Content>,
}

/// The digest of a file's content; `None` for no file, or one too large to be read.
type Content = Option<blake3::Hash>;

impl<'a, H: Host> Toolbox<'a, H> {
    pub(super) fn new(work_tree: &Path, host: &'a H) -> Self {
        Self {
            tree: Tree::new(work_tree),
            host,
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
                told(self.host.command(command, timeout).await)
            }
            ToolRequest::Served { name, arguments } => {
                let timeout = COMMAND_TIMEOUT.min(left);
                told(self.host.served(name, arguments, timeout).await)
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
        changed.retain(|path| counted.get(path) != Some(&self.digest(path)));
        changed
    }

    fn digest(&self, path: &str) -> Content {
        let content = self.tree.read(path).ok()?;
        Some(blake3::hash(&content))
    }

    /// A path relative to the root of the work tree. Models that know the working directory use absolute
    /// paths.
    fn relative(&self, path: &str) -> String {
        let inside = Path::new(path).strip_prefix(self.tree.root()).ok();
        inside.and_then(Path::to_str).unwrap_or(path).to_owned()
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
                    let same = format!("{path} has exactly this content already");
                    return Ok((same, Vec::new()));
                }
                tree.write(path, content.as_bytes())?;
                let wrote = format!("wrote {} bytes to {path}", content.len());
                Ok((wrote, vec![Tree::normal(path)?]))
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
        read_only: impl FnOnce(&Tree) -> Outcome + Send + 'static,
    ) -> ToolResult {
        let tree = self.tree.clone();
        let looking = tokio::task::spawn_blocking(move || read_only(&tree));
        told(tokio::select! {
            looked = tokio::time::timeout(LOOK_TIMEOUT, looking) => match looked {
                Ok(looked) => looked.unwrap_or_else(|_| Err("the look failed".into())),
                Err(_) => Err("there is too much to look at; name a directory".into()),
            },
            () = self.host.cancelled() => Err("cancelled".into()),
        })
    }
}

fn told(outcome: Outcome) -> ToolResult {
    ToolResult {
        ok: outcome.is_ok(),
        output: outcome.unwrap_or_else(|why| why),
        ..ToolResult::default()
    }
}

#[cfg(test)]
pub(crate) mod tests;
