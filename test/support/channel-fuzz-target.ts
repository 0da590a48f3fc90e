// The host's side of the channel of an isolated plugin, for test/support/channel-fuzz.ts: channel-fuzz-target.ts <socket path>.
import { createServer, type Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { definePlugin, defineService, type Scope, startHost, systemContext, type CallContext } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { openChannel, socketTransport } from '@svc/runtime'
import { HostBridge } from '../../core/runtime/isolation/contract.ts'
import { createContributions } from '../../core/runtime/isolation/contributions.ts'
import type { Isolated } from '../../core/runtime/isolation/isolated-ref.ts'
import { UNTRUSTED_CALLS, UNTRUSTED_TRANSPORT } from '../../core/runtime/isolation/isolated-process.ts'
import { createBorrowedContexts } from '../../core/runtime/isolation/borrowed-contexts.ts'
import { createOutputLimiter } from '../../core/runtime/isolation/output-limiter.ts'
import { createHostBridge } from '../../core/runtime/isolation/host-bridge.ts'
import type { TargetReport } from './channel-fuzz.ts'

interface Echo {
  echo(value: unknown, ctx: CallContext): Promise<unknown>
  count(to: number, ctx: CallContext): AsyncIterable<number>
}
const Echo = defineService<Echo>('echo', { api: 1, methods: { echo: 'call', count: 'stream' } })
const echo: Echo = {
  echo: async value => (written(value), value),
  async *count(to) {
    for (let at = 0; at < Math.min(to, 1000); at++) yield at
  },
}

/** What the host does with most of what comes: it becomes JSON. */
const written = (value: unknown) => JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? String(item) : item))

const name = 'fuzz'
let breaches = 0

function serve(socket: Socket, scope: Scope): void {
  const channel = openChannel(socketTransport(socket, UNTRUSTED_TRANSPORT), {
    name,
    self: 'svc',
    callLimits: UNTRUSTED_CALLS,
    graceMs: 50,
    onBreach: () => void breaches++,
  })
  const uses = createBorrowedContexts(name)
  const contributions = createContributions(name)
  const budget = createOutputLimiter(() => {})
  channel.signal.addEventListener('abort', () => {
    contributions.removeAll()
    budget[Symbol.dispose]()
  })
  const plugin: Isolated = {
    ref: { name, module: '', confinement: { folder: '', permissions: { hooks: ['*'], services: ['*'] } } },
    options: {},
    section: undefined,
    requires: {},
    optional: {},
    provides: undefined,
    alsoProvides: [],
    own: token => (token.name === Tools.name ? (Tools as typeof token) : token),
  }
  channel.offer(
    'host_bridge',
    HostBridge,
    createHostBridge(plugin, scope, { channel, uses, contributions, budget, refused: async () => {} })
  )
  channel.offer<unknown>('given.echo', Echo, uses.guard(Echo, echo))
  void ask(channel.reach('far', Echo), systemContext(channel.signal))
}

/** Calls and streams that the far side may answer as it likes. */
async function ask(far: Echo, ctx: CallContext): Promise<void> {
  const read = async () => {
    for await (const item of far.count(10, ctx)) written(item)
  }
  await Promise.allSettled([...Array.from({ length: 6 }, () => far.echo('x', ctx).then(written)), read(), read()])
}

let scope: Scope | undefined
await startHost({
  plugins: [
    {
      name,
      use: definePlugin({ setup: own => void (scope = own) }),
      manifest: { api: 1, kind: 'tool', contributes: { tools: ['*'] } },
    },
  ],
  log: { destination: { write() {} } },
})
const delay = monitorEventLoopDelay({ resolution: 10 })
delay.enable()
const server = createServer(socket => serve(socket, scope!))
server.listen(process.argv[2], () => process.send!('ready'))
process.on('message', () => {
  const report: TargetReport = { breaches, longestMs: Math.round(delay.max / 1e6) }
  // in a later turn: what has come over the sockets is read first
  setImmediate(() => process.send!(report))
})
process.on('disconnect', () => process.exit())
