//! What a model needs of the program that it is used in: a connection.

use crate::model_error::ModelError;

/// Sends requests to a model's server.
pub trait Transport {
    /// The response to a successful request.
    type Answer: Answer;

    /// Posts a body. Redirections are not followed, because the key is for this URL alone.
    ///
    /// # Errors
    /// A failed connection, or the server's error for the request.
    fn post(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        body: Vec<u8>,
    ) -> impl Future<Output = Result<Self::Answer, ModelError>>;
}

/// A response as it arrives.
pub trait Answer {
    /// Whether it is a stream of events.
    fn streams(&self) -> bool {
        self.kind().starts_with("text/event-stream")
    }

    /// Its content type, or empty if unknown.
    fn kind(&self) -> &str;

    /// The next chunk of the body, or `None` at its end.
    ///
    /// # Errors
    /// A connection that failed or is silent, or a body that is too large.
    fn chunk(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, ModelError>>;
}
