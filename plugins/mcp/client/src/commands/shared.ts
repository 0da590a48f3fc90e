import { Args, Flags } from '@svc/cli/command'
import { type CallContext, codeOf, formatError, systemContext } from '@svc/core'
import { type CommandContext, type McpServerInfo, ProcessSandbox, Store } from '@svc/core/contracts'
import { oneLine } from '@svc/plugin-kit'
import { findServers, fromWire, reachServer } from '@svc/runtime'
import type { McpClient, ToolList } from '../connection/client-types.ts'
import type { LoginOptions } from '../connection/oauth/login.ts'
import { storeForgets } from '../errors.ts'
import { clientOptions } from '../registry/client-options.ts'
import { readServers, type Server, serverNamed } from '../registry/configured-servers.ts'
import { homeFile } from '../registry/home-file.ts'
import type { Pins } from '../registry/pinning.ts'
import {
  type CatalogueRecord,
  loginStorage,
  openRecords,
  personStorage,
  readCatalogue,
  readPins,
  RECORDS,
  type StateRecord,
} from '../registry/records.ts'
import { MCP_CLIENTS, type McpClientConfig } from '../registry/settings.ts'

/** The servers of the configuration and of mcp.yaml. Throws the first problem. */
export async function configuredServers(call: CommandContext): Promise<readonly Server[]> {
  const config = structuredClone((await call.setting('mcp', 'clients')) ?? []) as readonly McpClientConfig[]
  // `svc config check` and the host report what does not match the schema
  const own = MCP_CLIENTS.check(config).length === 0 ? config : []
  const { servers, problems } = await readServers(own, homeFile(call.home))
  for (const problem of problems) throw problem
  return servers
}

export const configuredServer = async (call: CommandContext, name: string): Promise<Server> =>
  serverNamed(await configuredServers(call), name)

export const contextOf = ({ signal }: CommandContext, command: string): CallContext => systemContext(signal, `svc ${command}`)

/** The store that all servers of this home share. Throws STORE_FORGETS if it is not durable. */
export async function openStore(call: CommandContext, ctx: CallContext): Promise<Store> {
  const store = (await call.host()).service(Store)
  const { durable, kind } = await store.probe(ctx)
  if (!durable) throw storeForgets(kind)
  await openRecords(store, ctx)
  return store
}

/** The process sandbox of the configured host, if there is one. */
async function sandboxOf(call: CommandContext): Promise<ProcessSandbox | undefined> {
  try {
    return (await call.host()).service(ProcessSandbox)
  } catch (error) {
    if (codeOf(error) === 'SERVICE_MISSING') return undefined
    throw error
  }
}

/** The id of the running server of this home, `undefined` if none runs. Throws SERVER_AMBIGUOUS. */
export async function runningId(call: CommandContext, port: number | undefined, ctx: CallContext): Promise<string | undefined> {
  try {
    using server = await reachServer(call.home, { port })
    return (await server.control.report(ctx)).serverId
  } catch (error) {
    if (codeOf(error) === 'SERVER_NONE' && port === undefined) return undefined
    throw error
  }
}

export type KeyedState = StateRecord & { readonly key: string }

/** The states of the MCP servers in a running server, by name. */
export async function statesOf(store: Store, serverId: string, ctx: CallContext): Promise<Map<string, KeyedState>> {
  const prefix = `state/${serverId}/`
  const states = new Map<string, KeyedState>()
  for (let cursor: string | undefined; ; ) {
    const page = await store.range(
      RECORDS,
      { from: prefix, to: `${prefix}\u{10ffff}`, limit: 1000, ...(cursor === undefined ? {} : { cursor }) },
      ctx
    )
    for (const { key, value } of page.records) {
      const name = key.slice(prefix.length, key.lastIndexOf('/'))
      const state = { ...(value as unknown as StateRecord), key }
      if (isNewer(state, states.get(name))) states.set(name, state)
    }
    if (page.next === undefined) return states
    cursor = page.next
  }
}

/** A state with an owner is newer than one without. */
const isNewer = (one: StateRecord, other: StateRecord | undefined): boolean =>
  other === undefined ||
  (one.worker === null) < (other.worker === null) ||
  ((one.worker === null) === (other.worker === null) && one.seen > other.seen)

/** The pinned tools of a server, and its last list in the running server. */
export interface KnownTools {
  readonly pins: Pins
  readonly catalogue: CatalogueRecord | undefined
}

export async function knownTools(
  store: Store,
  serverId: string | undefined,
  server: Server,
  ctx: CallContext
): Promise<KnownTools> {
  const state = serverId === undefined ? undefined : (await statesOf(store, serverId, ctx)).get(server.entry.name)
  return toolsIn(state, store, server, ctx)
}

/** As `knownTools`, for a state of `statesOf`. */
export async function toolsIn(
  state: KeyedState | undefined,
  store: Store,
  server: Server,
  ctx: CallContext
): Promise<KnownTools> {
  const catalogue = state?.catalogue ? await readCatalogue(store, state.key, ctx) : undefined
  return { catalogue, pins: await readPins(store, server, ctx) }
}

/** Limit for a line of a problem: a plugin can have written it. */
const MAX_LINE = 2_000

/** Reloads the running servers of this home. Returns the exit code: 1 if one reports a problem. */
export async function reloadServers(call: CommandContext, ctx: CallContext): Promise<number> {
  using stack = new DisposableStack()
  const servers = (await findServers(call.home)).map(server => stack.use(server))
  if (servers.length === 0) call.note('no server is running; the change applies with the next svc serve')
  let code = 0
  for (const { control, info } of servers) {
    const { problems } = await control.reload(ctx)
    if (problems.length === 0) call.note(`${info.url} has applied the change`)
    for (const line of problems.flatMap(problem => formatError(fromWire(problem)).split('\n')))
      call.note(`${/^ */.exec(line)![0]}${oneLine(line, MAX_LINE)}`)
    if (problems.length > 0) code = 1
  }
  return code
}

/** The address, or the command line. */
export const locationOf = ({ url, command }: Pick<McpServerInfo, 'url' | 'command'>): string => url ?? (command ?? []).join(' ')

/** Connects from this command. Throws MCP_CALL_FAILED if a variable or the sandbox that the entry names is missing. */
export async function openClient(call: CommandContext, store: Store, server: Server, ctx: CallContext): Promise<McpClient> {
  const sandbox = server.entry.sandbox && server.entry.url === undefined ? await sandboxOf(call) : undefined
  const storage = loginStorage(store, server, ctx)
  const options = clientOptions(server, { env: process.env, sandbox, storage, lasting: ctx })
  const { createMcpClient } = await import('../connection/mcp-client.ts')
  const client = createMcpClient(options)
  // a user waits: reports the first failure
  client.setReconnectPolicy(0, 'constant')
  return client
}

/** Lists the tools from this command. Throws MCP_CALL_FAILED. */
export async function listNow(call: CommandContext, store: Store, server: Server, ctx: CallContext): Promise<ToolList> {
  await using client = await openClient(call, store, server, ctx)
  return await client.listTools({ signal: ctx.signal })
}

/** Logs a user in to a remote server, and stores the login for all processes. Throws MCP_CALL_FAILED. */
export async function logIn(store: Store, server: Server, how: LoginOptions, ctx: CallContext): Promise<void> {
  const storage = personStorage(store, server, ctx)
  const options = clientOptions(server, { env: process.env, sandbox: undefined, storage, lasting: ctx })
  const { loginMcp } = await import('../connection/oauth/login.ts')
  if (options.url !== undefined) await loginMcp(options, how, { signal: ctx.signal })
  await storage.done()
}

export const SERVER_ARG = { name: Args.string({ description: 'Name of an MCP server', required: true, ignoreStdin: true }) }

export const PORT_FLAG = {
  port: Flags.integer({
    summary: 'Port of the running server, if this home has several',
    helpValue: '<int>',
    min: 1,
    max: 65_535,
  }),
}
