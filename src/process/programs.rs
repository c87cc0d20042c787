//! Finds programs on the disk.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Whether `path` is a file that at least one user may execute.
pub fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The executable file for a program's name: a path relative to `cwd` if the name contains a slash, else
/// the first match in the directories of `search_path`.
pub fn find_program(program: &OsStr, search_path: &OsStr, cwd: &Path) -> Option<PathBuf> {
    places(program, search_path, cwd)
        .into_iter()
        .find(|place| is_executable(place))
}

/// All paths that a program's name may refer to, in order of preference.
pub(super) fn places(program: &OsStr, search_path: &OsStr, cwd: &Path) -> Vec<PathBuf> {
    let name = Path::new(program);
    match name.components().count() {
        0 => Vec::new(),
        1 if !program.as_encoded_bytes().contains(&b'/') => std::env::split_paths(search_path)
            .map(|directory| cwd.join(directory).join(name))
            .collect(),
        _ => vec![cwd.join(name)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_program_is_the_first_executable_file_of_its_name() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str, mode: u32| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        at("a/tool", 0o644);
        let tool = at("b/tool", 0o755);
        at("c/tool", 0o755);
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        let find = |name: &str| {
            let path = std::env::join_paths(["a", "b", "c"]).unwrap();
            find_program(name.as_ref(), &path, root.path())
        };
        assert_eq!(find("tool"), Some(tool.clone()));
        assert_eq!(find("./b/tool"), Some(root.path().join("./b/tool")));
        assert_eq!(find("a/tool"), None, "it is not executable");
        assert_eq!(find("b"), None, "a directory is no program");
        assert_eq!(find(tool.to_str().unwrap()), Some(tool));
        assert_eq!(find(""), None);
    }
}
