import { type BusEvent, definePlugin, Events, type HookCallers, type RunningHost } from '@svc/core'
import { McpClients, type McpClientsHooks, type McpServerInfo, type McpTool, Tools, type ToolStep } from '@svc/core/contracts'
import { type item, testHost, testContext } from '@svc/testing'
import { setTimeout as wait } from 'node:timers/promises'

export const INFO: McpServerInfo = {
  name: 'sea',
  state: 'connected',
  since: 0,
  attempts: 0,
  tools: ['fish'],
  effects: ['read'],
  callLimitMs: 5_000,
}
export const FISH: McpTool = {
  name: 'fish',
  description: 'Catches a fish',
  inputSchema: {
    type: 'object',
    $defs: { kind: { type: 'string' } },
    properties: { kind: { $ref: '#/$defs/kind' } },
    'x-odd': 1,
  },
  outputSchema: { type: 'object' },
  status: 'good',
}
const CAUGHT: ToolStep = { type: 'result', result: { content: [{ type: 'text', text: 'a cod' }], structured: { fish: 'cod' } } }

const unused = () => Promise.reject(new Error('not for tools'))
async function* none() {}
const UNUSED = {
  inspect: unused,
  app: unused,
  approveVersions: unused,
  add: unused,
  remove: unused,
  answerLogin: unused,
  test: none,
  login: none,
}

/** Servers as a test says they are; `notify` reports a change. */
export class Sea {
  servers: McpServerInfo[] = [INFO]
  tools: Record<string, McpTool[]> = { sea: [FISH] }
  asked: unknown[] = []
  /** Milliseconds that each call was given. */
  times: (number | undefined)[] = []
  steps: (signal: AbortSignal) => AsyncIterable<ToolStep> | ToolStep[] = () => [CAUGHT]
  hooks: HookCallers<McpClientsHooks> | undefined

  readonly plugin = {
    name: 'test:clients',
    use: definePlugin({
      provides: McpClients,
      setup: scope => {
        this.hooks = scope.hooks
        const call = this.#call.bind(this)
        return {
          list: async () => this.servers,
          tools: async server => this.tools[server] ?? [],
          call: (server, tool, args, { dialog, timeoutMs }, ctx) => {
            this.times.push(timeoutMs)
            return call([server, tool, args, dialog], ctx.signal)
          },
          approve: async () => {},
          setEnabled: async () => {},
          ...UNUSED,
        }
      },
    }),
  }

  async *#call(asked: unknown, signal: AbortSignal) {
    this.asked.push(asked)
    yield* this.steps(signal)
  }

  notify(server = 'sea') {
    return this.hooks!.changed({ server }, testContext())
  }
}

export const bridged = (sea: Sea, lines: string[] = [], ...give: ReturnType<typeof item>[]) =>
  testHost([new URL('../..', import.meta.url)], {
    give: [sea.plugin, ...give],
    log: { destination: { write: (line: string) => void lines.push(line) } },
  })

const turn = () => new Promise(resolve => setImmediate(resolve))
/** The bridged tools, once they are these. */
export async function names(host: RunningHost, ...wanted: string[]): Promise<string[]> {
  const own = () =>
    host
      .slot(Tools)
      .names()
      .filter(name => name.includes('__'))
  while (own().sort().join() !== wanted.sort().join()) await wait(5)
  return own()
}

/** What comes over the bus, as far as it can be known before. */
export async function heard(host: RunningHost) {
  const all: BusEvent[] = []
  const ending = new AbortController()
  const reading = (async () => {
    for await (const event of host.service(Events).subscribe({ categories: ['TOOL'] }, testContext({ signal: ending.signal })))
      all.push(event)
  })()
  for (let at = 0; at < 5; at++) await turn()
  return {
    async types(count: number) {
      while (all.length < count) await wait(5)
      for (let at = 0; at < 5; at++) await turn()
      return all.map(({ type }) => type)
    },
    all,
    async end() {
      ending.abort()
      await reading
    },
  }
}

/** The steps of a call that ends in this class, and in nothing else. */
export async function* failing(kind: string): AsyncGenerator<ToolStep> {
  yield* []
  throw Object.assign(new Error(`sea: ${kind}`), {
    code: 'MCP_CALL_FAILED',
    details: { server: 'sea', class: kind, message: kind },
  })
}

export const OWN = { category: 'sea', effects: [], parameters: { type: 'object' }, call: async () => ({ content: [] }) }
