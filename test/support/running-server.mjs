#!/usr/bin/env node
// A server of the tool protocol whose one tool runs the code that it is given: what a hostile server could do, a test can.
import { createInterface } from 'node:readline'

const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor
const tool = { name: 'run', inputSchema: { type: 'object', properties: { code: { type: 'string' } }, required: ['code'] } }
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'running', version: '1' },
  }),
  'tools/list': () => ({ tools: [tool] }),
  async 'tools/call'({ arguments: { code } }) {
    // each attack answers with what it got; what throws answers with why
    const got = await new AsyncFunction(code)().catch(error => `refused: ${error.code ?? error.message}`)
    return { content: [{ type: 'text', text: JSON.stringify(got ?? null) }] }
  },
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  const answer = answers[method]
  if (id === undefined) continue
  const reported = answer ? { result: await answer(params) } : { error: { code: -32601, message: 'unknown' } }
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...reported })}\n`)
}
