//! The paths that a child may write, and exceptions below them.

use super::policy::Policy;
use crate::domain::sandbox::Level;
use std::path::{Path, PathBuf};

/// The paths that a child works with. All are absolute and without links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxPaths {
    /// The work tree.
    pub work_tree: PathBuf,
    /// The git directory of the work tree.
    pub git_dir: PathBuf,
    /// The git directory that it shares with other work trees; often the same.
    pub common_dir: PathBuf,
    /// Its own directory for temporary files; empty if it uses the shared one.
    pub temporary: PathBuf,
    /// Paths that it must not write wherever they lie: run directories, the runner's files, programs.
    pub protected: Vec<PathBuf>,
    /// Sockets of programs that would act for the child outside of the sandbox. In the strict form, a place
    /// that is such a socket itself stays reachable.
    pub hidden: Vec<PathBuf>,
}

impl SandboxPaths {
    /// The hidden sockets, except for those that are such a place themselves.
    fn hidden_but(&self, places: &[PathBuf]) -> Vec<PathBuf> {
        let hidden = self.hidden.iter().filter(|path| !places.contains(path));
        hidden.cloned().collect()
    }
}

/// Entries of the git directory that configure git or that git executes.
const GIT_CONFIGURATION: &[&str] = &["config", "config.worktree", "hooks", "info"];

/// Entries of the shared git directory to which a commit adds.
const GIT_SHARED: &[&str] = &["objects", "refs", "logs"];

/// The policy for a child that may also write these places. Also returns the places that it may not
/// write because they contain a protected path, each with that path.
pub fn policy(
    level: Level,
    around: &SandboxPaths,
    places: &[PathBuf],
) -> (Policy, Vec<(PathBuf, PathBuf)>) {
    let mut policy = Policy::of(level);
    policy.write = vec![around.work_tree.clone(), around.temporary.clone()];
    policy.write_below = vec![around.temporary.clone()];
    policy.hidden = around.hidden_but(places);
    git(around, &mut policy);
    let mut refused = Vec::new();
    for place in places {
        let inside = |path: &&PathBuf| path.starts_with(place);
        match around.protected.iter().find(inside) {
            // Without a mount namespace a place is either writable as a whole or not at all.
            Some(protected) if level < Level::Namespaces => {
                refused.push((place.clone(), protected.clone()));
            }
            _ => {
                policy.write.push(place.clone());
                policy.write_below.push(place.clone());
            }
        }
    }
    let is_writable = |path: &PathBuf| places.iter().any(|place| path.starts_with(place));
    let read_only = around.protected.iter().filter(|path| is_writable(path));
    policy.read_only.extend(read_only.cloned());
    let kept = [policy.read_only.as_slice(), &policy.hidden].concat();
    pin_parents(&mut policy, &kept, places);
    // Only writable paths below a read-only one need a mount of their own.
    let read_only = &policy.read_only;
    let is_below = |path: &PathBuf| {
        let mut above = read_only.iter();
        above.any(|read_only| path.starts_with(read_only) && path != read_only)
    };
    policy.write_below.retain(is_below);
    if level < Level::Namespaces {
        // In the strict form, mounts exist only at level 3.
        (policy.read_only, policy.hidden) = (Vec::new(), Vec::new());
        (policy.write_below, policy.pinned) = (Vec::new(), Vec::new());
    }
    (policy, refused)
}

/// The policy for a child whose programs notice the sandbox only when they write a protected path. It
/// may write these places and all of git's own directory. Protected paths below such a place, and hidden sockets,
/// need a mount namespace.
pub fn open_policy(level: Level, around: &SandboxPaths, places: &[PathBuf]) -> Policy {
    let mut policy = Policy::of(level);
    policy.hidden = around.hidden_but(places);
    policy.write = vec![around.work_tree.clone()];
    writable_git(around, &mut policy);
    policy.write.extend(places.iter().cloned());
    let is_below_one = |path: &&PathBuf| places.iter().any(|place| path.starts_with(place));
    let read_only = around.protected.iter().filter(is_below_one);
    let read_only: Vec<PathBuf> = read_only.cloned().collect();
    let kept = [read_only.as_slice(), &policy.hidden, &policy.write[..1]].concat();
    pin_parents(&mut policy, &kept, places);
    if is_below_one(&&around.work_tree) {
        policy.pinned.push(around.work_tree.clone());
    }
    let is_below_another = |path: &&PathBuf| {
        read_only.iter().any(|place| path.starts_with(place)) && !read_only.contains(path)
    };
    policy.write_below = policy
        .write
        .iter()
        .filter(is_below_another)
        .cloned()
        .collect();
    policy.read_only = read_only;
    policy
}

/// The policy for a git process that starts programs of its own, such as filters. It may write these
/// places, except for those that contain something protected, the work tree or a git directory, or lie in
/// one of them. What it needs beyond them is added for each process.
pub fn policy_of_filters(level: Level, around: &SandboxPaths, places: &[PathBuf]) -> Policy {
    let mut policy = Policy::of(level);
    policy.ends_all = true;
    let repository = [&around.work_tree, &around.git_dir, &around.common_dir];
    let kept = || around.protected.iter().chain(repository);
    let is_apart = |place: &&PathBuf| {
        let mut kept = kept();
        !kept.any(|path| path.starts_with(place) || place.starts_with(path))
    };
    policy.write = places.iter().filter(is_apart).cloned().collect();
    if level >= Level::Namespaces {
        policy.hidden = around.hidden_but(places);
    }
    policy
}

/// Pins the directories above these paths that the child could move away. It could replace them, and a
/// socket that moves is not hidden from the next child.
fn pin_parents(policy: &mut Policy, kept: &[PathBuf], places: &[PathBuf]) {
    let above = kept.iter().flat_map(|path| path.ancestors().skip(1));
    let is_movable = |path: &&Path| {
        let mut places = places.iter();
        places.any(|place| path.starts_with(place) && path != place)
    };
    let movable = above.filter(is_movable).map(Path::to_path_buf);
    policy.pinned.extend(movable);
    policy.pinned.sort();
    policy.pinned.dedup();
}

fn writable_git(around: &SandboxPaths, policy: &mut Policy) {
    let SandboxPaths {
        work_tree,
        git_dir,
        common_dir,
        ..
    } = around;
    if !git_dir.starts_with(work_tree) {
        policy.write.push(git_dir.clone());
    }
    if common_dir != git_dir && !common_dir.starts_with(work_tree) {
        let shared = GIT_SHARED.iter().map(|name| common_dir.join(name));
        policy.write.extend(shared);
    }
}

fn git(around: &SandboxPaths, policy: &mut Policy) {
    writable_git(around, policy);
    policy.pinned.push(around.git_dir.clone());
    let mut directories = vec![&around.git_dir, &around.common_dir];
    directories.dedup();
    for directory in directories {
        let files = GIT_CONFIGURATION.iter().map(|name| directory.join(name));
        policy.read_only.extend(files);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around() -> SandboxPaths {
        SandboxPaths {
            work_tree: "/w".into(),
            git_dir: "/w/.git".into(),
            common_dir: "/w/.git".into(),
            temporary: "/run/t/tmp".into(),
            protected: vec!["/run/t".into(), "/home/.cache/bin".into()],
            hidden: vec![],
        }
    }

    #[test]
    fn a_place_with_something_protected_in_it_is_granted_only_with_mounts() {
        let places = ["/home/.cache".into(), "/home/.npm".into()];
        let (two, refused) = policy(Level::Files, &around(), &places);
        let expected: Vec<PathBuf> = vec!["/w".into(), "/run/t/tmp".into(), "/home/.npm".into()];
        assert_eq!(two.write, expected);
        assert_eq!(
            refused,
            [("/home/.cache".into(), "/home/.cache/bin".into())]
        );
        let (three, refused) = policy(Level::Namespaces, &around(), &places);
        assert!(three.write.contains(&"/home/.cache".into()));
        assert!(three.read_only.contains(&"/home/.cache/bin".into()));
        assert_eq!(refused, []);
    }

    #[test]
    fn a_socket_stays_hidden_unless_it_is_named_itself() {
        let around = SandboxPaths {
            hidden: vec!["/run/docker.sock".into(), "/run/user/1/bus".into()],
            ..around()
        };
        let places = ["/run/docker.sock".into(), "/run/user/1".into()];
        let (three, _) = policy(Level::Namespaces, &around, &places);
        assert_eq!(three.hidden, [PathBuf::from("/run/user/1/bus")]);
    }

    #[test]
    fn what_is_kept_from_a_child_cannot_be_moved_with_the_directories_above_it() {
        let around = SandboxPaths {
            protected: vec!["/home/a/work/runner".into()],
            hidden: vec!["/tmp/tmux-1/default".into(), "/run/docker.sock".into()],
            ..around()
        };
        let places = ["/tmp".into(), "/home/a".into()];
        let above = ["/home/a/work", "/tmp/tmux-1"].map(PathBuf::from);
        assert_eq!(open_policy(Level::Files, &around, &places).pinned, above);
        let (three, _) = policy(Level::Namespaces, &around, &places);
        assert!(above.iter().all(|path| three.pinned.contains(path)));
    }

    #[test]
    fn what_is_protected_in_a_place_that_everybody_writes_is_read_only_and_cannot_be_moved_away() {
        let places = ["/tmp".into(), "/tmp/x/run/turn".into(), "/var/tmp".into()];
        let around = SandboxPaths {
            protected: vec!["/tmp/x/run".into(), "/home/a/.local/state".into()],
            ..around()
        };
        let open = open_policy(Level::Files, &around, &places);
        assert!(open.has_mounts());
        assert_eq!(open.read_only, [PathBuf::from("/tmp/x/run")]);
        assert_eq!(open.pinned, [PathBuf::from("/tmp/x")]);
        assert_eq!(open.write_below, [PathBuf::from("/tmp/x/run/turn")]);
        let plain = open_policy(Level::Files, &around, &["/var/tmp".into()]);
        assert!(!plain.has_mounts());
        let expected: Vec<PathBuf> = vec!["/w".into(), "/var/tmp".into()];
        assert_eq!(plain.write, expected);
    }

    #[test]
    fn filters_write_neither_the_repository_nor_what_is_around_something_protected() {
        let places =
            ["/", "/w", "/w/target", "/home/.cache", "/run", "/home/.npm"].map(PathBuf::from);
        for level in [Level::Files, Level::Namespaces] {
            let policy = policy_of_filters(level, &around(), &places);
            assert_eq!(policy.write, [PathBuf::from("/home/.npm")]);
            assert!(policy.ends_all);
        }
    }

    #[test]
    fn the_second_level_has_no_mounts_in_its_strict_form() {
        let (two, _) = policy(Level::Files, &around(), &["/home/.cache".into()]);
        assert!(!two.has_mounts());
    }

    #[test]
    fn what_configures_git_is_read_only_and_the_rest_of_a_foreign_git_directory_is_not_writable() {
        let (own, _) = policy(Level::Namespaces, &around(), &[]);
        assert!(own.read_only.contains(&"/w/.git/config".into()));
        assert_eq!(own.pinned, [PathBuf::from("/w/.git")]);
        let linked = SandboxPaths {
            git_dir: "/main/.git/worktrees/w".into(),
            common_dir: "/main/.git".into(),
            ..around()
        };
        let (linked, _) = policy(Level::Files, &linked, &[]);
        let may = |path: &str| {
            linked
                .write
                .iter()
                .any(|place| Path::new(path).starts_with(place))
        };
        assert!(may("/main/.git/objects/ab/c") && may("/main/.git/worktrees/w/index.lock"));
        assert!(
            !may("/main/.git/config") && !may("/main/.git/hooks/pre-commit") && !may("/main/x")
        );
    }
}
