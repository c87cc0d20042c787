//! An output stream that may have no reader. Written data waits in bounded memory for a thread that forwards
//! it, so that a stalled reader does not delay limits or signals.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Write, stderr};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Maximum number of bytes that wait for the reader.
const ROOM: usize = 4 << 20;
/// Number of bytes that are forwarded at once.
const PIECE: usize = 8 << 10;
/// How long a writer waits for space while the reader accepts nothing.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the end of a run waits for a stalled reader: a program, any reader of a cancelled run, and a
/// person, who may have paused the terminal to read.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
const CANCELLED_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
const TERMINAL_DRAIN_TIMEOUT: Duration = Duration::from_secs(600);

/// The time that is left for output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// Enough for a reader that is slow.
    Enough,
    /// Little, because the run was cancelled.
    Short,
}

/// How long to wait for a reader that accepts nothing.
pub fn drain_timeout(time: Time, is_terminal: bool) -> Duration {
    match (time, is_terminal) {
        (Time::Short, _) => CANCELLED_DRAIN_TIMEOUT,
        (Time::Enough, false) => DRAIN_TIMEOUT,
        (Time::Enough, true) => TERMINAL_DRAIN_TIMEOUT,
    }
}

/// Prints a text to standard error. It is lost if standard error is closed, or if its reader stalls now or has
/// stalled before: a program that works unattended never waits for ever to say something.
pub fn print_to_stderr(text: &str, time: Time) {
    static OUTPUT: OnceLock<Option<BufferedOutput>> = OnceLock::new();
    let output = OUTPUT.get_or_init(|| BufferedOutput::new(&stderr()).ok());
    // Nobody is left to report an error to.
    let _ = match output.clone() {
        Some(mut output) => output
            .write_all(text.as_bytes())
            .and_then(|()| output.drain(drain_timeout(time, stderr().is_terminal()))),
        None => stderr().write_all(text.as_bytes()),
    };
}

/// The stream. Clones write to the same one. A write accepts its data completely. It fails with the error of
/// an earlier write, or if the buffer is full and the reader has accepted nothing for a second; then nothing
/// more is accepted. Flushing does not wait; [`BufferedOutput::drain`] does.
#[derive(Clone)]
pub struct BufferedOutput(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<u8>,
    /// Whether the thread holds data that it has not forwarded yet.
    is_writing: bool,
    /// Number of forwarded chunks.
    written: u64,
    failure: Option<io::Error>,
    is_over: bool,
}

impl BufferedOutput {
    /// Creates a buffered output to a copy of `out`'s file descriptor. Nothing else should write to the same
    /// stream before it is drained.
    ///
    /// # Errors
    /// If there are no more file descriptors or threads.
    pub fn new(out: &impl AsFd) -> io::Result<Self> {
        let file = File::from(out.as_fd().try_clone_to_owned()?);
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        thread::Builder::new()
            .name("buffered-output".into())
            .spawn(move || of_thread.serve(file))?;
        Ok(Self(Arc::new(Handle { shared })))
    }

    /// Waits until everything is forwarded, provided that the reader accepts something within every interval
    /// of `patience`.
    ///
    /// # Errors
    /// An error that no writer has received yet; [`ErrorKind::TimedOut`] if the reader has stalled and no
    /// writer has received that error.
    pub fn drain(&self, patience: Duration) -> io::Result<()> {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        loop {
            if let Some(error) = state.failure.take() {
                return Err(error);
            }
            if state.waiting.is_empty() && !state.is_writing {
                return Ok(());
            }
            let told = state.is_over;
            let moved;
            (state, moved) = shared.wait(state, patience);
            if !moved {
                state.is_over = true;
                return if told { Ok(()) } else { Err(unread()) };
            }
        }
    }
}

impl Write for BufferedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        loop {
            if let Some(error) = state.failure.take() {
                return Err(error);
            }
            if state.is_over {
                return Err(ErrorKind::BrokenPipe.into());
            }
            if state.waiting.is_empty() || state.waiting.len() + bytes.len() <= ROOM {
                state.waiting.extend(bytes);
                shared.changed.notify_all();
                return Ok(bytes.len());
            }
            let moved;
            (state, moved) = shared.wait(state, WRITE_TIMEOUT);
            if !moved {
                state.is_over = true;
                return Err(unread());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// Forwards data until an error occurs or no writer is left.
    fn serve(&self, out: File) {
        let mut piece = Vec::with_capacity(PIECE);
        while self.take(&mut piece) {
            let result = write_to_end(&out, &piece);
            let mut state = self.lock();
            state.is_writing = false;
            state.written += 1;
            if let Err(error) = result {
                state.waiting.clear();
                state.is_over = true;
                state.failure = Some(error);
            }
            self.changed.notify_all();
        }
    }

    /// Waits for data. Returns whether there is any.
    fn take(&self, piece: &mut Vec<u8>) -> bool {
        let state = self.lock();
        let mut state = self
            .changed
            .wait_while(state, |state| state.waiting.is_empty() && !state.is_over)
            .unwrap_or_else(PoisonError::into_inner);
        let length = state.waiting.len().min(PIECE);
        piece.clear();
        piece.extend(state.waiting.drain(..length));
        state.is_writing = length > 0;
        length > 0
    }

    /// Waits for the reader to accept data. Returns whether it has.
    fn wait<'s>(
        &self,
        state: MutexGuard<'s, State>,
        patience: Duration,
    ) -> (MutexGuard<'s, State>, bool) {
        let before = state.written;
        let (state, result) = self
            .changed
            .wait_timeout_while(state, patience, |state| state.written == before)
            .unwrap_or_else(PoisonError::into_inner);
        (state, !result.timed_out())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes everything, even if another program has made the stream non-blocking.
pub fn write_to_end(out: &impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(out, bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => drop(poll(&mut [PollFd::new(out, PollFlags::OUT)], None)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn unread() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the reader has stalled")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn everything_arrives_in_order() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut output = BufferedOutput::new(&writer).unwrap();
        drop(writer);
        let reading = thread::spawn(move || {
            let mut text = Vec::new();
            reader.read_to_end(&mut text).map(|_| text)
        });
        let mut expected = Vec::new();
        for number in 0..2_000_u32 {
            let line = format!("{number} {}\n", "x".repeat(4_000));
            output.write_all(line.as_bytes()).unwrap();
            expected.extend(line.into_bytes());
        }
        output.drain(LONG).unwrap();
        drop(output);
        assert!(reading.join().unwrap().unwrap() == expected);
    }

    #[test]
    fn a_reader_that_stops_reading_is_given_up_once_the_room_is_full() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut output = BufferedOutput::new(&writer).unwrap();
        drop(writer);
        let block = vec![b'x'; 1 << 20];
        let (taken, error) = (0..)
            .find_map(|taken| output.write_all(&block).err().map(|error| (taken, error)))
            .unwrap();
        assert_eq!(
            (taken, error.to_string().as_str()),
            (4, "the reader has stalled")
        );
        let again = output.write_all(b"x").unwrap_err();
        assert_eq!(again.kind(), ErrorKind::BrokenPipe);
        output.drain(Duration::ZERO).unwrap();
        // The accepted data still arrives when the reader continues.
        drop(output);
        let mut text = Vec::new();
        reader.read_to_end(&mut text).unwrap();
        assert_eq!(text.len(), 4 << 20);
    }

    #[test]
    fn an_unread_end_is_told_by_draining() {
        let (_reader, writer) = io::pipe().unwrap();
        let mut output = BufferedOutput::new(&writer).unwrap();
        output.write_all(&vec![b'x'; 1 << 20]).unwrap();
        let error = output.drain(Duration::from_millis(10)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn an_error_is_told_once() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut output = BufferedOutput::new(&full).unwrap();
        output.write_all(b"x").unwrap();
        let error = output.drain(LONG).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        output.drain(LONG).unwrap();
        let error = output.write_all(b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_stream_that_does_not_block_is_waited_for() {
        use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
        let (mut reader, writer) = io::pipe().unwrap();
        let flags = fcntl_getfl(&writer).unwrap();
        fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
        let mut output = BufferedOutput::new(&writer).unwrap();
        drop(writer);
        output.write_all(&vec![b'x'; 1 << 20]).unwrap();
        let reading = thread::spawn(move || {
            let mut text = Vec::new();
            reader.read_to_end(&mut text).map(|_| text.len())
        });
        output.drain(LONG).unwrap();
        drop(output);
        assert_eq!(reading.join().unwrap().unwrap(), 1 << 20);
    }
}
