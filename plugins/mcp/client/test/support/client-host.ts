import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { definePlugin, type RunningHost } from '@svc/core'
import { McpClients, type McpServerInfo, type ToolStep } from '@svc/core/contracts'
import { gather, type Fixture, testHost, testContext } from '@svc/testing'
import type { McpClientConfig } from '../../src/registry/settings.ts'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

const HOSTILE = fileURLToPath(new URL('../../../../../test/support/hostile-server.mjs', import.meta.url))

/** A server that violates the protocol as the options say. */
export const hostile = (problems: object = {}) => ({ command: process.execPath, args: [HOSTILE, JSON.stringify(problems)] })

/** An MCP server from npm. */
export const community = (name: string, ...args: string[]) => ({
  command: process.execPath,
  args: [
    fileURLToPath(new URL(`../../../../../node_modules/@modelcontextprotocol/server-${name}/dist/index.js`, import.meta.url)),
    ...args,
  ],
})

/** A host with MCP servers. */
export interface ClientHost extends AsyncDisposable {
  readonly host: RunningHost
  readonly clients: McpClients
  readonly home: string
  info(name: string): Promise<McpServerInfo>
  /** Returns the text of a result, or the code and class of an error. */
  say(
    server: string,
    tool: string,
    args?: object,
    more?: { readonly signal?: AbortSignal; readonly timeoutMs?: number }
  ): Promise<string>
  steps(server: string, tool: string, args?: object): Promise<ToolStep[]>
  /** Waits until the state of a server matches. */
  until(name: string, isTrue: (info: McpServerInfo) => boolean): Promise<McpServerInfo>
}

/** Starts a host with a temporary home and a store in memory. */
export async function openClientHost(
  clients: readonly McpClientConfig[],
  give: readonly Fixture[] = [],
  mcp: object = {}
): Promise<ClientHost> {
  const home = await mkdtemp(join(tmpdir(), 'svc-mcp-'))
  const before = process.env.SVC_HOME
  process.env.SVC_HOME = home
  let change = Promise.withResolvers<void>()
  const changes = definePlugin({
    setup: scope =>
      void scope.tap(McpClients.hooks.changed, () => {
        const { resolve } = change
        change = Promise.withResolvers()
        resolve()
      }),
  })
  const host = await testHost(['store-memory', 'mcp-client'].map(pluginFolder), {
    config: { mcp: { clients, ...mcp } },
    give: [{ name: 'test:changes', use: changes }, ...give],
  })
  const service = host.service(McpClients)
  const info = async (name: string) => (await service.list(testContext())).find(item => item.name === name)!
  return {
    host,
    clients: service,
    home,
    info,
    async say(server, tool, args = {}, { signal, timeoutMs } = {}) {
      const ctx = testContext(signal ? { signal } : {})
      try {
        const steps = await gather(service.call(server, tool, { ...args }, timeoutMs === undefined ? {} : { timeoutMs }, ctx))
        const last = steps.at(-1)
        if (last?.type !== 'result') return last?.type ?? 'nothing'
        return last.result.content.map(part => (part.type === 'text' ? part.text : part.type)).join(' ')
      } catch (error) {
        const { code, details } = error as { code?: string; details?: { class?: string } }
        return `${code} ${details?.class}`
      }
    },
    steps: (server, tool, args = {}) => gather(service.call(server, tool, { ...args }, {}, testContext())),
    async until(name, isTrue) {
      for (;;) {
        const next = change.promise
        const now = await info(name)
        if (isTrue(now)) return now
        await next
      }
    },
    async [Symbol.asyncDispose]() {
      await host.close()
      if (before === undefined) delete process.env.SVC_HOME
      else process.env.SVC_HOME = before
      await rm(home, { recursive: true, force: true })
    },
  }
}
