import { type CallContext, svcHome } from '@svc/core'
import type { McpClients, McpServerEntry, McpServersChange, Store } from '@svc/core/contracts'
import { reloadServers } from '@svc/runtime'
import { entryInvalid, keyForbidden, nameTaken, notRemovable } from '../errors.ts'
import {
  addToFile,
  homeFile,
  isRemovable,
  type McpServerSettings,
  readValidServers,
  removeFromFile,
  serverNamed,
} from './configured-servers.ts'
import { KEYS, openRecords, RECORDS } from './records.ts'
import { type EditContext, firstProblem, type McpClientConfig } from './settings.ts'

/** Adds a server to mcp.yaml. Throws MCP_CLIENT_INVALID if another has its name, or for a file with problems. */
export async function addServer(
  entry: McpClientConfig,
  servers: readonly McpServerSettings[],
  file: string = homeFile()
): Promise<void> {
  const other = servers.find(one => one.entry.name === entry.name)
  if (other) throw nameTaken(entry.name, other.where)
  await addToFile(file, [entry])
}

/** Deletes the decisions of users about a removed server. After the reload: a server that still uses it would write the records again. */
export async function forgetServer(store: Store, server: McpServerSettings, ctx: CallContext): Promise<void> {
  const keys = [KEYS.switch(server), KEYS.pins(server), KEYS.login(server)]
  await store.batch(
    keys.map(key => ({ op: 'delete', collection: RECORDS, key })),
    {},
    ctx
  )
}

/** Adds and removes servers for callers of the service, as the commands do. */
export function createEditor({ config, store, lasting }: EditContext): Pick<McpClients, 'add' | 'remove'> {
  const read = () => readValidServers(config.clients, homeFile())
  return {
    async add(given) {
      const entry = checkedEntry(given, config.allow_stdio_over_http)
      await addServer(entry, await read())
      return changed(entry.name, lasting)
    },
    async remove(name) {
      const server = serverNamed(await read(), name)
      if (!isRemovable(server)) throw notRemovable(name)
      await removeFromFile(homeFile(), name, 'Remove it from the configuration')
      const change = await changed(name, lasting)
      await openRecords(store, lasting)
      await forgetServer(store, server, lasting)
      return change
    },
  }
}

async function changed(name: string, ctx: CallContext): Promise<McpServersChange> {
  const reloaded = await Array.fromAsync(reloadServers(svcHome(), ctx))
  const problems = reloaded.flatMap(one => one.problems.map(({ code, message }) => ({ code, message })))
  return { name, applied: reloaded.length > 0 && problems.length === 0, problems }
}

/** Keys with which a caller would run a program, or choose its surroundings. */
const LOCAL_KEYS = ['command', 'args', 'env', 'idle_timeout'] as const
/** Variables that are meant for MCP servers. Another one would be sent to any address that the caller names. */
const VARIABLES = 'SVC_MCP_'

/** The entry of a caller over HTTP. Throws FORBIDDEN, INVALID_VALUE. */
function checkedEntry(given: McpServerEntry, allowLocal: boolean): McpClientConfig {
  const entry = structuredClone(given) as unknown as McpClientConfig
  if (!allowLocal) {
    const local = LOCAL_KEYS.find(key => Object.hasOwn(entry, key))
    if (local !== undefined) throw keyForbidden(local, 'it would start a program on the machine of the server')
    const variables = {
      api_key_env: entry.api_key_env,
      'oauth.client_secret_env': Object(entry.oauth).client_secret_env as unknown,
    }
    for (const [field, name] of Object.entries(variables))
      if (typeof name === 'string' && !name.startsWith(VARIABLES))
        throw keyForbidden(field, `only variables whose name begins with ${VARIABLES} can be sent to a server`)
  }
  const problem = firstProblem(entry)
  if (problem) throw entryInvalid(problem.keys.join('.') || 'url', problem.message, problem.hint)
  return entry
}
