import { type Events, type Log, systemUse, type Use, within } from '@svc/core'
import {
  type Check,
  type Fence,
  type McpClients,
  McpServerConnected,
  McpServerDisconnected,
  type McpServerEvent,
  type MetricFamily,
  type PeerAnswer,
  type Peers,
  type ProcessSandbox,
  type Store,
} from '@svc/core/contracts'
import { createAnswer, createClients, infoOf } from './ownership/mcp-clients.ts'
import { createCrew, type Crew } from './ownership/peer-workers.ts'
import { createClaim } from './ownership/server-lease.ts'
import { Seat } from './ownership/server-owner.ts'
import { type Heralds, Holding } from './ownership/server-session.ts'
import { clientOptions } from './registry/client-options.ts'
import type { Server } from './registry/configured-servers.ts'
import { loginStorage } from './registry/login-storage.ts'
import { createFigures } from './registry/metrics.ts'
import { loginKey, stateKey } from './registry/records.ts'
import { addressOf, createHealth } from './registry/server-info.ts'
import { Board } from './registry/server-registry.ts'

export interface McpParts {
  readonly servers: readonly Server[]
  readonly store: Store
  readonly events: Events
  readonly peers: Peers | undefined
  readonly sandbox: ProcessSandbox | undefined
  readonly serverId: string
  /** Whether this host serves: servers are connected before anybody asks then. */
  readonly isEager: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly lasting: Use
  /** Hears of every server that has changed. */
  readonly changed: (server: string) => void
}

export { TOPIC } from './ownership/peer-workers.ts'

/** The connections to tool servers, and what plugs them into a host. */
export interface Mcp {
  readonly clients: McpClients
  readonly health: Check
  readonly answer: PeerAnswer
  metrics(): readonly MetricFamily[]
  /** Connects what is to be connected. */
  begin(use: Use): Promise<void>
  /** A worker has ended; `holder` is the prefix of its leases. */
  gone(holder: string): void
  /** Another process takes over: servers go on here until it has. */
  leave(): Promise<void>
  /** Lets the calls end that run; at most so many milliseconds. */
  drain(limitMs?: number): Promise<void>
  close(): Promise<void>
}

const TEND_MS = 10_000
const CLOSE_MS = 30_000
const DRAIN_MS = 30_000

/** Takes up what the store knows of the servers. Nothing is connected before `begin`. */
export async function createMcp(parts: McpParts): Promise<Mcp> {
  const { servers, store, peers, log, serverId, lasting } = parts
  const crew = peers && createCrew(peers)
  const self = (await peers?.self(lasting)) ?? 'alone'
  const board: Board = new Board({
    store,
    serverId,
    servers,
    log,
    shared: crew !== undefined,
    changed(server, what) {
      seats.find(seat => seat.server === server)?.changed(what)
      parts.changed(server.entry.name)
    },
  })
  const figures = createFigures()
  const seats = servers.map(server => createSeat({ ...parts, board, crew, self, figures }, server))
  await board.open(lasting)
  const tend = () => void Promise.all(seats.map(seat => seat.tend().catch(unkempt(parts, seat))))
  const timer = setInterval(tend, TEND_MS).unref()
  const over = Promise.withResolvers<void>()
  const clients = createClients({ seats, board, store, crew })
  return {
    clients,
    health: createHealth(clients),
    answer: createAnswer(seats, lasting),
    metrics: () =>
      figures.read(
        seats.flatMap(seat => (seat.holding ? [{ server: seat.server.entry.name, state: infoOf(seat.server, board).state }] : []))
      ),
    async begin(use) {
      await Promise.all(seats.map(seat => seat.begin(use).catch(unkempt(parts, seat))))
    },
    gone(holder) {
      for (const seat of seats) seat.gone(holder)
    },
    async leave() {
      await Promise.all(seats.map(seat => seat.leave()))
    },
    async drain(limitMs = DRAIN_MS) {
      const idle = Promise.all(seats.map(seat => seat.drain()))
      await within(limitMs, () => Promise.race([idle, over.promise])).catch(() => {})
      // whoever hurries later hurries those who began before
      over.resolve()
    },
    async close() {
      clearInterval(timer)
      const use = systemUse(AbortSignal.timeout(CLOSE_MS), 'mcp-client')
      await Promise.all(seats.map(seat => seat.close(use)))
    },
  }
}

const unkempt =
  ({ log, lasting }: McpParts, { server }: Seat) =>
  (err: unknown) => {
    if (!lasting.signal.aborted) log.warn({ err, server: server.entry.name }, 'a tool server could not be looked after')
  }

interface SeatsParts extends McpParts {
  readonly board: Board
  readonly crew: Crew | undefined
  readonly self: string
  readonly figures: ReturnType<typeof createFigures>
}

function createSeat(parts: SeatsParts, server: Server): Seat {
  const { store, board, crew, self, serverId, isEager, env, sandbox, figures, log, lasting } = parts
  const holder = `${serverId}/${process.pid}/`
  const storage = loginStorage(store, server, lasting, note => void board.noted(loginKey(server), note, lasting))
  const options = () => clientOptions(server, { env, sandbox, storage, lasting, known: board.state(server)?.known })
  const deadHolder = () => {
    const state = board.state(server)
    return state?.worker && crew?.isGone(state.worker) ? state.holder : undefined
  }
  const claim = createClaim({ store, lease: `mcp/${stateKey(serverId, server)}`, holder, deadHolder, log, lasting })
  const common = { server, board, self, log, lasting }
  const hold = (fence: Fence | undefined, lost: () => void) =>
    new Holding({ ...common, holder, options, fence, figures, heralds: heralds(parts), lost })
  return new Seat({ ...common, crew, claim, isEager, hold })
}

/** Tells the bus of this worker. */
function heralds({ events, lasting }: McpParts): Heralds {
  const event = ({ entry }: Server, duration: number): McpServerEvent => ({
    source: 'mcp',
    tool_name: null,
    server: entry.name,
    duration,
    timestamp: Date.now(),
    ...(entry.url === undefined ? {} : { url: addressOf(entry.url) }),
  })
  return {
    connected: (server, protocol_version, seconds) =>
      void events.publish(McpServerConnected, { ...event(server, seconds), protocol_version }, lasting),
    disconnected: (server, reason, seconds) =>
      void events.publish(McpServerDisconnected, { ...event(server, seconds), reason }, lasting),
  }
}
