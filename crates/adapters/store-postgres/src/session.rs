//! A connection that knows whether it still waits for an answer, and for how long it may.
//!
//! The driver goes on after a statement that was given up in mid-flight, but what comes of that one then meets the next: its rows are passed over, and its
//! error is taken for the next one's. And the driver waits for as long as the system does, which for a peer that is gone without a word is
//! a quarter of an hour. So who lends connections must know both.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, Stream};
use sqlx_core::connection::Connection as _;
use sqlx_core::executor::{Execute, Executor};
use sqlx_core::sql_str::SqlStr;
use sqlx_core::{Either, Error};
use sqlx_postgres::{PgConnection, PgQueryResult, PgRow, PgStatement, PgTypeInfo, Postgres};
use tokio::time::{Instant, Sleep, timeout};

/// How many errors of statements that were given up are passed over. There is one per statement, and one statement at a time.
const LATE: usize = 4;

type Step = Either<PgQueryResult, PgRow>;

/// A connection. Statements on it are bounded when [`Session::bound`] says so.
#[derive(Debug)]
pub(crate) struct Session {
    connection: PgConnection,
    /// Since when a statement is not answered.
    asked: Option<Instant>,
    /// How long one may take.
    patience: Option<Duration>,
}

impl Session {
    pub(crate) fn new(connection: PgConnection) -> Self {
        Self { connection, asked: None, patience: None }
    }

    /// From now on a statement that is not answered in time fails as one whose connection broke.
    pub(crate) fn bound(&mut self, patience: Option<Duration>) {
        self.patience = patience;
    }

    /// Since when a statement is in flight, or nobody knows what comes on the connection.
    pub(crate) fn asked(&self) -> Option<Instant> {
        self.asked
    }

    /// Asks whether the server is there.
    pub(crate) async fn ping(&mut self) -> Result<(), Error> {
        self.asked.get_or_insert_with(Instant::now);
        let answer = self.connection.ping().await;
        settle(&mut self.asked, answer.as_ref().err());
        answer
    }

    /// Waits until whatever was asked is answered, and passes over it. Answers whether the connection is in order then.
    pub(crate) async fn drain(&mut self) -> bool {
        for _ in 0..LATE {
            match self.ping().await {
                Ok(()) => return true,
                // That of the statement which was given up.
                Err(Error::Database(_)) if self.asked.is_none() => {}
                Err(_) => return false,
            }
        }
        false
    }

    pub(crate) async fn close(self) {
        let _ = self.connection.close().await;
    }
}

/// The server has answered, or refused; after any other error nobody knows what is still to come.
fn settle(asked: &mut Option<Instant>, error: Option<&Error>) {
    match error {
        None | Some(Error::Encode(_)) => *asked = None,
        Some(error @ Error::Database(_)) if !crate::failure::breaks_connection(error) => *asked = None,
        Some(_) => {}
    }
}

fn silent() -> Error {
    Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in time"))
}

impl<'c> Executor<'c> for &'c mut Session {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Step, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let Session { connection, asked, patience } = self;
        *asked = Some(Instant::now());
        let end = patience.map(|patience| Box::pin(tokio::time::sleep(patience)));
        Box::pin(Answer { steps: connection.fetch_many(query), end, asked })
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move {
            let Session { connection, asked, patience } = self;
            *asked = Some(Instant::now());
            let answer = connection.fetch_optional(query);
            let answer = match *patience {
                Some(patience) => timeout(patience, answer).await.unwrap_or_else(|_| Err(silent())),
                None => answer.await,
            };
            settle(asked, answer.as_ref().err());
            answer
        })
    }

    fn prepare_with<'e>(self, sql: SqlStr, parameters: &'e [PgTypeInfo]) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        self.connection.prepare_with(sql, parameters)
    }
}

/// What comes of a statement.
struct Answer<'e> {
    steps: BoxStream<'e, Result<Step, Error>>,
    end: Option<Pin<Box<Sleep>>>,
    asked: &'e mut Option<Instant>,
}

impl Stream for Answer<'_> {
    type Item = Result<Step, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let step = match self.steps.as_mut().poll_next(context) {
            Poll::Ready(step) => step,
            Poll::Pending => match self.end.as_mut().map(|end| end.as_mut().poll(context)) {
                Some(Poll::Ready(())) => Some(Err(silent())),
                Some(Poll::Pending) | None => return Poll::Pending,
            },
        };
        match &step {
            None => *self.asked = None,
            Some(Err(error)) => settle(self.asked, Some(error)),
            Some(Ok(_)) => {}
        }
        Poll::Ready(step)
    }
}
