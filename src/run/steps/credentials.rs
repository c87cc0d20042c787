//! The credential that a checkout left in the repository is not there while an agent works.

use super::Performer;

impl Performer<'_> {
    /// Takes the checkout's credentials out of use. Only in a job of GitHub Actions, where they are the
    /// runner's: at a prompt they are the user's own.
    pub fn hide_credentials(&mut self) {
        if !self.in_actions {
            return;
        }
        match self.repo.change().hide_credentials() {
            Ok(left) => left.iter().for_each(|one| {
                self.emit.warn_once(&format!(
                    "{} in {} is within reach of the agent; check out with persist-credentials: false",
                    one.key,
                    one.file.display()
                ));
            }),
            Err(error) => self.warn(format!(
                "the checkout's credentials are within reach of the agent: {error}"
            )),
        }
    }

    /// Puts them back, for the steps that follow.
    pub fn restore_credentials(&mut self) {
        if !self.in_actions {
            return;
        }
        if let Err(error) = self.repo.change().restore_credentials() {
            self.warn(format!(
                "the checkout's credentials could not be put back: {error}"
            ));
        }
    }
}
