use std::{
    error::Error,
    fmt,
    future::Future,
    hash::Hash,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;
use tower_spillway_core::{BoxError, Class, Read, hint::Hint};

use super::{service::Settings, shared::Slot};

/// Where the hold of a call is.
pub(crate) enum Place<K> {
    Slot(Slot),
    /// Not looked up yet: a key has a slot only once it is held.
    Key(K),
}

pin_project! {
    /// The future of [`Held`](super::Held).
    pub struct HeldFuture<F, A, K, X> {
        #[pin]
        state: State<F, A, K, X>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, A, K, X> {
        Calling {
            #[pin]
            call: F,
            settings: Arc<Settings<A, K, X>>,
            place: Place<K>,
        },
        /// Never sent.
        NotSent { error: Option<BoxError> },
        Done,
    }
}

impl<F, A, K, X> HeldFuture<F, A, K, X> {
    pub(crate) fn calling(call: F, settings: Arc<Settings<A, K, X>>, place: Place<K>) -> Self {
        Self {
            state: State::Calling {
                call,
                settings,
                place,
            },
        }
    }

    pub(crate) fn not_sent(error: BoxError) -> Self {
        Self {
            state: State::NotSent { error: Some(error) },
        }
    }
}

impl<A, K: Eq + Hash + Clone + 'static, X> Settings<A, K, X> {
    /// Hears an outcome.
    fn hear<Res>(&self, place: &Place<K>, out: Result<&Res, &(dyn Error + 'static)>)
    where
        A: Read<Res>,
    {
        let Some(asked) = self.asked(out) else { return };
        match place {
            Place::Slot(slot) => self.hold.extend(slot, asked),
            Place::Key(key) => self.hold.extend(&self.hold.slot(key), asked),
        }
    }

    /// How long everybody is asked to wait.
    fn asked<Res>(&self, out: Result<&Res, &(dyn Error + 'static)>) -> Option<Duration>
    where
        A: Read<Res>,
    {
        let reading = self.adapter.read(out);
        match reading.class() {
            Class::Throttled => match reading.hint() {
                Some(hint) => hint.after(),
                None => self.hold.config().without_hint,
            },
            Class::Success => reading
                .hint()
                .or_else(|| self.adapter.hint_on_success(out.ok()?))
                .and_then(Hint::after),
            _ => None,
        }
    }
}

impl<F, A, K, X, Res, E> Future for HeldFuture<F, A, K, X>
where
    F: Future<Output = Result<Res, E>>,
    E: Into<BoxError>,
    A: Read<Res>,
    K: Eq + Hash + Clone + 'static,
{
    type Output = Result<Res, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        let out = match state.as_mut().project() {
            StateProj::Calling {
                call,
                settings,
                place,
            } => {
                let out = ready!(call.poll(cx)).map_err(Into::into);
                let view = out.as_ref().map_err(|e| &**e as &(dyn Error + 'static));
                settings.hear(place, view);
                out
            }
            StateProj::NotSent { error } => match error.take() {
                Some(error) => Err(error),
                None => return Poll::Pending,
            },
            // Polled after completion.
            StateProj::Done => return Poll::Pending,
        };
        state.set(State::Done);
        Poll::Ready(out)
    }
}

impl<F, A, K, X> fmt::Debug for HeldFuture<F, A, K, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Calling { .. } => "calling",
            State::NotSent { .. } => "not sent",
            State::Done => "done",
        };
        f.debug_struct("HeldFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
