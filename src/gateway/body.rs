//! A response that passes through the gateway and is counted on the way.

use super::account::Request;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::OwnedSemaphorePermit;

/// The body of such a response.
pub(super) struct Passing {
    pub(super) body: Incoming,
    /// The request whose cost is counted, if the response is a model's.
    pub(super) request: Option<Request>,
    /// Held while the response is being sent.
    pub(super) _permit: Option<OwnedSemaphorePermit>,
}

impl Passing {
    /// A response that is not a model's.
    pub(super) fn uncounted(body: Incoming) -> Self {
        Self {
            body,
            request: None,
            _permit: None,
        }
    }
}

impl Body for Passing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let is_over = !matches!(frame, Some(Ok(_))) || self.body.is_end_stream();
        if let Some(request) = &mut self.request {
            let data = match &frame {
                Some(Ok(frame)) => frame.data_ref(),
                _ => None,
            };
            data.into_iter().for_each(|data| request.push(data));
            if is_over {
                request.finish(!matches!(frame, Some(Err(_))));
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
