//! Takes over what somebody changed in the git directories while the run was interrupted.

use crate::git::bytes::{as_path, path_within, with_real_parent};
use crate::git::error::Result;
use crate::git::files::{is_there, same};
use crate::git::private::adopted::{copy_hooks, hooks};
use crate::git::private::config::{Settings, start_call};
use crate::git::private::places::{is_note, record_again, recorded_places};
use crate::git::real::Real;
use crate::git::repo::Repo;
use std::path::{Path, PathBuf};

impl Repo {
    /// Takes what setup commands have made in the git directories, such as those of submodules, for what was there
    /// at the start. What configures git or runs by itself is put back instead.
    ///
    /// # Errors
    /// When something cannot be put back or copied.
    pub fn adopt_setup(&self) -> Result<Vec<String>> {
        let warnings = self.undo_changed_configuration_of_start()?;
        let _open = self.unseal()?;
        record_again(&self.real, &self.private.root)?;
        Ok(warnings)
    }

    /// Whether the repository's configuration, hooks and similar files are as the run found them.
    pub fn is_configured_as_found(&self) -> bool {
        !self.private.state.is_partial
            && changed_places(&self.real, &self.private.root)
                .next()
                .is_none()
    }

    /// Takes the repository's configuration, hooks and similar files as they are now, if somebody changed them since
    /// the run was interrupted. Only what is put back after each turn is taken: all else may be an agent's work.
    /// Returns a warning about it.
    ///
    /// # Errors
    /// When one of them cannot be read or copied. Repeating it is safe.
    pub fn adopt_changed_configuration(&mut self) -> Result<Option<String>> {
        if self.is_configured_as_found() {
            return Ok(None);
        }
        let with_jj = self.started_with_jj();
        let _open = self.unseal()?;
        let real = &self.real;
        let private = &mut self.private;
        let named = changed_places(real, &private.root);
        let named = named.map(|place| path_within(&place, &real.work_tree));
        let named = named.collect::<Vec<_>>().join(", ");
        if has_foreign_configuration(real, &private.root)? {
            record_again(real, &private.root)?;
            return Ok(Some(format!(
                "{named} changed after the end of the run and stays so, but the run uses what was there at its start: git's configuration also comes from files that an agent can change"
            )));
        }
        // Until all is taken, nothing is as found, even if somebody puts the files back meanwhile.
        private.state.is_partial = true;
        private.save()?;
        let settings = Settings::read(real)?;
        let root = private.root.clone();
        let is_taken = |path: &Path| is_recorded(real, &root, path);
        private
            .state
            .adopt(real, &root, &settings, with_jj, &is_taken)?;
        let hooks = hooks(real, &settings)?;
        if is_taken(&hooks) {
            private.state.hooks = copy_hooks(real, &root, &hooks)?;
        }
        record_again(real, &root)?;
        private.state.is_partial = false;
        private.save()?;
        let warning = format!("{named} changed after the end of the run; it is used as it is now");
        Ok((!named.is_empty()).then_some(warning))
    }
}

/// The recorded places that are not as recorded.
fn changed_places(real: &Real, root: &Path) -> impl Iterator<Item = PathBuf> {
    let places = recorded_places(real, root).into_iter();
    let changed =
        places.filter(|(place, copy)| !is_note(place) && !same(place, copy).unwrap_or(false));
    changed.map(|(place, _)| place)
}

/// Whether the repository's own configuration comes from files that are not restored after a turn.
fn has_foreign_configuration(real: &Real, root: &Path) -> Result<bool> {
    let args = "config --list --show-scope --show-origin --name-only -z --includes";
    let listed = start_call(real).words(args).stdout()?;
    let fields: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
    let mut settings = fields.chunks_exact(3);
    Ok(settings.any(|setting| {
        let [scope, origin, key] = [setting[0], setting[1], setting[2]];
        // An included file may be empty now, and is then not the origin of anything.
        let includes = key.starts_with(b"include.") || key.starts_with(b"includeif.");
        let file = origin.strip_prefix(b"file:");
        let is_restored = file.is_none_or(|file| {
            let file = real.work_tree.join(as_path(file));
            is_recorded(real, root, &file)
        });
        matches!(scope, b"local" | b"worktree") && (includes || !is_restored)
    }))
}

/// Whether a file, or the file that a link leads to, is restored after a turn.
fn is_recorded(real: &Real, root: &Path, path: &Path) -> bool {
    let path = match path.canonicalize() {
        Ok(path) => path,
        Err(_) if is_there(path) => return false,
        Err(_) => with_real_parent(path),
    };
    let mut places = recorded_places(real, root).into_iter();
    places.any(|(place, _)| path.starts_with(with_real_parent(&place)))
}
