//! Distinguishes what git leaves out of a commit and checks may need from what programs make again by
//! themselves.

use crate::text::has_word;

/// Directories of caches, installed dependencies and compiled code. One that is missing here only costs another
/// run of the checks.
const REMADE: &str = "__pycache__ _build bower_components build coverage deps env htmlcov node_modules obj playwright-report target
    test-results vendor venv";

/// Hidden directories of caches, installed dependencies, compiled code and settings of editors. Others may hold
/// anything.
const HIDDEN: &str = "angular astro bundle cache ccls-cache clangd conda coverage dart_tool direnv docusaurus eggs expo fleet git
    gradle history hypothesis idea ipynb_checkpoints ivy2 jj kotlin local m2 metals next npm nox nuget nuxt nx
    nyc_output output parcel-cache pixi pnpm-store pub-cache pyre python_packages pytype rustup scannerwork
    serverless settings stack-work svelte-kit swiftpm terraform tox turbo venv vite vs vscode yarn zig-cache";

/// Whether a directory of this name is hidden and holds what programs make again.
fn is_hidden(name: &str) -> bool {
    let hidden = name.strip_prefix('.');
    hidden.is_some_and(|name| {
        let ends = ["-cache", "_cache", "cache", "venv"];
        has_word(HIDDEN, name) || ends.iter().any(|end| name.ends_with(end))
    })
}

/// Directories of installed dependencies, which builds use and do not make again.
const DEPENDENCIES: &str = ".bundle .conda .eggs .pixi .python_packages .venv bower_components deps env node_modules vendor venv";

/// Whether a directory holds installed dependencies.
pub fn holds_dependencies(path: &str) -> bool {
    has_word(DEPENDENCIES, path.rsplit('/').next().unwrap_or(path))
}

/// Ends of files that programs make again.
const REMADE_FILES: &str = ".class .coverage .DS_Store .egg-info .eslintcache .gcda .gcno .lcov .lock .log .o .obj .profraw .pyc .pyo .swp
    .tmp .tsbuildinfo package-lock.json ~";

/// Whether a file lists what a build has made, so that the build does not make it again.
pub fn is_list_of_products(path: &[u8]) -> bool {
    path.ends_with(b".tsbuildinfo")
}

/// Whether checks may need what is at this path, which git ignores: a file, or everything in a directory.
pub fn may_be_needed(path: &str, is_directory: bool) -> bool {
    let mut above: Vec<&str> = path.split('/').collect();
    let name = if is_directory {
        ""
    } else {
        above.pop().unwrap_or_default()
    };
    let is_remade =
        |dir: &&str| is_hidden(dir) || has_word(REMADE, dir) || dir.ends_with(".egg-info");
    !above.iter().any(is_remade)
        && !REMADE_FILES
            .split_whitespace()
            .any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::may_be_needed;

    #[test]
    fn what_programs_make_again_is_told_from_what_is_written() {
        for (path, is_directory) in [
            ("out", true),
            ("src/lib", true),
            (".env", false),
            ("conftest.py", false),
            (".cargo/config.toml", false),
            (".lib/a.py", false),
            (".data", true),
            ("data/a.csv", false),
        ] {
            assert!(may_be_needed(path, is_directory), "{path}");
        }
        for (path, is_directory) in [
            ("node_modules", true),
            ("packages/a/node_modules", true),
            ("target", true),
            ("node_modules/a/index.js", false),
            (".pytest_cache", true),
            (".venv", true),
            (".svelte-kit", true),
            (".mypy_cache/x", false),
            ("x.egg-info", true),
            ("src/a.pyc", false),
            ("debug.log", false),
            ("Cargo.lock", false),
        ] {
            assert!(!may_be_needed(path, is_directory), "{path}");
        }
    }
}
