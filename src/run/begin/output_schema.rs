//! Loads and validates the schema for the last task's final message.

use crate::context::Context;
use crate::domain::output_schema::OutputSchema;
use crate::error::{Error, Result};
use crate::git::{Real, Repo, path_within};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::lookup::Checkout;
use crate::github::request::RunRequest;
use crate::settings;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The source of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaSource {
    /// The schema as text.
    Inline(String),
    /// The path of a file.
    File(PathBuf),
}

impl SchemaSource {
    /// Parses a value of the setting. A relative path is relative to `directory`.
    pub fn of(value: &str, directory: &Path) -> Self {
        if value.trim_start().starts_with('{') {
            Self::Inline(value.to_owned())
        } else {
            Self::File(directory.join(value))
        }
    }

    /// Reads the schema. A file in the work tree is read from the base branch on a pull request, and
    /// from the commit that the run started on when it resumes (`repo`), so that the author of the work
    /// cannot change what it must return.
    ///
    /// # Errors
    /// When it cannot be read, or is not a valid schema.
    pub fn load(
        &self,
        context: &Context,
        real: &Real,
        request: Option<&RunRequest>,
        repo: Option<&Repo>,
    ) -> Result<OutputSchema> {
        let (name, text) = match self {
            Self::Inline(text) => ("output_schema".to_owned(), text.clone().into_bytes()),
            Self::File(path) => {
                let name = path_within(path, real.work_tree());
                let text = read(context, real, path, request, repo)?;
                (format!("the output schema {name}"), text)
            }
        };
        let refused = |why: &str| {
            Error::config(format!("{name}: {why}")).hint(
                "output_schema is the path of a JSON Schema, or one as text that begins with {",
            )
        };
        let text = String::from_utf8(text).map_err(|_| refused("it is not UTF-8 text"))?;
        OutputSchema::parse(&text).map_err(|why| refused(&why))
    }
}

fn read(
    context: &Context,
    real: &Real,
    path: &Path,
    request: Option<&RunRequest>,
    repo: Option<&Repo>,
) -> Result<Vec<u8>> {
    const WHAT: &str = "output schema";
    let base = request
        .filter(|request| request.is_pull)
        .and_then(|request| request.base_ref.as_deref());
    let actions = ActionsEnvironment::of(context);
    match (path.strip_prefix(real.work_tree()), base, actions, repo) {
        (Ok(inside), Some(base), Some(actions), _) => {
            let checkout = Checkout::of(context, &actions, real);
            let found = checkout.file_of_branch(base, inside)?;
            found.ok_or_else(|| {
                let path = inside.display();
                Error::config(format!("the branch {base} has no {WHAT} {path}")).hint(
                    "on a pull request it is read from the base branch: commit it there first",
                )
            })
        }
        (Ok(inside), _, _, Some(repo)) => {
            let kept = repo.base_file(inside.as_os_str().as_bytes())?;
            kept.map_or_else(|| settings::read_file(path, WHAT), Ok)
        }
        _ => settings::read_file(path, WHAT),
    }
}
