import { Args, Flags } from '@svc/cli/command'
import { type CallContext, codeOf, formatError, systemContext } from '@svc/core'
import { type CommandContext, type Json, PeerAnswers, Store } from '@svc/core/contracts'
import { oneLine } from '@svc/plugin-kit'
import { findServers, type FoundServer, fromWire, reachServer } from '@svc/runtime'
import type { LoginOptions } from '../connection/oauth/login.ts'
import { serverUnknown, storeForgets } from '../errors.ts'
import { TOPIC } from '../ownership/peer-workers.ts'
import type { CommandQuestion } from '../ownership/questions.ts'
import { clientOptions } from '../registry/client-options.ts'
import { readServers, type Server, serverNamed } from '../registry/configured-servers.ts'
import { homeFile } from '../registry/home-file.ts'
import { openRecords, personStorage } from '../registry/records.ts'
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

/** The answers of the running server to a question, or of the plugins in this process if none runs. Throws SERVER_AMBIGUOUS, STORE_FORGETS. */
export async function* askServers<T>(
  call: CommandContext,
  { port }: { readonly port?: number | undefined },
  question: CommandQuestion
): AsyncGenerator<T, void> {
  const ctx = contextOf(call, `mcp ${question.do}`)
  using running = await runningServer(call, port)
  if (running) return yield* answersOf<T>(running.control.ask(TOPIC, question, ctx), question)
  if (question.do === 'approve' || question.do === 'switch') await openStore(call, ctx)
  const here = (await call.host()).slot(PeerAnswers).get(TOPIC)
  if (here) yield* answersOf<T>(here.answer(question as unknown as Json, ctx), question)
}

/** As `askServers`, for a question with one answer; `undefined` if the server answers nothing. */
export async function askServersOnce<T>(
  call: CommandContext,
  flags: { readonly port?: number | undefined },
  question: CommandQuestion
): Promise<T | undefined> {
  for await (const answer of askServers<T>(call, flags, question)) return answer
  return undefined
}

/** A server that has not loaded any MCP server answers nothing to `list`. */
async function* answersOf<T>(answers: AsyncIterable<unknown>, question: CommandQuestion): AsyncGenerator<T, void> {
  try {
    yield* answers as AsyncIterable<T>
  } catch (error) {
    if (codeOf(error) !== 'PEER_SILENT') throw error
    if (question.do !== 'list') throw serverUnknown('server' in question ? question.server : '', [])
  }
}

/** The running server of this home, `undefined` if none runs. Throws SERVER_AMBIGUOUS, and SERVER_NONE for a port without one. */
export async function runningServer(call: CommandContext, port: number | undefined): Promise<FoundServer | undefined> {
  try {
    return await reachServer(call.home, { port })
  } catch (error) {
    if (codeOf(error) === 'SERVER_NONE' && port === undefined) return undefined
    throw error
  }
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
