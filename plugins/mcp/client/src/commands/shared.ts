import { Args, SvcCommand } from '@svc/cli/command'
import { type CallContext, codeOf, formatError, systemContext } from '@svc/core'
import { type Json, Store } from '@svc/core/contracts'
import { oneLine, storeNotShared } from '@svc/plugin-kit'
import { askServer, fromWire } from '@svc/runtime'
import { serverUnknown } from '../errors.ts'
import { TOPIC } from '../ownership/peer-workers.ts'
import type { CommandQuestion } from '../ownership/questions.ts'
import { readServers, type McpServerSettings, serverNamed } from '../registry/configured-servers.ts'
import { reloadAll } from '../registry/edit.ts'
import { homeFile } from '../registry/home-file.ts'
import { openRecords } from '../registry/records.ts'
import { MCP_CLIENTS, type McpClientConfig } from '../registry/settings.ts'

/** Limit for a line of a problem: a plugin can have written it. */
const MAX_LINE = 2_000

interface ServerChoice {
  readonly port?: number | undefined
}

/** Base class of `svc mcp`. */
export abstract class McpCommand extends SvcCommand {
  get callContext(): CallContext {
    return systemContext(this.signal, `svc ${(this.id ?? 'mcp').replaceAll(':', ' ')}`)
  }

  /** The servers of the configuration and of mcp.yaml. Throws the first problem. */
  protected async servers(): Promise<readonly McpServerSettings[]> {
    const config = structuredClone((await this.setting('mcp', 'clients')) ?? []) as readonly McpClientConfig[]
    // `svc config check` and the host report what does not match the schema
    const own = MCP_CLIENTS.check(config).length === 0 ? config : []
    const { servers, problems } = await readServers(own, homeFile(this.home))
    for (const problem of problems) throw problem
    return servers
  }

  protected async serverNamed(name: string): Promise<McpServerSettings> {
    return serverNamed(await this.servers(), name)
  }

  /** The store that all servers of this home share. Throws STORE_NOT_SHARED if it is not durable. */
  protected async openStore(): Promise<Store> {
    const ctx = this.callContext
    const store = (await this.host()).service(Store)
    const { durable, kind } = await store.probe(ctx)
    if (!durable) throw storeNotShared(kind, 'the server would not see the change')
    await openRecords(store, ctx)
    return store
  }

  /** The answers of the running server to a question, or of the plugins in this process if none runs. Throws SERVER_AMBIGUOUS, STORE_NOT_SHARED. */
  protected async *ask<T>({ port }: ServerChoice, question: CommandQuestion): AsyncGenerator<T, void> {
    const asked = { topic: TOPIC, message: question as unknown as Json, port }
    const isChange = question.do === 'approve' || question.do === 'switch'
    try {
      yield* askServer(this, asked, this.callContext, async () => {
        if (isChange) await this.openStore()
      }) as AsyncIterable<T>
    } catch (error) {
      if (codeOf(error) !== 'PEER_SILENT') throw error
      // a server that has not loaded any MCP server answers nothing to `list`
      if (question.do !== 'list') throw serverUnknown(question.server, [])
    }
  }

  /** As `ask`, for a question with one answer; `undefined` if the server answers nothing. */
  protected async askOnce<T>(choice: ServerChoice, question: CommandQuestion): Promise<T | undefined> {
    for await (const answer of this.ask<T>(choice, question)) return answer
    return undefined
  }

  /** Reloads the running servers of this home. Returns the exit code: 1 if one reports a problem. */
  protected async reloadServers(): Promise<number> {
    const servers = await reloadAll(this.home, this.callContext)
    if (servers.length === 0) this.note('no server is running; the change applies with the next svc serve')
    let code = 0
    for (const { url, problems } of servers) {
      if (problems.length === 0) this.note(`${url} has applied the change`)
      for (const line of problems.flatMap(problem => formatError(fromWire(problem)).split('\n')))
        this.note(`${/^ */.exec(line)![0]}${oneLine(line, MAX_LINE)}`)
      if (problems.length > 0) code = 1
    }
    return code
  }
}

export const SERVER_ARG = { name: Args.string({ description: 'Name of an MCP server', required: true, ignoreStdin: true }) }
