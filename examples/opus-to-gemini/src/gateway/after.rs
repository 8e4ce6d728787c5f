//! What is left to do for a call once its answer is sent.

use std::{
    cell::RefCell,
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;
use tokio::task_local;

use super::call::Call;

task_local! {
    static OVER: RefCell<Vec<Call>>;
}

/// A connection whose calls are recorded once it has written what there was to write: nobody waits
/// for the line in the log.
pub(super) fn recording<F: Future>(connection: F) -> impl Future<Output = F::Output> {
    OVER.scope(RefCell::default(), Recording { connection })
}

/// Takes a call that is over but for its record: it is dropped after the turn of its connection, and
/// at once where there is none.
pub(super) fn record(call: Call) {
    let mut call = Some(call);
    OVER.try_with(|over| over.borrow_mut().extend(call.take()))
        .ok();
}

pin_project! {
    struct Recording<F> {
        #[pin]
        connection: F,
    }
}

impl<F: Future> Future for Recording<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let out = self.project().connection.poll(cx);
        let over = OVER.with(|over| mem::take(&mut *over.borrow_mut()));
        drop(over);
        out
    }
}
