import { codeOf, type Use } from '@svc/core'
import type { Json, McpCallOptions, McpClients, McpServerInfo, McpTool, PeerAnswer, Store, ToolStep } from '@svc/core/contracts'
import { callFailed } from '@svc/mcp'
import { moved } from '../errors.ts'
import { timesOf, withinSandbox } from '../registry/client-options.ts'
import type { Server } from '../registry/configured-servers.ts'
import { pinSeen, pinsKey, putSwitch, serverNamed, switchKey } from '../registry/records.ts'
import { shownOf } from '../registry/server-info.ts'
import type { Board } from '../registry/server-registry.ts'
import { type Crew, type PING, reachedNobody } from './peer-workers.ts'
import type { Seat } from './server-owner.ts'

export interface ClientsParts {
  readonly seats: readonly Seat[]
  readonly board: Board
  readonly store: Store
  readonly crew: Crew | undefined
}

type Args = { readonly [name: string]: Json | undefined }

/** What one worker asks the owner of a server. */
type Question =
  | typeof PING
  | { readonly do: 'open'; readonly server: string; readonly fingerprint: string }
  | {
      readonly do: 'call'
      readonly server: string
      readonly fingerprint: string
      readonly tool: string
      readonly args: Args
      readonly options: McpCallOptions
    }

/** The service: wherever it is called, the call goes to the worker that owns the server. */
export function createClients(parts: ClientsParts): McpClients {
  const { seats, board, store } = parts
  const servers = seats.map(seat => seat.server)
  const seatOf = (name: string) => seats[servers.indexOf(serverNamed(servers, name))]!
  return {
    list: async () => servers.map(server => infoOf(server, board)),
    async tools(name, use) {
      const seat = seatOf(name)
      const known = board.tools(seat.server)
      if (known) return known
      for await (const _ of toOwner(parts, seat, openOf(seat.server), use)) continue
      return toolsSoon(seat, board, use)
    },
    call(name, tool, args, asked, use) {
      const seat = seatOf(name)
      const options = withinSandbox(seat.server.entry, asked)
      const own = board.isEnabled(seat.server) ? seat.holding : undefined
      if (own) return own.call(tool, args, options, use)
      const { fingerprint } = seat.server
      return toOwner(parts, seat, { do: 'call', server: name, fingerprint, tool, args, options }, use)
    },
    async approve(name, tools, use) {
      const { server } = seatOf(name)
      const seen = board.catalogue(server)?.tools ?? []
      await board.noted(pinsKey(server), await pinSeen(store, server, seen, tools, use), use)
    },
    async setEnabled(name, enabled, use) {
      const { server } = seatOf(name)
      await board.noted(switchKey(server), await putSwitch(store, server, enabled, use), use)
    },
  }
}

/** What this worker answers others that ask it for a server that it owns. */
export function createAnswer(seats: readonly Seat[], lasting: Use): PeerAnswer {
  return {
    async *answer(message, use) {
      const question = message as unknown as Question
      if (question.do === 'ping') return yield true
      const { server, fingerprint } = question
      const seat = seats.find(one => one.server.entry.name === server && one.server.fingerprint === fingerprint)
      const holding = seat?.offered
      if (!holding) throw moved(server)
      if (question.do === 'open') return await holding.open({ ...lasting, signal: use.signal })
      yield* holding.call(question.tool, question.args, question.options, use) as AsyncIterable<unknown> as AsyncIterable<Json>
    },
  }
}

const openOf = ({ entry, fingerprint }: Server) => ({ do: 'open', server: entry.name, fingerprint }) as const

/** Asks whoever owns the server; another one, while it has surely reached nobody. */
async function* toOwner(
  { crew }: ClientsParts,
  seat: Seat,
  question: Exclude<Question, typeof PING>,
  use: Use
): AsyncGenerator<ToolStep, void> {
  const endsAt = performance.now() + timesOf(seat.server.entry).usual
  for (;;) {
    const owner = await seat.owner(use)
    if (typeof owner !== 'string') {
      if (question.do === 'open') return await owner.open(use)
      return yield* owner.call(question.tool, question.args, question.options, use)
    }
    try {
      // what its like in another worker yields
      return yield* crew!.ask(owner, question as unknown as Json, use) as AsyncIterable<unknown> as AsyncIterable<ToolStep>
    } catch (error) {
      if (performance.now() > endsAt || !reachedNobody(error)) throw endedWith(question.server, error)
      await seat.news(use)
    }
  }
}

const endedWith = (server: string, error: unknown) =>
  codeOf(error) === 'PEER_GONE' || reachedNobody(error)
    ? callFailed(server, 'connection_refused', 'the worker that had its connection has ended', {
        delivered: reachedNobody(error) ? 'no' : 'maybe',
        cause: error,
      })
    : error

/** What the owner has read comes over the store, a moment after its answer. */
async function toolsSoon(seat: Seat, board: Board, use: Use): Promise<readonly McpTool[]> {
  for (;;) {
    const known = board.tools(seat.server)
    if (known) return known
    use.signal.throwIfAborted()
    await seat.news(use)
  }
}

/** How a server stands, as far as this worker knows. */
export const infoOf = (server: Server, board: Board): McpServerInfo =>
  shownOf(server, { told: board.state(server)?.told, isOn: board.isEnabled(server), tools: board.tools(server) })
