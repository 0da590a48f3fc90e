import { extname } from 'node:path'
import { Transform } from 'node:stream'
import { finished } from 'node:stream/promises'
import { StringDecoder } from 'node:string_decoder'
import { fileURLToPath, pathToFileURL } from 'node:url'
import {
  type Config,
  type Manifest,
  matchesPattern,
  startHost,
  svcHome,
  svcError,
  systemContext,
  type CallContext,
  withTimeout,
} from '@svc/core'
import { type CommandContext, Isolation, type RequestMethod } from '@svc/core/contracts'
import { reachServer } from '@svc/runtime'
import { type IsolatedRef, type IsolatedTask, runIsolated } from '@svc/runtime/isolation'
import { type BridgedRequest, CommandBridge, type CommandFailure, type CommandInput } from './command-bridge.ts'
import type { CommandFacts } from './command-manifest.ts'
import { importTimeout, requestNotPermitted, serverGone, serverNotPermitted } from './errors.ts'
import { hasApi } from './server-client.ts'
import { POLICY } from './isolate-with.ts'
import { interruption } from './interrupt.ts'
import { OURS } from './plugin-places.ts'

/** The commands of a plugin that run in their own process. */
export interface CommandProcess {
  readonly plugin: string
  readonly version: string
  readonly folder: string
  /** Path of the module that exports the classes. */
  readonly target: string
  /** Permissions of the process. Absent: the process is not sandboxed. */
  readonly permissions?: NonNullable<Manifest['permissions']>
}

const PROGRAM = new URL(`./isolated-command${extname(import.meta.url)}`, import.meta.url).href
const OWN_FOLDER = fileURLToPath(new URL('..', import.meta.url))
const DESCRIBE_MS = 60_000

/**
 * Describes the classes in their own process, for help and completion. Throws the error of the import, and TIMEOUT after
 * `limitMs`.
 */
export function describeInProcess(
  commands: CommandProcess,
  config: Config['value'],
  limitMs: number = DESCRIBE_MS
): Promise<CommandFacts> {
  const { plugin, version } = commands
  const task = { input: { plugin, version } satisfies CommandInput }
  return withTimeout(
    limitMs,
    signal => inProcess(commands, config, task, systemContext(signal, 'describe')) as Promise<CommandFacts>,
    {
      late: () => importTimeout(plugin, limitMs),
    }
  )
}

/** The command to run, with its context. */
export interface IsolatedRun {
  readonly id: string
  readonly argv: readonly string[]
  readonly context: Pick<CommandContext, 'home' | 'cwd' | 'signal' | 'setting' | 'server'>
  /** The section that the plugin owns. The command can read no other part of the configuration. */
  readonly section: () => Promise<string | undefined>
}

/** Runs a command in its own process with the standard streams of this process; resolves with its exit code. */
export async function runInProcess(
  commands: CommandProcess,
  config: Config['value'],
  { id, argv, context, section }: IsolatedRun
) {
  const { home, cwd, signal, setting } = context
  const { plugin, version, permissions = {} } = commands
  const printed: Promise<void>[] = []
  let hasBegun = false
  const bridge: CommandBridge = {
    async setting(keys) {
      const own = await section()
      return own !== undefined && isWithin(keys, own.split('.')) ? setting(...keys.map(String)) : undefined
    },
    ...serverBridge({ plugin, id, permitted: permissions.server ?? [] }, context),
    interrupted: () => {
      hasBegun = true
      return interruption(signal)
    },
  }
  const task = {
    input: { plugin, version, command: { id, argv, home, cwd } } satisfies CommandInput,
    offer: channel => void channel.offer('bridge', CommandBridge, bridge),
    stdin: process.stdin,
    // a sandbox that cannot start the process ends with its own code
    onExit: code => (hasBegun ? code : undefined),
    onOutput(stream, name) {
      const out = process[name]
      const shown = out.isTTY ? stream.pipe(plainText()) : stream
      shown.pipe(out, { end: false })
      printed.push(finished(stream, { writable: false }).catch(() => {}))
    },
  } satisfies Partial<IsolatedTask>
  try {
    const code = await inProcess(
      commands,
      config,
      task,
      systemContext(new AbortController().signal, `svc ${id.replaceAll(':', ' ')}`)
    )
    const { failed } = Object(code) as { failed?: CommandFailure }
    if (failed !== undefined) throw asThrown(failed)
    return typeof code === 'number' && Number.isInteger(code) ? code & 0xff : 0
  } finally {
    await Promise.all(printed)
    process.stdin.unpipe().pause()
  }
}

const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] satisfies RequestMethod[]

/** Sends the permitted requests of a command to a server of this home. Paths are compared as the server receives them. */
function serverBridge(
  { plugin, id, permitted }: { readonly plugin: string; readonly id: string; readonly permitted: readonly string[] },
  { server }: Pick<CommandContext, 'server'>
): Pick<CommandBridge, 'server' | 'request' | 'stream' | 'text'> {
  const clientOn = async (port: unknown) => {
    if (permitted.length === 0) throw serverNotPermitted(plugin, id)
    if (typeof port !== 'number') return server({})
    // Throws when the port is not one of a server of this home: another program would receive the credential.
    using _found = await reachServer(svcHome(), { port, fits: hasApi })
    return await server({ port })
  }
  const prepared = async ({ port, method, path, body }: BridgedRequest) => {
    const client = await clientOn(port)
    if (client === undefined) throw serverGone(plugin)
    const { origin } = new URL(client.url)
    const to = URL.canParse(path, client.url) ? new URL(path, client.url) : undefined
    const asked = `${String(method)} ${to?.origin === origin ? to.pathname : String(path)}`
    const isKnown = METHODS.includes(method)
    if (to?.origin !== origin || !isKnown || !permitted.some(word => matchesPattern(word, asked)))
      throw requestNotPermitted(plugin, asked)
    return { client, method, to: to.pathname + to.search, options: body === undefined ? {} : { body: Object(body) as object } }
  }
  return {
    async server({ port }) {
      const client = await clientOn(port)
      return client && { url: client.url }
    },
    async request(asked, { signal }) {
      const { client, method, to, options } = await prepared(asked)
      return client.request(method, to, { ...options, signal })
    },
    async *stream(asked, { signal }) {
      const { client, method, to, options } = await prepared(asked)
      yield* client.stream(method, to, { ...options, signal })
    },
    async *text(asked, { signal }) {
      const { client, method, to, options } = await prepared(asked)
      yield* client.text(method, to, { ...options, signal })
    },
  }
}

/** The error as oclif would throw it in this process: `endOf` prints it and returns its code. */
const asThrown = ({ code, message, hint, exit }: CommandFailure) => {
  const parts = hint === undefined ? {} : { hint: String(hint) }
  const error = code === undefined ? new Error(String(message)) : svcError(String(code), String(message), parts)
  return Object.assign(error, { oclif: { exit: Number.isInteger(exit) ? exit & 0xff : 1 } })
}

const isWithin = (keys: readonly unknown[], section: readonly string[]) => section.every((key, at) => keys[at] === key)

/** Removes control characters from the output of an isolated plugin. */
function plainText(): Transform {
  const decoder = new StringDecoder('utf8')
  return new Transform({
    transform(chunk: Buffer, _, done) {
      done(null, decoder.write(chunk).replaceAll(/[^\P{Cc}\n\r\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, ''))
    },
  })
}

async function inProcess(
  { plugin, folder, target, permissions }: CommandProcess,
  { isolation = {} }: Config['value'],
  task: Pick<IsolatedTask, 'input' | 'offer' | 'stdin' | 'onOutput' | 'onExit'>,
  ctx: CallContext
): Promise<unknown> {
  const ref: IsolatedRef = {
    name: plugin,
    module: pathToFileURL(target).href,
    ...(permissions ? { confinement: { folder, permissions } } : {}),
  }
  const whole = { ...task, program: PROGRAM, hostFolders: [OWN_FOLDER] }
  if (!permissions) return runIsolated(ref, undefined, whole, ctx)
  await using host = await startHost({ plugins: POLICY, from: [OURS], config: { isolation: isolation as Config['value'] } })
  return await runIsolated(ref, host.service(Isolation), whole, ctx)
}
