import { type Child, startChild } from '@svc/worker-pool/processes'
import { createInterface } from 'node:readline/promises'
import { fileURLToPath } from 'node:url'

/** What it does wrong. Without any it is a good server of 2025-11-25 with the tools below. */
export interface Misbehavior {
  /** Over HTTP, at /mcp. */
  readonly http?: boolean
  /** HTTP: listens here, not on any free port. */
  readonly port?: number
  /** Speaks 2026-07-28 instead. */
  readonly modern?: boolean
  /** So many tools besides its own. */
  readonly tools?: number
  /** A list that never ends: each page is new, or is the same again. */
  readonly cursors?: 'endless' | 'same'
  /** A tool whose schema is 10,000 levels deep, has a pattern that backtracks, or is 50 MB large. */
  readonly schema?: 'deep' | 'pattern' | 'large'
  /** Hidden characters in the words of `echo`. */
  readonly hidden?: boolean
  /** The description of `echo` is another each time the tools are listed, and it says so; or that of all tools is; or another in each process. */
  readonly fickle?: boolean | 'all' | 'start'
  /** Never answers these methods. */
  readonly silent?: readonly string[]
  /** Milliseconds before it answers anything. */
  readonly slowMs?: number
  /** Answers these methods with what is no JSON, no JSON-RPC, another id, or an id that was answered before. */
  readonly malformed?: { readonly [method: string]: 'text' | 'envelope' | 'id' | 'twice' }
  /** Writes to standard error, or sends notifications or answers that nobody asked for, or one line, without end. */
  readonly flood?: 'stderr' | 'notices' | 'answers' | 'line'
  readonly ignoresTerm?: boolean
  /** Before it answers a call, it answers all calls again that there ever were, of earlier lives too: it keeps their ids in this file. */
  readonly replays?: string
  /** Starts a process that would outlive it, in a group of its own where this says so. */
  readonly grandchild?: 'group' | 'session'
  /** Dies at each n-th call, before it answers. */
  readonly diesEach?: number
  /** Dies once it has answered this method. */
  readonly diesAfter?: string
  /** Ends when it is asked what it does not know (`server/discover`). */
  readonly diesOnUnknown?: boolean
  /** Claims a version that nobody knows. */
  readonly version?: string
  /** HTTP: every POST is answered with this status; 302 leads to `location`. */
  readonly status?: number
  readonly location?: string
  /** HTTP: answers as an event stream; `endless`: the stream of notifications never stops sending, `open`: nor ends after the answer; `again`: ends at once, and
   * is to be asked for again at once. */
  readonly stream?: 'answer' | 'endless' | 'open' | 'again'
  /** HTTP: forgets its sessions after so many requests. */
  readonly forgetsAfter?: number
}

const SCRIPT = fileURLToPath(new URL('./hostile-server.mjs', import.meta.url))

/** The command of a hostile server over stdio. */
export const hostileCommand = (problems: Misbehavior = {}) => ({
  command: process.execPath,
  args: [SCRIPT, JSON.stringify(problems)],
})

export interface HostileServer extends AsyncDisposable {
  readonly url: string
  readonly child: Child
}

/** A hostile server over HTTP, in a process of its own. */
export async function openHostile(problems: Misbehavior = {}): Promise<HostileServer> {
  const { command, args } = hostileCommand({ ...problems, http: true })
  const child = await startChild({ file: command, args, env: {} })
  const { value: url } = await createInterface(child.stdout)[Symbol.asyncIterator]().next()
  return {
    url: url as string,
    child,
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}
