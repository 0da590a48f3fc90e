// A minimal tool server over stdin and stdout with the tool `echo`, for measurements of the code in front of it.
import { createInterface } from 'node:readline'

const TOOL = {
  name: 'echo',
  description: 'Answers what it is given',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
}

const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: protocolVersion === '2025-11-25' ? protocolVersion : '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'echo', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: [TOOL] }),
  'tools/call': params => ({ content: [{ type: 'text', text: params.arguments.text }] }),
}

createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  const make = results[method]
  const answer = make ? { result: make(params ?? {}) } : { error: { code: -32601, message: 'Method not found' } }
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`)
})
