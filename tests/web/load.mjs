// Writes COUNT numbers with the protocol's client, and reads them as server-sent events meanwhile.
// Servers die at any time: both alternate between ADDRESSES. Prints what the reader got, as JSON.
import { DurableStream, IdempotentProducer, stream } from "@durable-streams/client"

const [count, ...addresses] = process.argv.slice(2)
let turn = 0

async function fetchAnywhere(url, options) {
  for (;;) {
    const other = String(url).replace(/^http:\/\/[^/]+/, addresses[turn % addresses.length])
    try {
      const reply = await fetch(other, options)
      if (reply.status < 500) return reply
    } catch (error) {
      if (options?.signal?.aborted) throw error
    }
    turn += 1
    await new Promise((done) => setTimeout(done, 50))
  }
}

const url = `${addresses[0]}/v1/stream/load`
const options = { url, fetch: fetchAnywhere, contentType: "application/json" }
const writing = await DurableStream.create(options)
const failures = []
const producer = new IdempotentProducer(writing, "writer", {
  fetch: fetchAnywhere,
  maxBatchBytes: 200,
  onError: (error) => failures.push(String(error)),
})

const got = []
const reader = (async () => {
  let offset = "-1"
  while (got.length < Number(count)) {
    try {
      const reply = await stream({ url, offset, live: "sse", fetch: fetchAnywhere })
      await new Promise((done) => {
        reply.closed.then(done, done)
        reply.subscribeJson(async (batch) => {
          got.push(...batch.items)
          offset = batch.offset
          if (got.length >= Number(count)) done()
        })
      })
      reply.cancel()
    } catch {
      await new Promise((done) => setTimeout(done, 50))
    }
  }
})()

for (let i = 0; i < Number(count); i += 1) {
  producer.append(JSON.stringify(i))
  if (i % 20 === 0) await new Promise((done) => setTimeout(done, 20))
}
await producer.flush()
await reader
console.log(JSON.stringify({ got, failures }))
process.exit(0)
