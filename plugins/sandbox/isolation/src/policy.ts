import { readFile, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { codeOf, get, type Log, messageOf, systemContext, type CallContext } from '@svc/core'
import type {
  Isolation,
  IsolationUsage,
  IsolationRequest,
  PreparedProcess,
  ProcessSandbox,
  RefusalKind,
} from '@svc/core/contracts'
import { matchesPattern } from '@svc/runtime/isolation'
import { openEgress } from './egress.ts'
import { pathMissing, unavailable } from './errors.ts'
import { foldersOf } from './folders.ts'
import type { Quarantine } from './quarantine.ts'
import { type IsolationConfig, limitsFor } from './settings.ts'
import { makeTemporary, removeTemporary, sweepTemporary } from './temporary.ts'

export interface PolicyOptions {
  readonly config: IsolationConfig
  readonly log: Log
  readonly sandbox: ProcessSandbox | undefined
  readonly quarantine: Quarantine
}

/** What one process has, until it is released. */
interface Held {
  readonly refusals: Refusals
  /** Ends all of it; answers with the limits that the process ran into. */
  release(ctx: CallContext): Promise<string[]>
}

/** Holds isolated plugins to what they may have, by the process sandbox. */
export function createPolicy(options: PolicyOptions): Isolation & AsyncDisposable {
  const { log, quarantine } = options
  const held = new Map<string, Held>()
  const swept = sweepTemporary().catch((err: unknown) => log.warn({ err }, 'left-over temporary folders were not removed'))
  const counted = new Map<string, Refusals>()
  const refusalsOf = (plugin: string) => {
    const refusals = counted.get(plugin) ?? createRefusals(plugin, log)
    counted.set(plugin, refusals)
    return refusals
  }
  const release = async (id: string, ctx: CallContext) => {
    const one = held.get(id)
    held.delete(id)
    return (await one?.release(ctx)) ?? []
  }
  return {
    async prepare(request, ctx) {
      const refusals = refusalsOf(request.plugin)
      const made = await prepareOne(request, refusals, options, ctx)
      held.set(made.prepared.id, { refusals, release: one => made.release(one) })
      return made.prepared
    },
    release,
    async refused(id, { kind, what }) {
      held.get(id)?.refusals.count(kind, what)
    },
    async look(id, pid) {
      return { ...(await metricsOf(pid)), refusals: held.get(id)?.refusals.all() ?? {} }
    },
    quarantine: (who, ctx) => quarantine.put(who, ctx),
    quarantined: (who, ctx) => quarantine.watch(who, ctx),
    async [Symbol.asyncDispose]() {
      const ctx = systemContext(AbortSignal.timeout(10_000), 'isolation')
      await swept
      await Promise.all([...held.keys()].map(id => release(id, ctx)))
    },
  }
}

interface Made {
  readonly prepared: PreparedProcess
  release(ctx: CallContext): Promise<string[]>
}

async function prepareOne(
  request: IsolationRequest,
  refusals: Refusals,
  options: PolicyOptions,
  ctx: CallContext
): Promise<Made> {
  const { config, sandbox, log } = options
  const { plugin } = request
  const allowed = await existing(request)
  const visible = await foldersOf([request.folder, ...request.hostFolders])
  const why = sandbox
    ? await missing(sandbox, ctx)
    : { why: 'no plugin provides the process sandbox', hint: 'add @svc/plugin-sandbox-process to "plugins"' }
  if (!why) return inSandbox(request, { allowed, visible, refusals, config, sandbox: sandbox! }, ctx)
  if (config.without_sandbox === 'refuse') throw unavailable(plugin, why.why, why.hint)
  log.warn(
    { of: plugin, why: why.why },
    `${plugin} runs with open network and unlimited memory: this machine has no sandbox for it, and the configuration says to go without`
  )
  return behindPermissions(request, allowed, visible, config)
}

/** Why this machine cannot hold a plugin, and what fixes that. */
async function missing(
  sandbox: ProcessSandbox,
  ctx: CallContext
): Promise<{ readonly why: string; readonly hint: string } | undefined> {
  const { ready, memory, pids, reason = 'it cannot hold what is asked', hint = 'install bubblewrap' } = await sandbox.probe(ctx)
  return ready && memory && pids ? undefined : { why: reason, hint }
}

/** What it may read need not be there; what it may write must. */
async function existing(request: IsolationRequest): Promise<Allowed> {
  const allowed = allowedOf(request)
  const isThere = (path: string) =>
    stat(path).then(
      () => true,
      () => false
    )
  for (const path of allowed.write) if (!(await isThere(path))) throw pathMissing(request.plugin, path)
  const there = await Promise.all(allowed.read.map(isThere))
  return { ...allowed, read: allowed.read.filter((_, at) => there[at]) }
}

/** Node thinks of the whole machine's memory where nobody says otherwise, and cleans up too late. */
const HEAP_SHARE = 0.6
const heapFlag = (bytes: number) => `--max-old-space-size=${Math.floor((bytes * HEAP_SHARE) / 1_048_576)}`
const PORT = 3128

interface InSandbox {
  readonly allowed: Allowed
  readonly visible: readonly string[]
  readonly refusals: Refusals
  readonly config: IsolationConfig
  readonly sandbox: ProcessSandbox
}

async function inSandbox(request: IsolationRequest, parts: InSandbox, ctx: CallContext): Promise<Made> {
  const { allowed, visible, refusals, config, sandbox } = parts
  const { memoryBytes, pids, ...watch } = limitsFor(config, request.plugin)
  const folder = await makeTemporary('egress')
  const socket = join(folder, 'socket')
  const onRefused = (host: string, why: string) => refusals.count('network', host, why === 'address' ? ADDRESS : undefined)
  const egress = await openEgress(socket, { declared: allowed.network, onRefused })
  const close = () => Promise.all([egress[Symbol.asyncDispose](), removeTemporary(folder)])
  try {
    const limits = {
      memoryBytes,
      pids,
      networkAccess: false,
      filesystemReadonly: true,
      allowedPaths: allowed.write,
      readPaths: [...visible, ...allowed.read, folder],
    }
    const guard = {
      env: allowed.env,
      visible: [...visible, ...allowed.read, ...allowed.write],
      proxy: { socket, port: PORT, declared: allowed.network },
    }
    const env = { ...variablesFor(allowed.env, process.env), ...proxyVariables(), SVC_ISOLATED: JSON.stringify(guard) }
    const args = [heapFlag(memoryBytes), ...request.args]
    const {
      id,
      file,
      args: line,
      env: set,
    } = await sandbox.wrap({ command: process.execPath, args, env, limits, node: true, lasting: true }, ctx)
    return {
      prepared: { id, file, args: line, env: set, hold: 'sandbox', ...watch },
      async release(ctx) {
        const [met] = await Promise.all([sandbox.release(id, ctx), close()])
        return [
          met.outOfMemory ? [`it took more memory than it may (${memoryBytes} bytes)`] : [],
          met.outOfPids ? [`it started more than ${pids} processes`] : [],
        ].flat()
      },
    }
  } catch (error) {
    await close()
    throw codeOf(error) === 'SANDBOX_UNAVAILABLE' ? unavailable(request.plugin, messageOf(error), 'fix what it says') : error
  }
}

const ADDRESS = 'which leads to an address that is not public; a manifest must name that very address'

const proxyVariables = () => {
  const proxy = `http://127.0.0.1:${PORT}`
  return {
    SVC_EGRESS: proxy,
    NODE_USE_ENV_PROXY: '1',
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    http_proxy: proxy,
    https_proxy: proxy,
  }
}

/** Node's permission model alone: it keeps from files and other programs, and from no network. */
async function behindPermissions(
  request: IsolationRequest,
  allowed: Allowed,
  visible: readonly string[],
  config: IsolationConfig
): Promise<Made> {
  const { memoryBytes, pids: _, ...watch } = limitsFor(config, request.plugin)
  const own = await makeTemporary('plugin')
  const read = [...visible, ...allowed.read, ...allowed.write, own].map(path => `--allow-fs-read=${path}`)
  const write = [...allowed.write, own].map(path => `--allow-fs-write=${path}`)
  const guard = { env: allowed.env, visible: [...visible, ...allowed.read, ...allowed.write, own] }
  const { PATH = '' } = process.env
  const env = { PATH, HOME: own, TMPDIR: own, ...variablesFor(allowed.env, process.env), SVC_ISOLATED: JSON.stringify(guard) }
  const args = [heapFlag(memoryBytes), '--permission', '--no-experimental-sqlite', ...read, ...write, ...request.args]
  return {
    prepared: { id: own, file: process.execPath, args, env, hold: 'permissions', ...watch },
    async release() {
      await removeTemporary(own)
      return []
    },
  }
}

/** What a program needs to know of where it runs. */
const ALWAYS = ['TZ', 'LANG', 'LANGUAGE', 'LC_ALL']
/** What would change how Node itself starts, whatever a manifest says; a proxy of the host's network leads nowhere from within. */
const NEVER = /^(NODE_|LD_|SVC_(ISOLATED|EGRESS)$)|^(HTTPS?|ALL|NO)_PROXY$/i

/** The variables that a plugin gets: those that it declares and that are there. */
export function variablesFor(declared: readonly string[], all: NodeJS.ProcessEnv): Record<string, string> {
  const words = [...ALWAYS, ...declared]
  const given = Object.entries(all).filter(([name]) => !NEVER.test(name) && words.some(word => matchesPattern(word, name)))
  return Object.fromEntries(given) as Record<string, string>
}

/** Ticks of a second, and bytes of a page, as Linux tells them on all machines that Node runs on. */
const TICK_MS = 10
const PAGE_BYTES = 4096
const [UTIME, STIME, RESIDENT] = [11, 12, 21]

/** What a process and all that it has started take, as the kernel says. */
async function metricsOf(pid: number): Promise<{ readonly cpuMs: number; readonly memoryBytes: number }> {
  const all = await treeOf(pid)
  return {
    cpuMs: all.reduce((sum, one) => sum + one.cpuMs, 0),
    memoryBytes: all.reduce((sum, one) => sum + one.memoryBytes, 0),
  }
}

async function treeOf(pid: number): Promise<{ readonly cpuMs: number; readonly memoryBytes: number }[]> {
  const text = (path: string) => readFile(`/proc/${pid}/${path}`, 'utf8').catch(() => '')
  const [stat, children] = await Promise.all([text('stat'), text(`task/${pid}/children`)])
  if (stat === '') return []
  // the name before may hold spaces and brackets
  const words = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const own = { cpuMs: (words[UTIME]! + words[STIME]!) * TICK_MS, memoryBytes: words[RESIDENT]! * PAGE_BYTES }
  const below = await Promise.all(
    children
      .split(' ')
      .filter(Boolean)
      .map(child => treeOf(Number(child)))
  )
  return [own, ...below.flat()]
}

/** What a plugin may have, with values of its configuration in the place of what stands for them. */
interface Allowed {
  readonly env: readonly string[]
  readonly network: readonly string[]
  readonly read: readonly string[]
  readonly write: readonly string[]
}

/** Paths are absolute afterwards: those that are not begin at the folder in which svc was started. */
function allowedOf({ permissions, config }: IsolationRequest): Allowed {
  const { env = [], network = [], read = [], write = [] } = permissions
  const words = (all: readonly string[]) => all.flatMap(one => filled(one, config))
  const paths = (all: readonly string[]) => words(all).map(path => resolve(path))
  return { env: words(env), network: words(network).map(hostOf), read: paths(read), write: paths(write) }
}

/** `<tools.notes.folder>` and `<providers[].api_key_env>`: what the plugin's own part of the configuration says there; of others' parts it gets nothing. */
function filled(word: string, config: IsolationRequest['config']): readonly string[] {
  const [, path] = /^<(.+)>$/.exec(word) ?? []
  if (path === undefined) return [word]
  const own = path.replace(/^[^[\]]*\[\]\./, '')
  const isOwn = own !== path || path.startsWith(`${config?.section}.`)
  const rest = own === path ? path.slice((config?.section.length ?? 0) + 1) : own
  return isOwn
    ? ([get(config?.value, rest.split('.'))].flat().filter(value => typeof value === 'string' && value !== '') as string[])
    : []
}

/** A configured URL names its host. */
const hostOf = (word: string) => (/^https?:\/\//.test(word) ? (URL.parse(word)?.host ?? word) : word)

/** Names that are told of one plugin; more are counted. */
const TOLD = 100
const LONGEST = 200

/** What one plugin was refused. */
interface Refusals {
  count(kind: RefusalKind, what: string, why?: string): void
  all(): IsolationUsage['refusals']
}

const VERBS: Readonly<Record<RefusalKind, string>> = {
  env: 'read the variable',
  network: 'reach',
  read: 'read',
  write: 'write to',
  process: 'start',
  hooks: 'join the hook',
}

function createRefusals(plugin: string, log: Log): Refusals {
  const counts: { [kind in RefusalKind]?: number } = {}
  const told = new Set<string>()
  return {
    all: () => ({ ...counts }),
    count(kind, whole, why = whyOf(kind, whole)) {
      counts[kind] = (counts[kind] ?? 0) + 1
      const what = whole.slice(0, LONGEST)
      const key = `${kind} ${what}`
      if (told.has(key) || told.size > TOLD) return
      told.add(key)
      if (told.size > TOLD)
        log.warn({ of: plugin }, `${plugin} was refused more than ${TOLD} things: what follows is only counted`)
      else log.warn({ of: plugin, kind, what, hint: hintOf(kind, what) }, `${plugin} tried to ${VERBS[kind]} ${what}, ${why}`)
    },
  }
}

/** What no manifest can open: datagrams and questions to a name server have no way out. */
const HINTS: Readonly<Record<string, string>> = {
  udp: 'use TCP: a plugin in a process of its own sends no datagrams; run it in-process if you trust it',
  dns: 'use dns.lookup, which answers the hosts that the manifest declares; run it in-process if you trust it',
}
const closedHint = (kind: RefusalKind, what: string) =>
  kind === 'network' ? HINTS[/^(udp|dns):/.exec(what)?.[1] ?? ''] : undefined
const whyOf = (kind: RefusalKind, what: string) =>
  closedHint(kind, what) ? 'which finds no network' : 'which its manifest does not declare'

const hintOf = (kind: RefusalKind, what: string) =>
  kind === 'process'
    ? 'a plugin in a process of its own starts no others; run it in-process if you trust it'
    : (closedHint(kind, what) ??
      `where it should: "svc": { "permissions": { "${kind}": [${JSON.stringify(what)}] } } in its package.json`)
