//! The floor under requests: a server thread that answers each with the same few bytes and looks at nothing, asked by the same client as
//! the rows.

use std::net::TcpListener as StdListener;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::rows::closed_loop;
use crate::wire::Request;

const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// How many ask at the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerFloor {
    /// Connections, each with one request on its way.
    pub(crate) connections: usize,
}

impl AnswerFloor {
    /// Answers per second, counted by a client on `runtime`.
    pub(crate) fn rate(self, runtime: &Runtime, window: Duration) -> Result<f64, Failure> {
        let listener = StdListener::bind("127.0.0.1:0").map_err(Failure::io("listen"))?;
        listener.set_nonblocking(true).map_err(Failure::io("listen"))?;
        let address = listener.local_addr().map_err(Failure::io("listen"))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let server = std::thread::Builder::new().name("answer-floor".to_owned()).spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::io("start a runtime"))?;
            runtime.block_on(async {
                tokio::select! {
                    served = serve(listener) => served,
                    _ = stopped => Ok(()),
                }
            })
        });
        let server = server.map_err(Failure::io("start a thread"))?;
        let answered = runtime.block_on(closed_loop(address, Request::new("GET", "/").render(), self.connections, window));
        drop(stop);
        let served = server.join().unwrap_or_else(|_| Err(Failure::Wrong("the raw answering loop panicked".to_owned())));
        let rate = answered?.rate;
        served.map(|()| rate)
    }
}

async fn serve(listener: StdListener) -> Result<(), Failure> {
    let listener = TcpListener::from_std(listener).map_err(Failure::io("listen"))?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.map_err(Failure::io("accept"))?;
        connections.spawn(answer(stream));
    }
}

/// Answers whatever is read until the peer leaves: a client that waits for each answer sends one request at a time.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = [0; 4096];
    while stream.read(&mut request).await? > 0 {
        stream.write_all(ANSWER).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::AnswerFloor;

    #[test]
    fn the_loop_answers_and_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert!(AnswerFloor { connections: 4 }.rate(&runtime, Duration::from_millis(50)).unwrap() > 0.0);
    }
}
