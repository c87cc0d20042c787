//! The launcher of a child, as the run sees it.

use super::exit::RawStatus;
use crate::sandbox::{Report, Status};
use std::fs::File;
use std::future::pending;
use std::io;
use tokio::net::unix::pipe::Receiver;

/// The longest report, in bytes.
const LIMIT: usize = 8 << 10;

/// The reading end of a launcher's report. The launcher kills all descendants of the child as soon as
/// this end is closed, so it is kept open for as long as they may run.
#[derive(Debug)]
pub(super) struct Launcher {
    told: Receiver,
    text: Vec<u8>,
    is_over: bool,
}

impl Launcher {
    /// # Errors
    /// If the pipe cannot be watched.
    pub(super) fn new(told: File) -> io::Result<Self> {
        Ok(Self {
            told: Receiver::from_file(told)?,
            text: Vec::new(),
            is_over: false,
        })
    }

    /// The report so far.
    pub(super) fn report(&mut self) -> Report {
        while self.take_in() {}
        Report::read(&self.text[..])
    }

    /// Waits until the child has ended and has left processes running. Returns the child's exit status.
    async fn leaves(&mut self) -> RawStatus {
        loop {
            if let Some(status) = self.report().leaves {
                return status.into();
            }
            if self.is_over || self.told.readable().await.is_err() {
                return pending().await;
            }
        }
    }

    /// Reads one part of the report. Returns whether there may be more.
    fn take_in(&mut self) -> bool {
        let mut part = [0; 512];
        match self.told.try_read(&mut part) {
            Ok(count) if count > 0 && self.text.len() < LIMIT => {
                self.text.extend(part.get(..count).unwrap_or_default());
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Ok(_) | Err(_) => {
                self.is_over = true;
                false
            }
        }
    }
}

/// Waits until the launcher, if there is one, reports that it waits for processes that the child has
/// left running. Returns the child's exit status.
pub(super) async fn stays(launcher: &mut Option<Launcher>) -> RawStatus {
    match launcher {
        Some(launcher) => launcher.leaves().await,
        None => pending().await,
    }
}

impl From<Status> for RawStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Code(code) => Self::Code(code),
            Status::Signal(signal) => Self::Signal(signal),
        }
    }
}
