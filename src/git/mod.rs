//! git, through a git directory of Sprag's own.
//!
//! An agent can write to the repository's `.git`: its configuration and hooks could run foreign code in
//! Sprag's process, and its index could hide changes. Therefore everything that reads the work tree goes
//! through a private directory that is made before the first turn. Sprag accesses the repository itself only
//! to read and move refs, with everything that could run a program switched off.

mod bytes;
mod command;
mod commit;
mod damage;
mod discover;
mod entries;
mod error;
mod files;
mod filters;
pub mod foreign_bytes;
mod jj;
mod objects;
mod preflight;
mod private;
mod real;
mod remote;
mod repo;
mod snapshot;
mod special_files;
mod survey;
#[cfg(test)]
mod tests;

pub use bytes::{display_path, display_paths, path_in_tree, path_within};
pub use commit::conflict::{ConflictKind, ConflictedFile, MarkError, MarkedMerge, lines};
pub use commit::facts::{CommitFacts, CommitLine, Signature};
pub use commit::hooks::{Hook, HookInvocation, idle_hooks_of};
pub use commit::rebase::{RebaseError, Rebased, Rewritten};
pub use commit::request::{
    CommitError, CommitRequest, Identity, LandingIntent, PlanContent, Stage, Staged,
};
pub use commit::restore::Restored;
pub use commit::swap::{Replaced, SwapError, TreeId};
pub use discover::discover;
pub use error::GitError;
pub use files::remove as remove_tree;
pub use jj::jj_remedy;
pub use preflight::{Operation, PreflightError};
pub use private::credentials::{
    PersistedCredential, PersistedKind, persisted_credentials, without_userinfo,
};
pub use private::guard::{AgentCommit, TurnMark, TurnReport, Violation};
pub use real::{Environment, FilterSandbox, Real};
pub use remote::api_changes::{ApiChanges, ApiChangesError};
pub use remote::bundle::BundleError;
pub use remote::exchange::{ANCESTORS, Credential, Remote};
pub use remote::kept_work::{KEPT_WORK_REFS, KeptWork, KeptWorkRef};
pub use remote::names::{BranchName, rescue_branch};
pub use remote::push::{PushOutcome, PushSpec};
pub use remote::refusal::{
    ExchangeFailure, RETRY_PAUSES, Refusal, RefusalKind, RemoteError, classify,
};
pub use remote::switch::{MoveIntent, SwitchError};
pub use repo::Repo;
pub use snapshot::blobs::BlobReader;
pub use snapshot::change::{Change, ChangeKind, Exempt, PlanExempt, RawSnapshot};
pub use snapshot::contents::OwnCommit;
pub use snapshot::layout::holds_ignore_rules;
pub use snapshot::listing::{ChangedPath, GITLINK, SYMLINK};
pub use survey::{
    Checkout, GitVersion, Nested, UncommittedChanges, checkout, git_version, history, identity_of,
    merge_target, nested, uncommitted_changes, untracked_files, upper_paths,
};
