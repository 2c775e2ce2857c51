// Runs the protocol's own suite, unmodified, against the server at ZLOG_SERVER.
import { runConformanceTests } from "@durable-streams/server-conformance-tests"

runConformanceTests({ baseUrl: process.env.ZLOG_SERVER })
