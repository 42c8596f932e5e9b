//! What follows when a connection ends: stop for good, or try again, how and after which pause.
//!
//! Pure but for the jitter of pauses.

use std::time::Duration;

use protocol::{CloseCode, Reconnect};

use super::error::ConsumerError;
use super::options::ConsumerOptions;
use crate::backoff::jitter;
use crate::error::told;
use crate::{Backoff, ClientError, Retry};

/// How a connection was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// With `identify`.
    Identify,
    /// With `resume`.
    Resume,
}

/// How a connection ended.
#[derive(Debug)]
pub(crate) enum End {
    /// This side was asked to stop.
    Stopped,
    /// It could not be made.
    Refused(ClientError),
    /// The server closed it, with a code or by hanging up.
    Closed(Option<u16>),
    /// It broke or went silent.
    Lost(String),
    /// It carried what cannot be read.
    Unreadable(String),
}

/// What follows.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing; `Some` is for the application.
    Stop(Option<ConsumerError>),
    /// Another connection.
    Again {
        /// After this pause.
        pause: Duration,
        /// Whether the session can be resumed.
        resume: bool,
        /// Why, for people.
        cause: String,
    },
}

/// The verdict on the end of a connection that was `begun` so.
pub(crate) fn judge(end: End, begun: Begun, backoff: &mut Backoff, options: &ConsumerOptions) -> Next {
    match end {
        End::Stopped => Next::Stop(None),
        End::Refused(error) => refused(error, backoff),
        End::Closed(number) => closed(number, begun, backoff, options),
        End::Lost(cause) | End::Unreadable(cause) => Next::Again { pause: backoff.next_pause(), resume: true, cause },
    }
}

/// The verdict on a request that failed: over REST as for the upgrade.
pub(crate) fn refused(error: ClientError, backoff: &mut Backoff) -> Next {
    if error.retry() == Retry::Never {
        return Next::Stop(Some(ConsumerError::Refused(error)));
    }
    let pause = backoff.next_pause().max(error.retry_after().unwrap_or_default());
    Next::Again { pause, resume: true, cause: told(&error) }
}

fn closed(number: Option<u16>, begun: Begun, backoff: &mut Backoff, options: &ConsumerOptions) -> Next {
    let code = number.and_then(CloseCode::from_number);
    let cause = match (code, number) {
        (Some(code), _) => format!("the server has closed the connection: {} ({})", code.name(), code.number()),
        (None, Some(number)) => format!("the connection was closed with {number}"),
        (None, None) => "the connection was closed".to_owned(),
    };
    let again = |pause, resume| Next::Again { pause, resume, cause: cause.clone() };
    match (Reconnect::after_close(number), code) {
        (Reconnect::Never, Some(CloseCode::ConsumerReplaced)) => Next::Stop(Some(ConsumerError::Replaced)),
        (Reconnect::Never, Some(code)) => Next::Stop(Some(ConsumerError::Closed { code })),
        (Reconnect::Never | Reconnect::Backoff, _) => again(backoff.next_pause(), true),
        // The session is gone, the server is not: nothing is gained by a pause.
        (Reconnect::Identify, _) if begun == Begun::Resume => again(Duration::ZERO, false),
        (Reconnect::Identify, _) => again(backoff.next_pause(), false),
        (Reconnect::Delay, _) => again(options.restraint + jitter(options.restraint) + backoff.next_pause(), true),
        // Whoever answers next is another process, which knows no session of this one.
        (Reconnect::Jittered, _) => again(jitter(options.drain_spread), false),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use protocol::{CloseCode, Problem, ProblemCode, Reconnect};

    use super::{Begun, End, Next, judge};
    use crate::consumer::{ConsumerError, ConsumerOptions};
    use crate::{Backoff, BackoffOptions, ClientError};

    fn verdict(end: End) -> Next {
        judge(end, Begun::Resume, &mut Backoff::new(BackoffOptions::default()), &ConsumerOptions::default())
    }

    #[test]
    fn every_close_code_is_followed_as_its_table_says() {
        for &code in CloseCode::ALL {
            let next = verdict(End::Closed(Some(code.number())));
            let stops = matches!(next, Next::Stop(Some(_)));
            assert_eq!(stops, code.client_may_reconnect() == Reconnect::Never, "{code}");
        }
    }

    #[test]
    fn a_replaced_consumer_never_returns_by_itself() {
        assert!(matches!(verdict(End::Closed(Some(4015))), Next::Stop(Some(ConsumerError::Replaced))));
    }

    #[test]
    fn a_broken_connection_is_resumed_and_an_unknown_session_is_not() {
        assert!(matches!(verdict(End::Lost(String::new())), Next::Again { resume: true, .. }));
        assert!(matches!(verdict(End::Closed(None)), Next::Again { resume: true, .. }));
        assert!(matches!(verdict(End::Closed(Some(1006))), Next::Again { resume: true, .. }));
        for code in [CloseCode::UnknownSession, CloseCode::SessionExpired, CloseCode::ShuttingDown] {
            assert!(matches!(verdict(End::Closed(Some(code.number()))), Next::Again { resume: false, .. }), "{code}");
        }
    }

    #[test]
    fn after_too_many_frames_the_pause_is_long() {
        let Next::Again { pause, .. } = verdict(End::Closed(Some(CloseCode::RateLimited.number()))) else { panic!("it is tried again") };
        assert!(pause >= ConsumerOptions::default().restraint);
    }

    #[test]
    fn a_refusal_for_good_is_terminal_and_an_overload_is_not() {
        let refusal =
            |code, retry_after| End::Refused(ClientError::Problem { problem: Box::new(Problem::new(code, "x", "r")), retry_after });
        assert!(matches!(verdict(refusal(ProblemCode::Unauthenticated, None)), Next::Stop(Some(ConsumerError::Refused(_)))));
        let wait = Duration::from_secs(7);
        let Next::Again { pause, .. } = verdict(refusal(ProblemCode::Overloaded, Some(wait))) else { panic!("it is tried again") };
        assert!(pause >= wait);
    }
}
