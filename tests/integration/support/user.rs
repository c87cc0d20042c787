//! The users as whom tests run `sprag`.

use super::project::{Project, Run};
use std::process::Command;

/// The user that tests become who must not be root.
pub const ORDINARY: &str = "65534";

/// Who runs `sprag`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Whoever runs the tests.
    Own,
    /// Somebody who is not root.
    Ordinary,
}

impl User {
    /// Everybody whom this test can be.
    pub fn all() -> Vec<Self> {
        if rustix::process::geteuid().is_root() {
            vec![Self::Own, Self::Ordinary]
        } else {
            vec![Self::Own]
        }
    }

    /// Runs `sprag` as this user; `None` where that user cannot reach the project.
    pub fn sprag(self, project: &Project, args: &[&str]) -> Option<Run> {
        let output = self.command(project, args)?.output().unwrap();
        Some(project.finished(&output))
    }

    /// `sprag` as this user, not yet started; `None` where that user cannot reach the project.
    pub fn command(self, project: &Project, args: &[&str]) -> Option<Command> {
        let sprag = env!("CARGO_BIN_EXE_sprag");
        if self == Self::Own {
            return Some(project.command(args));
        }
        let root = project.beside(".");
        let owned = Command::new("chown")
            .args(["-R", &format!("{ORDINARY}:{ORDINARY}")])
            .arg(&root)
            .status();
        let changed = [
            "setpriv",
            "--reuid",
            ORDINARY,
            "--regid",
            ORDINARY,
            "--clear-groups",
        ];
        let reaches = Command::new(changed[0])
            .args(&changed[1..])
            .args(["sh", "-c", "test -x \"$0\" && test -w \"$1\"", sprag])
            .arg(&root)
            .status();
        let can = [owned, reaches]
            .iter()
            .all(|it| it.as_ref().is_ok_and(|it| it.success()));
        if !can {
            eprintln!("SKIPPED: user {ORDINARY} cannot reach {}", root.display());
            return None;
        }
        let mut all = changed[1..].to_vec();
        all.push(sprag);
        all.extend(args);
        Some(project.program(changed[0], &all))
    }
}
