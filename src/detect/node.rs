//! JavaScript and TypeScript projects: package.json and Deno.

use super::{Listing, Toolchain};
use crate::domain::checks::verdict::CheckKind;
use serde_json::Value;

/// The scripts that are proposed if a package has them.
const SCRIPTS: [(&str, CheckKind); 5] = [
    ("build", CheckKind::Build),
    ("test", CheckKind::Test),
    ("lint", CheckKind::Lint),
    ("typecheck", CheckKind::Lint),
    ("type-check", CheckKind::Lint),
];

pub(super) fn package(files: &Listing) -> Option<Toolchain> {
    let manifest: Value = serde_json::from_str(files.read("package.json")).ok()?;
    let manager = Manager::of(files, &manifest);
    let mut found = Toolchain::in_language("package.json", "node");
    if let Some(install) = manager.install(files, &manifest) {
        found.setup(install);
    }
    let text = |script: &str| manifest["scripts"][script].as_str().unwrap_or_default();
    let test = format!("{} {}", text("pretest"), text("test"));
    let runs_with_tests =
        |script: &str| test.contains(" run ") && test.split_whitespace().any(|word| word == script);
    for (script, kind) in SCRIPTS {
        let text = text(script);
        if is_placeholder_or_watcher(text) || runs_with_tests(script) {
            continue;
        }
        // Without CI in its environment, this test runner waits for files to change.
        let prefix = if text.contains("react-scripts test") {
            "CI=true "
        } else {
            ""
        };
        found.check_from(
            manager.name(),
            kind,
            format!("{prefix}{}", manager.script(script)),
            format!("the script {script} of package.json"),
        );
    }
    Some(found)
}

pub(super) fn deno(files: &Listing) -> Option<Toolchain> {
    let name = ["deno.json", "deno.jsonc"]
        .into_iter()
        .find(|name| files.has(name))?;
    // A file with comments is not JSON: its tasks stay unknown and the default commands are proposed.
    let manifest: Value = serde_json::from_str(files.read(name)).unwrap_or_default();
    let has_task = |task: &str| !manifest["tasks"][task].is_null();
    let mut found = Toolchain::of(name);
    if has_task("build") {
        found.check("deno", CheckKind::Build, "deno task build");
    }
    let test = if has_task("test") {
        "deno task test"
    } else {
        "deno test"
    };
    found.check("deno", CheckKind::Test, test);
    let lint = if has_task("lint") {
        "deno task lint"
    } else {
        "deno lint"
    };
    found.check("deno", CheckKind::Lint, lint);
    Some(found)
}

/// Whether a script is the placeholder of `npm init`, or one that watches files and never ends.
fn is_placeholder_or_watcher(script: &str) -> bool {
    script.trim().is_empty()
        || script.contains("Error: no test specified")
        || script
            .split_whitespace()
            .any(|word| matches!(word, "--watch" | "--watchAll" | "--watch=true" | "watch"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

impl Manager {
    /// The package manager that the package names, otherwise the one that has a lock file, otherwise npm.
    fn of(files: &Listing, manifest: &Value) -> Self {
        let declared = manifest["packageManager"].as_str().unwrap_or_default();
        match declared.split('@').next().unwrap_or_default() {
            "pnpm" => Self::Pnpm,
            "yarn" => Self::Yarn,
            "bun" => Self::Bun,
            "npm" => Self::Npm,
            _ if files.has("pnpm-lock.yaml") => Self::Pnpm,
            _ if files.has("yarn.lock") => Self::Yarn,
            _ if files.has_any(&["bun.lock", "bun.lockb"]) => Self::Bun,
            _ => Self::Npm,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Bun => "bun",
        }
    }

    /// The command that runs a script of the package.
    fn script(self, script: &str) -> String {
        match (self, script) {
            (Self::Npm | Self::Pnpm, "test") => format!("{} test", self.name()),
            _ => format!("{} run {script}", self.name()),
        }
    }

    /// The command that installs from the lock file without changing it, or `None` for a package without
    /// dependencies.
    fn install(self, files: &Listing, manifest: &Value) -> Option<&'static str> {
        let needs = |key: &str| {
            manifest[key]
                .as_object()
                .is_some_and(|names| !names.is_empty())
        };
        let locked = files.has_any(match self {
            Self::Npm => &["package-lock.json", "npm-shrinkwrap.json"],
            Self::Pnpm => &["pnpm-lock.yaml"],
            Self::Yarn => &["yarn.lock"],
            Self::Bun => &["bun.lock", "bun.lockb"],
        });
        let workspaces = !manifest["workspaces"].is_null() || files.has("pnpm-workspace.yaml");
        if !locked && !workspaces && !needs("dependencies") && !needs("devDependencies") {
            return None;
        }
        Some(match (self, locked) {
            (Self::Npm, true) => "npm ci",
            (Self::Npm, false) => "npm install --no-package-lock",
            (Self::Pnpm, true) => "pnpm install --frozen-lockfile",
            (Self::Pnpm, false) => "pnpm install --no-lockfile",
            (Self::Yarn, true) if is_yarn_2_or_later(files, manifest) => "yarn install --immutable",
            (Self::Yarn, true) => "yarn install --frozen-lockfile",
            (Self::Yarn, false) => "yarn install",
            (Self::Bun, true) => "bun install --frozen-lockfile",
            (Self::Bun, false) => "bun install --no-save",
        })
    }
}

fn is_yarn_2_or_later(files: &Listing, manifest: &Value) -> bool {
    match manifest["packageManager"]
        .as_str()
        .and_then(|declared| declared.strip_prefix("yarn@"))
    {
        Some(version) => !version.starts_with("1."),
        None => files.has_any(&[".yarnrc.yml", ".pnp.cjs"]),
    }
}
