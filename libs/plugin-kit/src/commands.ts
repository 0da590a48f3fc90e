import { stripVTControlCharacters } from 'node:util'
import { type CallContext, codeOf, messageOf, nearest, svcError } from '@svc/core'
import { type CommandContext, type ServerChoice, type ServerClient, Store } from '@svc/core/contracts'

/** Formats rows of cells as a table. The first row is the header. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const padded = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0))
  return rows.map(row => padded(row).join('  ').trimEnd())
}

/** Formats untrusted text as one terminal line, without control characters. */
export function oneLine(text: string, most = 100): string {
  const line = stripVTControlCharacters(text)
    .replace(/[\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`
}

/** A name of code as JSON of svc has it: `lastError` is `last_error`. */
export const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

/** A value as JSON of svc has it: the names of its records, also of inner ones, are in snake_case. */
export function toRecord(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toRecord)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [snakeCase(name), toRecord(part)]))
}

/** A record of the API as code has it: names in camelCase, and no null. Names inside of values stay: they can be data of others. */
export const fromRecord = <T extends object>(record: object): T =>
  Object.fromEntries(
    Object.entries(record).flatMap(([name, value]) =>
      value === null ? [] : [[name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), value]]
    )
  ) as T

/** Formats a time of Unix milliseconds: `2026-11-24 02:31:07Z`. Returns an empty text without a time. */
export const timeText = (ms: number | undefined): string =>
  ms === undefined
    ? ''
    : new Date(ms)
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, 'Z')

/** Lists the first items, and counts the others: `a, b and 3 more`. */
export const shortList = (all: readonly string[], most = 5): string =>
  all.length <= most ? all.join(', ') : `${all.slice(0, most).join(', ')} and ${all.length - most} more`

/** The hint for an unknown name: the nearest known one, or the first `most`. `none` is the hint if no name is known. */
export function nameHint(name: string, known: readonly string[], none: string, most = 10): string {
  const near = nearest(name, known)
  if (near !== undefined) return `did you mean "${near}"?`
  return known.length === 0 ? none : `Use one of: ${shortList(known, most)}`
}

/** Creates the error for a command line that oclif accepts and the command does not. */
export const lineInvalid = (message: string, usage: string) =>
  svcError('COMMAND_LINE_INVALID', message, { hint: `Usage: svc ${usage}` })

/** The host that a command starts. */
type CommandHost = Awaited<ReturnType<CommandContext['host']>>

/**
 * The store of a command that works only if the servers of this home share it. Throws STORE_NOT_SHARED if it is not durable;
 * `so` is the consequence.
 */
export async function sharedStore(
  host: Pick<CommandHost, 'service'>,
  so: string,
  ctx: CallContext,
  hint = 'Configure a durable store, such as @svc/plugin-store-sqlite'
): Promise<Store> {
  const store = host.service(Store)
  const { durable, kind } = await store.probe(ctx)
  if (durable) return store
  throw svcError('STORE_NOT_SHARED', `the store "${kind}" is not shared between processes, so ${so}`, { hint })
}

/** The hint of a command that works with a running server too. */
export const DURABLE_OR_SERVER = 'Configure a durable store, such as @svc/plugin-store-sqlite, or start the server first'

/**
 * The server that a command manages over its HTTP API: the one at `url`, or the running one of this home. That one gets the
 * requests over its control socket, as the operator of the machine, unless `header` names a credential. Undefined if none runs.
 * Throws SERVER_NONE, SERVER_AMBIGUOUS.
 */
export async function managedServer(
  command: Pick<CommandContext, 'server'>,
  { url, port, header }: Pick<ServerChoice, 'url' | 'port' | 'header'>
): Promise<ServerClient | undefined> {
  const server = await command.server({ url, port, header, operator: true })
  if (server) return withRoutes(server)
  if (header === undefined || header.length === 0) return undefined
  throw svcError('SERVER_NONE', '--header needs a server, and no server runs from this svc home', {
    hint: 'Start it with `svc serve`, or name one with --url',
  })
}

/** Explains a missing route: it belongs to the management API, which can be off. */
function withRoutes(server: ServerClient): ServerClient {
  return {
    url: server.url,
    request: <T>(...asked: Parameters<ServerClient['request']>) =>
      server.request<T>(...asked).catch((error: unknown) => {
        throw asManagementOff(error)
      }),
    stream: (...asked) => explained(server.stream(...asked)),
    text: (...asked) => explained(server.text(...asked)),
  }
}

async function* explained<T>(items: AsyncIterable<T>): AsyncGenerator<T, void> {
  try {
    yield* items
  } catch (error) {
    throw asManagementOff(error)
  }
}

function asManagementOff(error: unknown): unknown {
  if (codeOf(error) !== 'NOT_FOUND') return error
  const { where } = Object(error) as { where?: string }
  return svcError('MANAGEMENT_API_OFF', `the server does not offer this part of the management API: ${messageOf(error)}`, {
    cause: error,
    ...(where === undefined ? {} : { where }),
    hint: 'On that server, load the plugin @svc/plugin-admin-api and the plugin of this command, then run `svc reload` there',
  })
}
