//! Reads one of a child's outputs.

use std::future::pending;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The largest chunk of output, in bytes, that is passed on.
const CHUNK: usize = 128 << 10;
/// One of the child's outputs. `pipe` is `None` once it has ended or reading was given up.
pub(super) struct Output<P> {
    pub(super) pipe: Option<P>,
    buffer: Vec<u8>,
}

impl<P: AsyncRead + Unpin> Output<P> {
    pub(super) fn new(pipe: Option<P>) -> Self {
        Self {
            pipe,
            buffer: vec![0; CHUNK],
        }
    }

    pub(super) async fn read(&mut self) -> usize {
        match &mut self.pipe {
            // A pipe that cannot be read counts as ended.
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => pending().await,
        }
    }

    /// The chunk that was read. An empty chunk means that the pipe has ended.
    pub(super) fn accept(&mut self, read: usize) -> &[u8] {
        if read == 0 {
            self.pipe = None;
        }
        self.buffer.get(..read).unwrap_or_default()
    }
}
