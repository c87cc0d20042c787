//! Whole jobs of GitHub Actions, with GitHub's API and its git server on this machine.

mod comments;
mod secrets;
