import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { MessageChannel } from 'node:worker_threads'
import {
  type Channel,
  ipcTransport,
  memoryTransport,
  openChannel,
  portTransport,
  socketTransport,
  type Transport,
} from '@svc/runtime'
import { CONDITIONS } from '../../../../test/support/entry.ts'
import { Clock, type ClockLog, Watch } from './clock.ts'
import { createClock } from './create-clock.ts'

/** A clock behind a channel. */
export interface FarClock extends AsyncDisposable {
  readonly channel: Channel
  readonly clock: Clock
  readonly watch: Watch
  readonly child?: ChildProcess
}

const entry = new URL('./clock-child.ts', import.meta.url).pathname

function near(transport: Transport, end: () => Promise<unknown>, child?: ChildProcess): FarClock {
  const channel = openChannel(transport, { name: 'clocks', self: 'tests', graceMs: 300 })
  const dispose = async () => {
    channel.close()
    await end()
  }
  return {
    channel,
    clock: channel.reach('clock', Clock),
    watch: channel.reach('watch', Watch),
    ...(child ? { child } : {}),
    [Symbol.asyncDispose]: dispose,
  }
}

function far(transport: Transport) {
  const log: ClockLog = { produced: 0, finished: [], aborted: [] }
  const channel = openChannel(transport, { name: 'tests', self: 'clocks' })
  channel.offer('clock', Clock, createClock(log))
  channel.offer('watch', Watch, { look: async () => log })
}

const ended = (child: ChildProcess) => async () =>
  child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined

/** The same clock behind each transport. */
export const FAR_CLOCKS: Record<string, () => FarClock> = {
  memory() {
    const [a, b] = memoryTransport()
    far(b)
    return near(a, async () => {})
  },
  'a message port'() {
    const { port1, port2 } = new MessageChannel()
    far(portTransport(port2))
    return near(portTransport(port1), async () => {})
  },
  'process IPC'() {
    const child = fork(entry, { serialization: 'advanced', execArgv: [...CONDITIONS] })
    return near(ipcTransport(child), ended(child), child)
  },
  'a socket to another process'() {
    const child = spawn(process.execPath, [...CONDITIONS, entry], { stdio: ['ignore', 2, 2, 'pipe'] })
    return near(socketTransport(child.stdio[3] as Socket), ended(child), child)
  },
}
