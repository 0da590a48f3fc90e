import { subscribe } from 'node:diagnostics_channel'

/** Node's own channels; see "Built-in Channels" in the manual of `diagnostics_channel`. */
const CHANNELS = {
  child_process: 'a process',
  'net.client.socket': 'a connection',
  'tracing:net.server.listen:asyncStart': 'a server',
} as const

const opened = new Set<string>()
for (const [channel, what] of Object.entries(CHANNELS)) subscribe(channel, () => opened.add(what))

/** Fails a unit test that starts a process or opens a socket: `npm run test:unit` shall run anywhere, within a minute. */
export const mochaHooks = {
  afterEach(): void {
    const what = [...opened].join(', ')
    opened.clear()
    if (what !== '')
      throw new Error(`this unit test opened ${what}; OUTSIDE in scripts/test.mjs says how unit tests are told from others`)
  },
}
