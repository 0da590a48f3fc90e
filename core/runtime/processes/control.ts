import { once } from 'node:events'
import { mkdirSync, readFileSync, type Stats, statSync, writeFileSync } from 'node:fs'
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type CallContext, codeOf, defineService, type HostReport, type SvcError, svcHome, systemContext } from '@svc/core'
import type { OperatorAnswerPart, OperatorRequest } from '@svc/core/contracts'
import type { WorkerInfo } from '../supervisor/worker-handle.ts'
import { type Channel, openChannel } from './channel.ts'
import { fromWire, homeUnusable, serverAmbiguous, serverNone, type WireError } from './errors.ts'
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
  /** The subset that it serves. Absent: everything. */
  readonly surface?: string
  /** The folder of the only plugin that it loads besides the built-in ones and those of its configuration: `svc plugins dev`. */
  readonly linked?: string
  readonly workers: readonly WorkerInfo[]
  /** The last reload, if it failed. */
  readonly failedReload?: FailedReload
}

/** A reload that failed: the former workers serve on. */
export interface FailedReload {
  /** Unix time in milliseconds. */
  readonly at: number
  /** What asked for the reload: `svc plugins`, `SIGHUP`, a file. */
  readonly reason: string
  readonly problems: readonly WireError[]
}

/** Result of a reload. */
export interface ReloadResult {
  /** Why the reload failed; the old workers keep serving. Empty on success. */
  readonly problems: readonly WireError[]
  /** All workers: serving and draining ones. */
  readonly workers: readonly WorkerInfo[]
  readonly url: string
  /** Maximum milliseconds that the old workers drain. */
  readonly drainLimitMs: number
}

/** Operations of a running server for commands. */
export interface Control {
  info(ctx: CallContext): Promise<ServerInfo>
  /** The host report that a worker sent when it was ready. */
  report(ctx: CallContext): Promise<HostReport>
  /**
   * Starts to stop the server: it serves on for so many milliseconds while it is not ready, drains, then exits. Without a number
   * it takes `server.shutdown_delay`.
   */
  stop(leaveMs: number | undefined, ctx: CallContext): Promise<void>
  /**
   * Drains all workers and yields `paused` when none is left; connections are then refused. When the reader leaves, or after
   * `resume`, workers start from the current files.
   */
  pause(ctx: CallContext): AsyncIterable<'paused'>
  /** Ends a pause and returns like `reload`. Without a pause it is a reload. */
  resume(ctx: CallContext): Promise<ReloadResult>
  /** Starts workers from the current files and drains the old ones. Resolves when the new ones serve or have failed. */
  reload(ctx: CallContext): Promise<ReloadResult>
  /**
   * Asks a worker that serves, and streams the answer of its item `topic` in the slot `PeerAnswers`. Throws PEER_GONE if no worker
   * serves or that one ends first, and PEER_SILENT if it has no such item.
   */
  ask(topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown>
  /**
   * Sends an HTTP request to a worker that serves, as the principal `system`. It needs no credential: only
   * the user of the server can open the socket. Yields the head of the answer, then its body. Throws PEER_GONE, NO_API.
   */
  request(request: OperatorRequest, ctx: CallContext): AsyncIterable<OperatorAnswerPart>
}
export const Control = defineService<Control>('control', {
  api: 1,
  methods: {
    info: 'call',
    report: 'call',
    stop: 'call',
    reload: 'call',
    pause: 'stream',
    resume: 'call',
    ask: 'stream',
    request: 'stream',
  },
})

export interface ControlSocket extends AsyncDisposable {
  readonly path: string
}

/** Maximum length of a socket address. */
const LONGEST_PATH = 107
const SHORT_SOCKET = 'control.sock'
const SHORT_FOLDER = 'svc-'
const [PROBE_MS, BETWEEN_MS] = [2000, 20]
/** A server that took the connection is alive: a busy machine may delay its answer. */
const ANSWER_MS = 10_000

/** A server by process id and server id. The server id is unique; a process id can be reused, later or in another container. */
interface ServerName {
  readonly pid: number
  readonly id: string
}

/**
 * Lets commands reach this server at `<home>/run/<pid>.sock` (folder 0700, socket 0600: only the same user has access). Removes
 * the sockets of dead servers. If a running server of another container has that name, the socket is `<id>.sock`. A path that
 * is too long for a socket is replaced by a private folder in the system's temporary directory, noted in
 * `<home>/run/<pid>.path`. `<home>/run/<pid>.id` holds the server id.
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

/** Location of a server's socket, and of the note that leads to it, if the socket is elsewhere. */
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

/** The note is written last: another starting server takes a note without a socket for that of a dead server. */
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
  // An error of one connection: its command fails, the server continues.
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
  const isNamed = basename(path) === SHORT_SOCKET && basename(dirname(path)).startsWith(SHORT_FOLDER)
  const ours = !note || (isNamed && (await isPrivate(place)))
  if (ours) await rm(path, { force: true })
  if (!note) return
  if (ours) await rmdir(dirname(path)).catch(() => {})
  await rm(note, { force: true })
}

async function removeDead(run: string): Promise<void> {
  for (const place of await placesIn(run)) if (await isDead(place)) await remove(place)
}

/** A socket also refuses between bind and listen. Only a socket that refuses twice belongs to a dead server. */
const isDead = async (place: SocketLocation): Promise<boolean> =>
  (await refuses(place)) && (await setTimeout(BETWEEN_MS).then(() => refuses(place)))

async function refuses(place: SocketLocation): Promise<boolean> {
  const answer = await connect(place)
  if (typeof answer === 'string') return DEAD.has(answer)
  answer.destroy()
  return false
}

/** The ids of servers of this home that ended without cleanup, as far as recorded. */
export async function deadServers(home: string): Promise<string[]> {
  const places = await placesIn(join(home, 'run'))
  const dead = await Promise.all(places.map(async place => ((await isDead(place)) ? [await idOf(place)] : [])))
  return dead.flat().filter(id => id !== '')
}

const idOf = (place: SocketLocation) => readFile(idFile(place), 'utf8').catch(() => '')

const STRANGE = 'STRANGE'
const DEAD = new Set(['ECONNREFUSED', 'ENOENT', 'ENOTSOCK', STRANGE])

/**
 * Whether only the user of the home can have made the socket that a note leads to. The system cleans its temporary directory: then
 * another user can make the folder of a dead server again, and would get the requests of commands.
 */
async function isPrivate({ path, note }: SocketLocation): Promise<boolean> {
  if (note === undefined) return true
  try {
    const [folder, run] = await Promise.all([lstat(dirname(path)), stat(dirname(note))])
    return folder.isDirectory() && folder.uid === run.uid && (folder.mode & 0o077) === 0
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return true // `connect` reports it
    throw error
  }
}

/** Returns a connection, or the error code. */
async function connect(place: SocketLocation): Promise<Socket | string> {
  const { path } = place
  // the note is being written
  if (path === '') return 'EMPTY'
  if (!(await isPrivate(place))) return STRANGE
  const socket = createConnection(path)
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(PROBE_MS) })
    return socket
  } catch (error) {
    socket.destroy()
    return codeOf(error) ?? 'TIMEOUT'
  }
}

/** A running server. Disposing of it ends the connection, not the server. */
export interface FoundServer extends Disposable {
  readonly info: ServerInfo
  readonly control: Control
}

/** All servers that run in this home. */
export async function findServers(home: string): Promise<FoundServer[]> {
  const found = await Promise.all((await placesIn(join(home, 'run'))).map(find))
  return found.filter(server => server !== undefined)
}

/** A server of this home that was reloaded, and why it could not load the change. */
interface ReloadedServer {
  readonly url: string
  readonly problems: readonly SvcError[]
}

/** Reloads the servers of this home, one after the other. */
export async function* reloadServers(home: string, ctx: CallContext): AsyncGenerator<ReloadedServer, void> {
  using stack = new DisposableStack()
  for (const { control, info } of (await findServers(home)).map(server => stack.use(server)))
    yield { url: info.url, problems: (await control.reload(ctx)).problems.map(fromWire) }
}

async function find(place: SocketLocation): Promise<FoundServer | undefined> {
  const socket = await connect(place)
  if (typeof socket === 'string') return undefined
  const channel = openChannel(socketTransport(socket), { name: 'svc', self: 'a command', graceMs: 100 })
  const control = channel.reach('control', Control)
  try {
    const info = await control.info({ ...systemContext(channel.signal), deadline: Date.now() + ANSWER_MS })
    return { info, control, [Symbol.dispose]: channel.close }
  } catch (error) {
    channel.close()
    // The server hangs or has just exited. Other errors, such as another version, are reported.
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
  for (const item of servers) if (item !== server || others.length > 0) item[Symbol.dispose]()
  if (!server) throw serverNone(home, port)
  if (others.length > 0)
    throw serverAmbiguous(
      home,
      [server, ...others].map(other => other.info.port).sort((a, b) => a - b)
    )
  return server
}

/** As `reachServer`, but returns `undefined` if no server runs and no port is asked for. */
export async function reachServerIfAny(
  home: string,
  choice: NonNullable<Parameters<typeof reachServer>[1]> = {}
): Promise<FoundServer | undefined> {
  try {
    return await reachServer(home, choice)
  } catch (error) {
    if (codeOf(error) === 'SERVER_NONE' && choice.port === undefined) return undefined
    throw error
  }
}

/** Creates the svc home for its owner only, if it is missing, and returns its path. Throws HOME_UNUSABLE. */
export function ensureHome(home: string = svcHome()): string {
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    if (!statSync(home).isDirectory()) throw new Error('it is not a folder')
  } catch (error) {
    throw homeUnusable(home, error)
  }
  return home
}

/** Not a secret: node:crypto would delay the first worker by a tenth. */
const randomName = () => Math.floor(Math.random() * 2 ** 52).toString(36)

/** Makes the id of a server of this node. It is never reused, unlike a process id. */
export const makeServerId = (nodeId: string): string => `${nodeId}.${Date.now().toString(36)}${randomName()}`

const NODE_NAME = /^[\w-]{1,64}$/
const nodeFile = (home: string) => join(home, 'node')

/** The name of this home as a node of a cluster, which it keeps over restarts; undefined before its first server. */
export function knownNodeId(home: string): string | undefined {
  try {
    const kept = readFileSync(nodeFile(home), 'utf8').trim()
    return NODE_NAME.test(kept) ? kept : undefined
  } catch {
    // no server has started in this home
    return undefined
  }
}

/** The same; the first start of a home makes it. */
export function nodeIdOf(home: string): string {
  const known = knownNodeId(home)
  if (known !== undefined) return known
  const made = randomName()
  try {
    writeFileSync(nodeFile(home), `${made}\n`, { mode: 0o600 })
  } catch {
    // A home that cannot be written, or a full disk: this start has a name of its own.
  }
  return made
}

/**
 * Files that this process has created for the user, with their stats at that time. Unchanged stats mean that the user has not
 * edited the file.
 */
export const createdFiles = new Map<string, Stats>()
