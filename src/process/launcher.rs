//! The launcher of a child, as the run sees it.

use crate::sandbox::{Report, Status};
use rustix::buffer::spare_capacity;
use std::fs::File;
use std::future::pending;
use std::io;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

/// The longest report, in bytes.
const LIMIT: usize = 8 << 10;

/// The reading end of a launcher's report. The launcher kills all descendants of the child as soon as
/// this end is closed, so it is kept open for as long as they may run.
#[derive(Debug)]
pub(super) struct Launcher {
    told: Receiver,
    text: Vec<u8>,
}

impl Launcher {
    /// # Errors
    /// If the pipe cannot be watched.
    pub(super) fn new(told: File) -> io::Result<Self> {
        Ok(Self {
            told: Receiver::from_file(told)?,
            text: Vec::with_capacity(LIMIT),
        })
    }

    /// The report so far.
    pub(super) fn report(&mut self) -> Report {
        // The runtime may not know yet that there is something to read.
        while self.text.len() < LIMIT
            && rustix::io::read(&self.told, spare_capacity(&mut self.text))
                .is_ok_and(|count| count > 0)
        {}
        Report::read(&self.text)
    }

    /// Waits until the child has ended and has left processes running. Returns the child's exit status.
    async fn left_processes(&mut self) -> Status {
        loop {
            if let Some(status) = Report::read(&self.text).leaves {
                return status;
            }
            let is_full = self.text.len() >= LIMIT;
            if is_full || !matches!(self.told.read_buf(&mut self.text).await, Ok(1..)) {
                return pending().await;
            }
        }
    }
}

/// Waits until the launcher, if there is one, reports that it waits for processes that the child has
/// left running. Returns the child's exit status.
pub(super) async fn stays(launcher: &mut Option<Launcher>) -> Status {
    match launcher {
        Some(launcher) => launcher.left_processes().await,
        None => pending().await,
    }
}
