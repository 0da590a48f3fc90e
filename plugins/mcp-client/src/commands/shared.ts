import { Args, Flags } from '@svc/cli/command'
import { oneLine } from '@svc/command-line'
import { codeOf, formatError, systemUse, type Use } from '@svc/core'
import { type CommandContext, type McpServerInfo, ProcessSandbox, Store } from '@svc/core/contracts'
import { findServers, fromWire, reachServer } from '@svc/core/processes'
import type { McpClient, ToolList } from '../connection/client-types.ts'
import type { LoginOptions } from '../connection/oauth/login.ts'
import { storeForgets } from '../errors.ts'
import { clientOptions } from '../registry/client-options.ts'
import { readServers, type Server, serverNamed } from '../registry/configured-servers.ts'
import { homeFile } from '../registry/home-file.ts'
import { loginStorage, personStorage } from '../registry/login-storage.ts'
import type { Pins } from '../registry/pinning.ts'
import { type CatalogueRecord, RECORDS, openRecords, readCatalogue, readPins, type StateRecord } from '../registry/records.ts'
import { MCP_CLIENTS, type McpClientConfig } from '../registry/settings.ts'

/** The configured servers, of the configuration and of mcp.yaml. Throws the first thing that is wrong with them. */
export async function configuredServers(call: CommandContext): Promise<readonly Server[]> {
  const config = structuredClone((await call.setting('mcp', 'clients')) ?? []) as readonly McpClientConfig[]
  // what does not fit the schema is told by `svc config check`, and the host does not start with it
  const own = MCP_CLIENTS.check(config).length === 0 ? config : []
  const { servers, problems } = await readServers(own, homeFile(call.home))
  for (const problem of problems) throw problem
  return servers
}

export const configuredServer = async (call: CommandContext, name: string): Promise<Server> =>
  serverNamed(await configuredServers(call), name)

export const useOf = ({ signal }: CommandContext, command: string): Use => systemUse(signal, `svc ${command}`)

/** The store that servers of this home share. Throws STORE_FORGETS where it does not last. */
export async function openStore(call: CommandContext, use: Use): Promise<Store> {
  const store = (await call.host()).service(Store)
  const { durable, kind } = await store.probe(use)
  if (!durable) throw storeForgets(kind)
  await openRecords(store, use)
  return store
}

/** The process sandbox of the configured host, if it has one. */
async function sandboxOf(call: CommandContext): Promise<ProcessSandbox | undefined> {
  try {
    return (await call.host()).service(ProcessSandbox)
  } catch (error) {
    if (codeOf(error) === 'SERVICE_MISSING') return undefined
    throw error
  }
}

/** The id of the server that runs from this home, as the store knows it; none where none runs. Throws SERVER_AMBIGUOUS. */
export async function runningId(call: CommandContext, port: number | undefined, use: Use): Promise<string | undefined> {
  try {
    using server = await reachServer(call.home, { port })
    return (await server.control.report(use)).serverId
  } catch (error) {
    if (codeOf(error) === 'SERVER_NONE' && port === undefined) return undefined
    throw error
  }
}

/** What a running server tells of its tool servers, by name. */
export async function statesOf(
  store: Store,
  serverId: string,
  use: Use
): Promise<Map<string, StateRecord & { readonly key: string }>> {
  const prefix = `state/${serverId}/`
  const found = new Map<string, StateRecord & { readonly key: string }>()
  for (let cursor: string | undefined; ; ) {
    const page = await store.range(
      RECORDS,
      { from: prefix, to: `${prefix}\u{10ffff}`, limit: 1000, ...(cursor === undefined ? {} : { cursor }) },
      use
    )
    for (const { key, value } of page.records) {
      const name = key.slice(prefix.length, key.lastIndexOf('/'))
      const note = { ...(value as unknown as StateRecord), key }
      if (isNewer(note, found.get(name))) found.set(name, note)
    }
    if (page.next === undefined) return found
    cursor = page.next
  }
}

/** One that is owned counts before one that was. */
const isNewer = (one: StateRecord, other: StateRecord | undefined): boolean =>
  other === undefined ||
  (one.worker === null) < (other.worker === null) ||
  ((one.worker === null) === (other.worker === null) && one.seen > other.seen)

/** What is known of the tools of a server: as the running one has read them last, and as they were approved. */
export interface KnownTools {
  readonly pins: Pins
  readonly catalogue: CatalogueRecord | undefined
}

export async function knownOf(store: Store, serverId: string | undefined, server: Server, use: Use): Promise<KnownTools> {
  const state = serverId === undefined ? undefined : (await statesOf(store, serverId, use)).get(server.entry.name)
  const catalogue = state?.catalogue ? await readCatalogue(store, state.key, use) : undefined
  return { catalogue, pins: await readPins(store, server, use) }
}

/** Of what a problem says: a plugin may have written it. */
const LONGEST_LINE = 2_000

/** Lets the servers of this home take up what has changed. Answers the exit code: 1 where one could not. */
export async function reloadServers(call: CommandContext, use: Use): Promise<number> {
  using stack = new DisposableStack()
  const servers = (await findServers(call.home)).map(server => stack.use(server))
  if (servers.length === 0) call.note('no server runs: the next svc serve takes it up')
  let code = 0
  for (const { control, info } of servers) {
    const { problems } = await control.reload(use)
    if (problems.length === 0) call.note(`${info.url} has taken it up`)
    for (const line of problems.flatMap(problem => formatError(fromWire(problem)).split('\n')))
      call.note(`${/^ */.exec(line)![0]}${oneLine(line, LONGEST_LINE)}`)
    if (problems.length > 0) code = 1
  }
  return code
}

/** Its address, or its command. */
export const locationOf = ({ url, command }: Pick<McpServerInfo, 'url' | 'command'>): string => url ?? (command ?? []).join(' ')

/** A connection of the command's own, whatever runs. Throws MCP_CALL_FAILED where what the entry names is not there. */
export async function openClient(call: CommandContext, store: Store, server: Server, use: Use): Promise<McpClient> {
  const sandbox = server.entry.sandbox && server.entry.url === undefined ? await sandboxOf(call) : undefined
  const storage = loginStorage(store, server, use)
  const options = clientOptions(server, { env: process.env, sandbox, storage, lasting: use })
  const { createMcpClient } = await import('../connection/mcp-client.ts')
  const client = createMcpClient(options)
  // a person waits: what fails is told at once
  client.setReconnectPolicy(0, 'constant')
  return client
}

/** Its tools, read just now. Throws MCP_CALL_FAILED. */
export async function listNow(call: CommandContext, store: Store, server: Server, use: Use): Promise<ToolList> {
  await using client = await openClient(call, store, server, use)
  return await client.listTools({ signal: use.signal })
}

/** Lets a person log in to a remote server; what that brings is kept for all. Throws MCP_CALL_FAILED. */
export async function logIn(store: Store, server: Server, how: LoginOptions, use: Use): Promise<void> {
  const storage = personStorage(store, server, use)
  const options = clientOptions(server, { env: process.env, sandbox: undefined, storage, lasting: use })
  const { loginMcp } = await import('../connection/oauth/login.ts')
  if (options.url !== undefined) await loginMcp(options, how, { signal: use.signal })
  await storage.done()
}

export const SERVER_ARG = { name: Args.string({ description: 'Name of a tool server', required: true, ignoreStdin: true }) }

export const PORT_FLAG = {
  port: Flags.integer({
    summary: 'Port of the server that is asked, where several run from this home',
    helpValue: '<int>',
    min: 1,
    max: 65_535,
  }),
}
