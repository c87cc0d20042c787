//! The launcher of a child, as the run sees it.

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
        let mut part = [0; 512];
        loop {
            // The runtime may not know yet that there is something to read.
            let count = rustix::io::read(&self.told, &mut part);
            if !self.add(&part, count) {
                return Report::read(&self.text);
            }
        }
    }

    /// Waits until the child has ended and has left processes running. Returns the child's exit status.
    async fn left_processes(&mut self) -> Status {
        let mut part = [0; 512];
        loop {
            if let Some(status) = Report::read(&self.text).leaves {
                return status;
            }
            if self.is_over || self.told.readable().await.is_err() {
                return pending().await;
            }
            let count = self.told.try_read(&mut part);
            self.add(&part, count);
        }
    }

    /// Adds what was read. Returns whether there may be more.
    fn add<E: Into<io::Error>>(&mut self, part: &[u8], count: Result<usize, E>) -> bool {
        match count.map_err(Into::into) {
            Ok(count) if count > 0 && self.text.len() < LIMIT => {
                self.text.extend(part.get(..count).unwrap_or_default());
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => self.is_over = true,
        }
        false
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
