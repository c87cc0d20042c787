//! Names of modules that Python or pytest load themselves.

/// Modules of Python's standard library, of pytest, of what pytest needs and of its usual plugins, separated by
/// whitespace.
const PYTHON_MODULES: &str = include_str!("python_modules.txt");

/// Whether Python or pytest load a module of this name. A file of such a name in the directory from which
/// Python loads modules first runs instead of it.
pub fn is_known_to_python(module: &str) -> bool {
    let mut names = PYTHON_MODULES.split_whitespace();
    names.any(|name| name == module)
}
