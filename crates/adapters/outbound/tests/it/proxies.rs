//! Variables that name proxies. They are set in a process of their own: a variable is everybody's in a process.

use std::process::Command;

use tokio::net::TcpListener;

use crate::support::{Receiver, Told, answer, client, open, post};

const TEST: &str = "proxies::no_proxy_is_used_whatever_variables_say";

#[tokio::test]
async fn no_proxy_is_used_whatever_variables_say() {
    if std::env::var_os("ALL_PROXY").is_some() {
        let receiver = Receiver::start(answer(204, "", "")).await;
        let client = client(&open(&[&receiver.entry()]), Told::new("agent.example", &[&["127.0.0.1"]]));
        for host in ["agent.example", "127.0.0.1"] {
            assert_eq!(post(&client, &receiver.url(host)).await.unwrap().status, 204, "{host}");
        }
        return;
    }
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", proxy.local_addr().unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap());
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        child.env(name, &url);
    }
    let output = child.env_remove("NO_PROXY").env_remove("no_proxy").args(["--exact", TEST]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let asked = tokio::time::timeout(std::time::Duration::from_millis(10), proxy.accept()).await;
    assert!(asked.is_err(), "the proxy was asked");
}
