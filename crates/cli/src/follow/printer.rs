//! Writing from a thread of its own, so that a slow reader of the output delays neither heartbeats nor signals.

use std::io;

use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::session::output_failure;
use crate::terminal::{Sink, write_all};

type Job = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// Writes blocks of lines, one after the other.
#[derive(Debug)]
pub(crate) struct Printer {
    jobs: mpsc::Sender<Job>,
}

impl Printer {
    /// Starts the thread. It ends with the printer, or with the process when a write never returns.
    pub(crate) fn start(sink: Sink) -> Result<Self, Failure> {
        let (jobs, mut waiting) = mpsc::channel::<Job>(1);
        let writing = move || {
            while let Some((bytes, told)) = waiting.blocking_recv() {
                let _ = told.send(write_all(&sink, &bytes));
            }
        };
        let started = std::thread::Builder::new().name("follow-output".to_owned()).spawn(writing);
        started.map(|_| Self { jobs }).map_err(|error| Failure::io("no thread to write the output", &error))
    }

    /// Returns when `bytes` are written and flushed.
    pub(crate) async fn write(&self, bytes: Vec<u8>) -> Result<(), Failure> {
        let (told, answer) = oneshot::channel();
        let gone = || Failure::Failed("the output thread has ended".to_owned());
        self.jobs.send((bytes, told)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?.map_err(output_failure)
    }
}
