//! Wire types: REST bodies, gateway frames, problem codes. Shared by server and client.
