import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, type Log, messageOf, systemContext, type CallContext, matchesPattern } from '@svc/core'
import type {
  Isolation,
  IsolationUsage,
  IsolationRequest,
  PreparedProcess,
  ProcessSandbox,
  RefusalKind,
} from '@svc/core/contracts'
import { filledIn, ownSettings } from '@svc/runtime/isolation'
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

/** An isolated process, from its preparation to its release. */
interface ActiveProcess {
  readonly refusals: Refusals
  /** Ends the process and all that it started. Returns the limits that it exceeded. */
  release(ctx: CallContext): Promise<string[]>
}

/** Restricts isolated plugins to the permissions that they declare, by the process sandbox. */
export function createPolicy(options: PolicyOptions): Isolation & AsyncDisposable {
  const { log, quarantine } = options
  const active = new Map<string, ActiveProcess>()
  const swept = sweepTemporary().catch((err: unknown) =>
    log.warn({ err }, 'failed to remove temporary folders of ended processes')
  )
  const counted = new Map<string, Refusals>()
  const refusalsOf = (plugin: string) => {
    const refusals = counted.get(plugin) ?? createRefusals(plugin, log)
    counted.set(plugin, refusals)
    return refusals
  }
  const release = async (id: string, ctx: CallContext) => {
    const activeProcess = active.get(id)
    active.delete(id)
    return (await activeProcess?.release(ctx)) ?? []
  }
  return {
    async prepare(request, ctx) {
      const refusals = refusalsOf(request.plugin)
      const made = await prepareOne(request, refusals, options, ctx)
      active.set(made.prepared.id, { refusals, release: item => made.release(item) })
      return made.prepared
    },
    release,
    async refused(id, { kind, what }) {
      active.get(id)?.refusals.count(kind, what)
    },
    async look(id, pid) {
      return { ...(await metricsOf(pid)), refusals: active.get(id)?.refusals.all() ?? {} }
    },
    quarantine: (who, ctx) => quarantine.put(who, ctx),
    quarantined: (who, ctx) => quarantine.watch(who, ctx),
    async [Symbol.asyncDispose]() {
      const ctx = systemContext(AbortSignal.timeout(10_000), 'isolation')
      await swept
      await Promise.all([...active.keys()].map(id => release(id, ctx)))
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
    : { why: 'no plugin provides the process sandbox', hint: 'Add @svc/plugin-sandbox-process to "plugins"' }
  if (!why) return inSandbox(request, { allowed, visible, refusals, config, sandbox: sandbox! }, ctx)
  if (config.without_sandbox === 'refuse') throw unavailable(plugin, why.why, why.hint)
  log.warn(
    { of: plugin, why: why.why },
    `${plugin} runs with open network and unlimited memory: this machine has no sandbox for it, and isolation.without_sandbox allows that`
  )
  return behindPermissions(request, allowed, visible, config)
}

/** Returns why this machine cannot isolate a plugin, and how to fix that. */
async function missing(
  sandbox: ProcessSandbox,
  ctx: CallContext
): Promise<{ readonly why: string; readonly hint: string } | undefined> {
  const { ready, memory, pids, reason = 'it cannot enforce the limits', hint = 'Install bubblewrap' } = await sandbox.probe(ctx)
  return ready && memory && pids ? undefined : { why: reason, hint }
}

/** Paths to read are optional: a missing one is skipped. Paths to write must exist. */
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

/** Without this flag Node sizes its heap by the memory of the machine, and collects garbage too late. */
const HEAP_SHARE = 0.6
const heapFlag = (bytes: number) => `--max-old-space-size=${Math.floor((bytes * HEAP_SHARE) / 1_048_576)}`
const PORT = 3128

interface SandboxedRun {
  readonly allowed: Allowed
  readonly visible: readonly string[]
  readonly refusals: Refusals
  readonly config: IsolationConfig
  readonly sandbox: ProcessSandbox
}

async function inSandbox(request: IsolationRequest, run: SandboxedRun, ctx: CallContext): Promise<Made> {
  const { allowed, visible, refusals, config, sandbox } = run
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
          met.outOfMemory ? [`it exceeded its memory limit (${memoryBytes} bytes)`] : [],
          met.outOfPids ? [`it exceeded its limit of ${pids} processes`] : [],
        ].flat()
      },
    }
  } catch (error) {
    await close()
    throw codeOf(error) === 'SANDBOX_UNAVAILABLE' ? unavailable(request.plugin, messageOf(error), 'Fix the cause') : error
  }
}

const ADDRESS = 'which resolves to an address that is not public; the manifest must declare that address'

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

/** Uses Node's permission model alone: it restricts files and programs, and leaves the network open. */
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

/** Variables of locale and time zone, which every plugin gets. */
const ALWAYS = ['TZ', 'LANG', 'LANGUAGE', 'LC_ALL']
/** Variables that no manifest can open: they change how Node starts, or name a proxy that a plugin cannot reach. */
const NEVER = /^(NODE_|LD_|SVC_(ISOLATED|EGRESS)$)|^(HTTPS?|ALL|NO)_PROXY$/i

/** Returns the variables of a plugin: those that it declares and that are set. */
export function variablesFor(declared: readonly string[], all: NodeJS.ProcessEnv): Record<string, string> {
  const words = [...ALWAYS, ...declared]
  const given = Object.entries(all).filter(([name]) => !NEVER.test(name) && words.some(word => matchesPattern(word, name)))
  return Object.fromEntries(given) as Record<string, string>
}

/** Milliseconds of a tick and bytes of a page: the same on all Linux platforms of Node. */
const TICK_MS = 10
const PAGE_BYTES = 4096
const [UTIME, STIME, RESIDENT] = [11, 12, 21]

/** Sums processor time and memory of a process and its descendants. */
async function metricsOf(pid: number): Promise<{ readonly cpuMs: number; readonly memoryBytes: number }> {
  const all = await treeOf(pid)
  return {
    cpuMs: all.reduce((sum, item) => sum + item.cpuMs, 0),
    memoryBytes: all.reduce((sum, item) => sum + item.memoryBytes, 0),
  }
}

async function treeOf(pid: number): Promise<{ readonly cpuMs: number; readonly memoryBytes: number }[]> {
  const text = (path: string) => readFile(`/proc/${pid}/${path}`, 'utf8').catch(() => '')
  const [stat, children] = await Promise.all([text('stat'), text(`task/${pid}/children`)])
  if (stat === '') return []
  // the process name before the bracket can hold spaces and brackets
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

/** The permissions of a plugin, with its configuration filled in for the placeholders. */
interface Allowed {
  readonly env: readonly string[]
  readonly network: readonly string[]
  readonly read: readonly string[]
  readonly write: readonly string[]
}

/** Fills in the values of the plugin's own section. A reference to another section gives nothing. */
function allowedOf({ permissions, config }: IsolationRequest): Allowed {
  const lookup = ownSettings(config)
  const of = (kind: keyof Allowed) => filledIn(kind, permissions[kind] ?? [], lookup)
  return { env: of('env'), network: of('network'), read: of('read'), write: of('write') }
}

/** Refusals of one plugin that are logged by name; further ones are only counted. */
const MAX_LOGGED = 100
const LONGEST = 200

/** The refused accesses of one plugin. */
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
  spaces: 'use data of the store:',
}

function createRefusals(plugin: string, log: Log): Refusals {
  const counts: { [kind in RefusalKind]?: number } = {}
  const logged = new Set<string>()
  return {
    all: () => ({ ...counts }),
    count(kind, whole, why = whyOf(kind, whole)) {
      counts[kind] = (counts[kind] ?? 0) + 1
      const what = whole.slice(0, LONGEST)
      const key = `${kind} ${what}`
      if (logged.has(key) || logged.size > MAX_LOGGED) return
      logged.add(key)
      if (logged.size > MAX_LOGGED)
        log.warn(
          { of: plugin },
          `svc blocked more than ${MAX_LOGGED} different accesses of ${plugin}; it counts further ones without a log line`
        )
      else log.warn({ of: plugin, kind, what, hint: hintOf(kind, what) }, `${plugin} tried to ${VERBS[kind]} ${what}, ${why}`)
    },
  }
}

/** Hints for accesses that no manifest can open: datagrams and queries to a name server. */
const HINTS: Readonly<Record<string, string>> = {
  udp: 'Use TCP: an isolated plugin sends no datagrams. If you trust the plugin, run it in-process',
  dns: 'Use dns.lookup, which resolves the hosts that the manifest declares. If you trust the plugin, run it in-process',
}
const closedHint = (kind: RefusalKind, what: string) =>
  kind === 'network' ? HINTS[/^(udp|dns):/.exec(what)?.[1] ?? ''] : undefined
/** A collection or log that none of the open spaces declares. */
const isInNoSpace = (kind: RefusalKind, what: string) => kind === 'spaces' && / \((collection|log)\)$/.test(what)

function whyOf(kind: RefusalKind, what: string): string {
  if (isInNoSpace(kind, what)) return 'which none of its open spaces declares'
  return closedHint(kind, what) ? 'which has no network' : 'which its manifest does not declare'
}

function hintOf(kind: RefusalKind, what: string): string {
  if (kind === 'process') return 'An isolated plugin starts no processes. If you trust the plugin, run it in-process'
  if (isInNoSpace(kind, what)) return 'Open the space that declares it, and list this space in "spaces" of the permissions'
  return (
    closedHint(kind, what) ??
    `To allow it, add "svc": { "permissions": { "${kind}": [${JSON.stringify(what)}] } } to its package.json`
  )
}
