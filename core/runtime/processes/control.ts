import { once } from 'node:events'
import { mkdirSync, type Stats, statSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type CallContext, codeOf, defineService, type HostReport, svcHome, systemContext } from '@svc/core'
import type { WorkerInfo } from '../supervisor/worker-handle.ts'
import { type Channel, openChannel } from './channel.ts'
import { homeUnusable, serverAmbiguous, serverNone, type WireError } from './errors.ts'
import { socketTransport } from './wire.ts'

/** A running server, as commands see it. */
export interface ServerInfo {
  readonly pid: number
  readonly url: string
  readonly host: string
  readonly port: number
  readonly version: string
  /** Unix time in milliseconds. */
  readonly startedAt: number
  /** What it serves in place of all; absent: all. */
  readonly surface?: string
  readonly workers: readonly WorkerInfo[]
}

/** What came of a reload. */
export interface ReloadResult {
  /** Why nothing was reloaded: the old workers serve on. Empty when it was. */
  readonly problems: readonly WireError[]
  /** All workers: those that serve now, and those that end what they had begun. */
  readonly workers: readonly WorkerInfo[]
  readonly url: string
  /** Milliseconds that the old ones have at most. */
  readonly drainLimitMs: number
}

/** What commands may ask of a running server. */
export interface Control {
  info(ctx: CallContext): Promise<ServerInfo>
  /** The host as its worker told it when it was ready. */
  report(ctx: CallContext): Promise<HostReport>
  /** Begins to stop it: drains, then ends. */
  stop(ctx: CallContext): Promise<void>
  /**
   * Lets all workers drain and says `paused` once there is none: connections are refused then. When the reader leaves, or after `resume`, the next workers
   * come up from what is on disk.
   */
  pause(ctx: CallContext): AsyncIterable<'paused'>
  /** Ends a pause; answers like `reload`. Without a pause it is nothing but a reload. */
  resume(ctx: CallContext): Promise<ReloadResult>
  /** Brings up the next workers from what is on disk and lets the old ones drain; answers when the new ones serve, or cannot. */
  reload(ctx: CallContext): Promise<ReloadResult>
}
export const Control = defineService<Control>('control', {
  api: 1,
  methods: { info: 'call', report: 'call', stop: 'call', reload: 'call', pause: 'stream', resume: 'call' },
})

export interface ControlSocket extends AsyncDisposable {
  readonly path: string
}

/** What fits into a socket's address. */
const LONGEST_PATH = 107
const SHORT_SOCKET = 'control.sock'
const SHORT_FOLDER = 'svc-'
const [PROBE_MS, BETWEEN_MS] = [2000, 20]

/** A server as its socket tells of it: `id` is its own for ever, its process id another server's as well, after it or in another container. */
interface ServerName {
  readonly pid: number
  readonly id: string
}

/**
 * Lets commands reach this server at `<home>/run/<pid>.sock` (folder 0700, socket 0600: only the same user may speak), and removes the sockets of dead servers.
 * Where a living server of another container has that name it is `<id>.sock`. A path too long for a socket goes to a private folder in the system's temporary
 * directory, noted in `<home>/run/<pid>.path`; whose it is stands in `<home>/run/<pid>.id`.
 */
export async function listenControl(home: string, { pid, id }: ServerName, control: Control): Promise<ControlSocket> {
  const run = join(home, 'run')
  await mkdir(run, { recursive: true, mode: 0o700 })
  await chmod(run, 0o700)
  await removeDead(run)
  const channels = new Set<Channel>()
  const server = createServer(socket => {
    const channel = openChannel(socketTransport(socket), { name: 'a command', self: 'svc' })
    channel.offer('control', Control, control)
    channels.add(channel)
    channel.signal.addEventListener('abort', () => channels.delete(channel), { once: true })
  })
  const place = await listenAt(server, join(run, `${pid}`)).catch(error => {
    if (!TAKEN.has(codeOf(error) ?? '')) throw error
    return listenAt(server, join(run, id))
  })
  await writeFile(idFile(place), id, { mode: 0o600 })
  return {
    path: place.path,
    async [Symbol.asyncDispose]() {
      server.close()
      for (const channel of channels) channel.close()
      await remove(place)
    },
  }
}

/** Where a server listens: its socket, and the note that leads to it, if it lies elsewhere. */
interface SocketLocation {
  readonly path: string
  readonly note?: string
}

const TAKEN = new Set(['EADDRINUSE', 'EEXIST'])

const idFile = ({ path, note = path }: SocketLocation) => note.replace(/\.(sock|path)$/, '.id')

async function listenAt(server: Server, base: string): Promise<SocketLocation> {
  const path = `${base}.sock`
  if (Buffer.byteLength(path) > LONGEST_PATH) return listenElsewhere(server, `${base}.path`)
  await listenOn(server, path)
  return { path }
}

/** The note is written last: another server that starts takes one that leads to nothing for a dead server's. */
async function listenElsewhere(server: Server, note: string): Promise<SocketLocation> {
  const place = { path: join(await mkdtemp(join(tmpdir(), SHORT_FOLDER)), SHORT_SOCKET), note }
  await listenOn(server, place.path)
  try {
    await writeFile(note, place.path, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    server.close()
    await once(server, 'close')
    await rmdir(dirname(place.path))
    throw error
  }
  return place
}

async function listenOn(server: Server, path: string): Promise<void> {
  server.listen(path)
  await once(server, 'listening')
  // of a connection that could not be accepted: its command fails, the server goes on
  server.on('error', () => {})
  await chmod(path, 0o600)
}

async function placesIn(run: string): Promise<SocketLocation[]> {
  const names = await readdir(run).catch(() => [])
  const notes = names.filter(name => name.endsWith('.path')).map(name => join(run, name))
  const noted = notes.map(async note => ({ path: (await readFile(note, 'utf8').catch(() => '')).trim(), note }))
  return [...names.filter(name => name.endsWith('.sock')).map(name => ({ path: join(run, name) })), ...(await Promise.all(noted))]
}

async function remove(place: SocketLocation): Promise<void> {
  const { path, note } = place
  await rm(idFile(place), { force: true })
  const ours = !note || (basename(path) === SHORT_SOCKET && basename(dirname(path)).startsWith(SHORT_FOLDER))
  if (ours) await rm(path, { force: true })
  if (!note) return
  if (ours) await rmdir(dirname(path)).catch(() => {})
  await rm(note, { force: true })
}

async function removeDead(run: string): Promise<void> {
  for (const place of await placesIn(run)) if (await isDead(place)) await remove(place)
}

/** A socket that is bound a moment before its server listens refuses, too: only one that refuses twice is a dead server's. */
const isDead = async (place: SocketLocation): Promise<boolean> =>
  (await refuses(place)) && (await setTimeout(BETWEEN_MS).then(() => refuses(place)))

async function refuses({ path }: SocketLocation): Promise<boolean> {
  const answer = await connect(path)
  if (typeof answer === 'string') return DEAD.has(answer)
  answer.destroy()
  return false
}

/** The ids of servers of this home that ended without a word, as far as they have told them. */
export async function deadServers(home: string): Promise<string[]> {
  const places = await placesIn(join(home, 'run'))
  const dead = await Promise.all(places.map(async place => ((await isDead(place)) ? [await idOf(place)] : [])))
  return dead.flat().filter(id => id !== '')
}

const idOf = (place: SocketLocation) => readFile(idFile(place), 'utf8').catch(() => '')

const DEAD = new Set(['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'])

/** A connection, or the code of why there is none. */
async function connect(path: string): Promise<Socket | string> {
  // its note is being written
  if (path === '') return 'EMPTY'
  const socket = createConnection(path)
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(PROBE_MS) })
    return socket
  } catch (error) {
    socket.destroy()
    return codeOf(error) ?? 'TIMEOUT'
  }
}

/** A running server that was found; disposing of it ends the connection, not the server. */
export interface FoundServer extends Disposable {
  readonly info: ServerInfo
  readonly control: Control
}

/** All servers that run in this home. */
export async function findServers(home: string): Promise<FoundServer[]> {
  const found = await Promise.all((await placesIn(join(home, 'run'))).map(find))
  return found.filter(server => server !== undefined)
}

async function find({ path }: SocketLocation): Promise<FoundServer | undefined> {
  const socket = await connect(path)
  if (typeof socket === 'string') return undefined
  const channel = openChannel(socketTransport(socket), { name: 'svc', self: 'a command', graceMs: 100 })
  const control = channel.reach('control', Control)
  try {
    const info = await control.info({ ...systemContext(channel.signal), deadline: Date.now() + PROBE_MS })
    return { info, control, [Symbol.dispose]: channel.close }
  } catch (error) {
    channel.close()
    // It hangs or has just ended; anything else, such as another version, is worth telling.
    if (['TIMEOUT', 'PLUGIN_GONE'].includes(codeOf(error) ?? '')) return undefined
    throw error
  }
}

/** The server of this home: the one on `port`, or the only one that `fits`. Throws SERVER_NONE, SERVER_AMBIGUOUS. */
export async function reachServer(
  home: string,
  { port, fits = () => true }: { port?: number | undefined; fits?: (info: ServerInfo) => boolean } = {}
): Promise<FoundServer> {
  const servers = await findServers(home)
  const [server, ...others] = servers.filter(({ info }) => (port === undefined ? fits(info) : info.port === port))
  for (const one of servers) if (one !== server || others.length > 0) one[Symbol.dispose]()
  if (!server) throw serverNone(home, port)
  if (others.length > 0)
    throw serverAmbiguous(
      home,
      [server, ...others].map(one => one.info.port).sort((a, b) => a - b)
    )
  return server
}

/** Makes the svc home where it is missing, for its owner alone; returns it. Throws HOME_UNUSABLE. */
export function ensureHome(home: string = svcHome()): string {
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    if (!statSync(home).isDirectory()) throw new Error('it is no folder')
  } catch (error) {
    throw homeUnusable(home, error)
  }
  return home
}

/** Files that this process has begun for a person to go on with, by path, each as it was then: one that is so still was changed by nobody. */
export const createdFiles = new Map<string, Stats>()
