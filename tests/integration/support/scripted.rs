//! A server that answers requests one after the other by a script, byte for byte.

use super::http::{Reply, Request, Response, Server, lock};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// The server, until it is dropped.
pub struct Scripted {
    server: Server,
    script: Arc<Mutex<VecDeque<Reply>>>,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Scripted {
    /// Starts a server with this script. What is asked for after its end is refused with a 400.
    pub fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        let script: VecDeque<Reply> = script.into_iter().collect();
        let script = Arc::new(Mutex::new(script));
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let server = Server::start({
            let (script, requests) = (Arc::clone(&script), Arc::clone(&requests));
            move |request| {
                lock(&requests).push(request);
                let next = lock(&script).pop_front();
                next.unwrap_or_else(|| json(400, "{\"error\":{\"message\":\"no step is left\"}}"))
            }
        });
        Self {
            server: server.unwrap(),
            script,
            requests,
        }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.requests).clone()
    }

    /// How many answers nobody has asked for.
    pub fn steps_left(&self) -> usize {
        lock(&self.script).len()
    }
}

/// An answer of this type.
pub fn answer(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Response {
    Response {
        status,
        headers: vec![("content-type".into(), kind.into())],
        body: body.into(),
    }
}

/// An answer in JSON.
pub fn json(status: u16, body: &str) -> Reply {
    Reply::Answer(answer(status, "application/json", body))
}
