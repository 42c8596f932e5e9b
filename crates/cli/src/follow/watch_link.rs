//! Telling on standard error how the connection is.

use client::Link;
use tokio::sync::watch;

use crate::session::Session;

/// Says once when the connection is lost and once when it is back, for as long as it is polled.
pub(crate) async fn tell(mut link: watch::Receiver<Link>, session: &Session) {
    let mut lost = false;
    loop {
        let text = match &*link.borrow_and_update() {
            Link::Waiting { cause, .. } if !lost => Some((true, format!("not connected: {cause}; trying again"))),
            Link::Connected(_) if lost => Some((false, "connected again".to_owned())),
            _ => None,
        };
        if let Some((now_lost, text)) = text {
            lost = now_lost;
            session.note(&text);
        }
        if link.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}
