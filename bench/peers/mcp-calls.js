// Calls a tool of mcp-stdio.js through the client of the first argument, as often as the parent requests. Returns the processor
// time per call.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const AT_ONCE = 16
const command = process.execPath
const args = [fileURLToPath(new URL('./mcp-stdio.js', import.meta.url))]
const call = { name: 'echo', arguments: { text: 'hello' } }

const MAKERS = {
  async ours() {
    const { createMcpClient } = await import('@svc/plugin-mcp-client/client')
    const client = createMcpClient({ command, args, limits: { callsPerTool: AT_ONCE } })
    await client.connect()
    return () => client.callTool(call.name, call.arguments)
  },
  async sdk() {
    const { Client } = await import('@modelcontextprotocol/client')
    const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio')
    const client = new Client({ name: 'bench', version: '1.0.0' })
    await client.connect(new StdioClientTransport({ command, args }))
    return () => client.callTool(call)
  },
  async hand() {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] })
    const waiting = new Map()
    let last = 0
    createInterface({ input: child.stdout }).on('line', line => {
      const { id, result } = JSON.parse(line)
      waiting.get(id)(result)
      waiting.delete(id)
    })
    return () =>
      new Promise(resolve => {
        const id = ++last
        waiting.set(id, resolve)
        child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: call })}\n`)
      })
  },
}

const one = await MAKERS[process.argv[2]]()
const some = async count => {
  for (let at = 0; at < count; at++) {
    const { content } = await one()
    if (content[0]?.text !== 'hello') throw new Error('not what was asked for')
  }
}
process.on('message', async calls => {
  const before = process.cpuUsage()
  await Promise.all(Array.from({ length: AT_ONCE }, () => some(calls / AT_ONCE)))
  const { user, system } = process.cpuUsage(before)
  process.send((user + system) / calls)
})
process.on('disconnect', () => process.exit(0))
process.send('ready')
