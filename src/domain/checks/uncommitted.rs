//! Distinguishes what git leaves out of a commit and checks may need from what programs make again by
//! themselves.

/// Directories of caches, installed dependencies and compiled code. One that is missing here only costs another
/// run of the checks.
const REMADE: &[&str] = &[
    "__pycache__",
    "_build",
    "bower_components",
    "build",
    "coverage",
    "deps",
    "env",
    "htmlcov",
    "node_modules",
    "obj",
    "playwright-report",
    "target",
    "test-results",
    "vendor",
    "venv",
];

/// Hidden directories that are read as configuration; the others are caches and settings of editors.
const READ: &[&str] = &[".cargo", ".config", ".mvn"];

/// Ends of files that programs make again.
const REMADE_FILES: &[&str] = &[
    ".class",
    ".coverage",
    ".DS_Store",
    ".egg-info",
    ".eslintcache",
    ".gcda",
    ".gcno",
    ".lcov",
    ".lock",
    ".log",
    ".o",
    ".obj",
    ".profraw",
    ".pyc",
    ".pyo",
    ".swp",
    ".tmp",
    ".tsbuildinfo",
    "package-lock.json",
    "~",
];

/// Whether a file lists what a build has made, so that the build does not make it again.
pub fn is_list_of_products(path: &[u8]) -> bool {
    path.ends_with(b".tsbuildinfo")
}

/// Whether checks may need what is at this path, which git ignores: a file, or everything in a directory.
pub fn may_be_needed(path: &str, is_directory: bool) -> bool {
    let mut above: Vec<&str> = path.split('/').collect();
    let name = match is_directory {
        true => "",
        false => above.pop().unwrap_or_default(),
    };
    let is_remade = |dir: &&str| {
        let is_hidden = dir.starts_with('.') && !READ.contains(dir);
        is_hidden || REMADE.contains(dir) || dir.ends_with(".egg-info")
    };
    !above.iter().any(is_remade) && !REMADE_FILES.iter().any(|end| name.ends_with(end))
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
            ("x.egg-info", true),
            ("src/a.pyc", false),
            ("debug.log", false),
            ("Cargo.lock", false),
        ] {
            assert!(!may_be_needed(path, is_directory), "{path}");
        }
    }
}
